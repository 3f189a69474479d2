"""Diagnosis: the corruption that latents suffer from, derived from the verdicts of a certificate with the true state.

    collapsed   latent directions without variance          missing   state directions that h does not contain
    scramble    no linear relation to the state             warp      monotone curves along single coordinates
    shear       coordinates curved into, or added to others  bend      nonlinear in another way
    noise       latents that are not a function of z        surplus   the whole state, and more
    quantised   latents rounded to few values               drift     a map that changes from row to row

Corruptions are checked from the most basic on, so that collapsed latents are not also called nonlinear. Only verdicts
are needed, so a saved certificate can be diagnosed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.identifiability.standards import UNEXPLAINED

__all__ = ["Diagnosis", "Kind", "diagnose", "diagnosis_verdict"]

Kind = Literal[
    "rotation",
    "undecided",
    "collapsed",
    "drift",
    "scramble",
    "missing",
    "warp",
    "shear",
    "bend",
    "noise",
    "quantised",
    "surplus",
]

NAMES: dict[Kind, str] = {
    "collapsed": "a collapsed dimension",
    "drift": "a map that changes along the rows",
    "scramble": "a scramble",
    "missing": "a missing dimension",
    "warp": "a warp",
    "shear": "a shear",
    "bend": "a bend",
    "noise": "noise",
    "quantised": "rounding",
    "surplus": "a surplus dimension",
}

JUDGED = ("effective_rank", "coverage", "r2", "r2_inverse", "orthogonality", "stretch")
DRIFTS = 0.9
"""R² that one map for each part of the rows must have for a drift to explain that one map for all has less."""
RELATED = 0.25
"""Linear R² of the contained directions below which there is no linear relation."""
RELATED_TO_NONLINEAR = 0.5
"""Share of the nonlinear R² below which the linear R² counts as no linear relation."""
ROUNDED = 0.5
"""Share of the noise that the rounding of latents must explain for them to be called quantised."""
DOMINANT = 0.9
"""Share of the nonlinear part that a warp and a shear must explain together."""
MOST = 0.5
"""Share of everything that is not linear that a warp and a shear must explain together."""
NOTABLE_IN_ONE = {"nonlinear": 0.1, "noise": 0.2}
"""Share of a single direction's variance from which a corruption is mentioned that is small in total. More for noise,
because curves too fine for the number of rows look like noise."""


@dataclass(frozen=True)
class Diagnosis:
    """The main finding, as a sentence; `also` lists further corruptions."""

    kind: Kind
    sentence: str
    also: tuple[Kind, ...] = ()


def diagnose(verdicts: Iterable[Verdict]) -> Diagnosis | None:
    """Diagnose from the verdicts of `certify`; None if they were made without the true state."""
    by_name = {verdict.name: verdict for verdict in verdicts}
    if "coverage" not in by_name:
        return None
    symptoms = _Symptoms(by_name)
    kind, *also = _kinds(symptoms)
    sentence = _SENTENCES[kind](symptoms)
    if also:
        sentence += f" Also found: {', '.join(NAMES[other] for other in also)}."
    return Diagnosis(kind, sentence, tuple(also))


def diagnosis_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The diagnosis as a verdict: the share of variance, or of directions, that the corruption affects; 0 if none."""
    by_name = {verdict.name: verdict for verdict in verdicts}
    found = diagnose(by_name.values())
    assert found is not None
    share = Estimate.exact(0.0, by_name["r2"].n)
    if found.kind != "rotation":
        share = _affected_share(found.kind, _Symptoms(by_name))
    numbers = (share.value, share.low, share.high, share.n)
    return Verdict("diagnosis", *numbers, None, 0.0, "lower", found.kind == "rotation", found.sentence)


class _Symptoms:
    """Findings of a certificate by name. Undefined shares of constant latents count as zero."""

    def __init__(self, verdicts: Mapping[str, Verdict]) -> None:
        self.verdicts = verdicts
        self.failed = [name for name in JUDGED if not self.passed(name)]
        rank = verdicts["effective_rank"]
        coverage = verdicts["coverage"]
        self.width = int(rank.threshold or 0)
        self.live = int(rank.value)  # latent directions that vary
        self.states = int(coverage.threshold or 0)
        self.found = int(coverage.value)  # state directions that can be recovered
        self.lost = self.states - self.found
        self.copies = int(self.value("repeated_coordinates"))
        short = max(self.width - self.live - self.copies, 0)
        constant = self.width - int(self.value("varying_coordinates", self.width - short))
        # If the whole state is there, coordinates that combine others are surplus, not collapsed.
        self.combined = max(short - constant, 0) if self.lost == 0 and self.others_contain_all else 0
        self.collapsed = short - self.combined
        self.nonlinear = sum(self.value(f"share_{name}") for name in ("warp", "shear", "bend"))
        self.noise = self.value("share_noise")

    def value(self, name: str, default: float = 0.0) -> float:
        return float(np.nan_to_num(self.verdicts[name].value)) if name in self.verdicts else default

    def has(self, name: str) -> bool:
        return name in self.verdicts

    def passed(self, name: str) -> bool:
        return self.verdicts[name].passed is True

    def advice(self, name: str) -> str:
        return self.verdicts[name].advice

    def estimate(self, name: str) -> Estimate:
        verdict = self.verdicts[name]
        return Estimate(verdict.value, verdict.low, verdict.high, verdict.n)

    def complement(self, name: str) -> Estimate:
        """One minus the value."""
        verdict = self.verdicts[name]
        return Estimate(1 - verdict.value, 1 - verdict.high, 1 - verdict.low, verdict.n)

    def missing_share(self, name: str) -> Estimate:
        """The share by which a count falls short of its threshold."""
        verdict = self.verdicts[name]
        total = verdict.threshold or 1.0
        return Estimate(1 - verdict.value / total, 1 - verdict.high / total, 1 - verdict.low / total, verdict.n)

    @property
    def failed_by_value(self) -> bool:
        """Whether some value, not only its interval, fails its threshold; NaN does."""
        return any(not _value_passes(self.verdicts[name]) for name in self.failed)

    @property
    def others_contain_all(self) -> bool:
        """Whether the varying directions recover the state as well as all of them do."""
        return self.value("r2_varying", -np.inf) >= self.value("r2") - UNEXPLAINED

    @property
    def unrelated(self) -> bool:
        """Whether a linear map recovers almost nothing, or much less than a nonlinear one."""
        contained = RELATED * self.found / self.states
        return self.value("r2") < max(contained, RELATED_TO_NONLINEAR * self.value("r2_nonlinear"))

    @property
    def folded(self) -> bool:
        """Whether a nonlinear map recovers more than a linear map, and more than almost nothing."""
        return self.value("r2_nonlinear") > max(RELATED * self.found / self.states, self.value("r2"))

    def only_in_one(self, part: Literal["nonlinear", "noise"]) -> bool:
        """Whether a part is large in a single direction although it is small in total."""
        total = self.nonlinear if part == "nonlinear" else self.noise
        return total <= UNEXPLAINED and self.value(f"worst_{part}") > NOTABLE_IN_ONE[part]

    @property
    def curved(self) -> bool:
        return self.nonlinear > UNEXPLAINED or self.only_in_one("nonlinear")

    @property
    def noisy(self) -> bool:
        return self.noise > UNEXPLAINED or self.only_in_one("noise")

    @property
    def noise_kind(self) -> Literal["noise", "quantised"]:
        return "quantised" if self.value("share_rounding") > ROUNDED * self.noise else "noise"

    @property
    def drifts(self) -> bool:
        """Whether a linear map for each part of the rows recovers the state, and one map for all does not."""
        return self.has("r2_parts") and self.value("r2_parts") > max(self.value("r2") + UNEXPLAINED, DRIFTS)

    @property
    def nonlinear_shear(self) -> bool:
        """Whether a shear is one of curves, not of a linear map."""
        linear = all(self.passed(name) for name in ("r2", "r2_inverse", "orthogonality"))
        return self.curve == "shear" and (not linear or self.only_in_one("nonlinear"))

    @property
    def stretched(self) -> bool:
        """Whether some directions are scaled more than others, also after undoing the warp, if any."""
        limit = self.verdicts["stretch"].threshold or 0.0
        undone = self.has("stretch_unwarped") and self.verdicts["stretch_unwarped"].high <= limit
        return not self.passed("stretch") and not undone

    @property
    def scaled(self) -> bool:
        """Whether the map is a multiple of a rotation other than a rotation."""
        return self.value("orthogonality_raw") > (self.verdicts["stretch"].threshold or 0.0)

    @property
    def curve(self) -> Literal["warp", "shear", "bend"]:
        """The kind of map that explains the nonlinear part."""
        warp = self.value("share_warp")
        shear = self.value("share_shear")
        if warp + shear < max(DOMINANT * self.nonlinear, MOST * (self.nonlinear + self.noise)):
            return "bend"
        return "warp" if warp >= shear else "shear"


def _value_passes(verdict: Verdict) -> bool:
    limit = verdict.threshold or 0.0
    return verdict.value >= limit if verdict.direction == "higher" else verdict.value <= limit


def _kinds(s: _Symptoms) -> list[Kind]:
    square = s.width == s.states
    if not s.failed and square:
        return ["rotation"]
    if not s.failed_by_value and square:
        return ["undecided"]
    if s.drifts:
        return ["drift"]
    scrambled = s.live > 0 and (s.found == 0 or (s.unrelated and s.curve not in ("warp", "shear")))
    incomplete = bool(s.collapsed or scrambled or s.lost)
    surplus = s.width > s.states and not incomplete and _value_passes(s.verdicts["r2"])
    shaped = not scrambled and not surplus
    curved = shaped and s.curved
    sheared = s.stretched and not (incomplete or s.copies or s.combined or (curved and s.curve != "warp"))
    rules: list[tuple[Kind, bool]] = [
        ("collapsed", s.collapsed > 0),
        ("scramble", scrambled),
        ("missing", s.lost > s.collapsed and not scrambled),
        (s.curve, curved),
        (s.noise_kind, shaped and s.noisy),
        ("shear", sheared),
        ("surplus", (s.width > s.states or s.copies + s.combined > 0) and not incomplete),
    ]
    kinds: list[Kind] = [kind for kind, holds in rules if holds]
    if kinds:
        return kinds
    return [s.curve if s.nonlinear >= s.noise else s.noise_kind]


def _affected_share(kind: Kind, s: _Symptoms) -> Estimate:
    if kind == "collapsed":
        return s.missing_share("effective_rank")
    if kind == "missing":
        return s.missing_share("coverage")
    if kind == "surplus":
        share = 1 - s.states / s.width
        return Estimate.exact(share, s.verdicts["r2"].n)
    if kind == "shear" and not s.nonlinear_shear:
        return s.estimate("stretch")
    if kind in ("warp", "shear", "noise", "quantised"):
        return s.estimate("share_noise" if kind == "quantised" else f"share_{kind}")
    return s.complement("share_linear" if kind == "bend" else "r2")


def _rotation(s: _Symptoms) -> str:
    if s.scaled:
        return (
            "Rotation: the latents are the world's coordinates, rotated and scaled by one factor. Whiten them to "
            "remove the scale."
        )
    return "Rotation: the latents are the world's coordinates, rotated."


def _undecided(s: _Symptoms) -> str:
    return "Undecided: the values are those of a rotation, but the intervals are too wide. Give more samples."


def _collapsed(s: _Symptoms) -> str:
    verb = "has" if s.collapsed == 1 else "have"
    start = f"Collapsed dimension: {s.collapsed} of {s.width} latent directions {verb} almost no variance"
    spread = "Strengthen the term that keeps latents spread (SIGReg, or a variance term), or lower the learning rate."
    if s.lost:
        return f"{start}, and {s.lost} of {s.states} state directions are lost. {spread}"
    if s.others_contain_all:
        return f"{start}; the others contain the whole state. Use fewer latents."
    r2 = ""
    if s.has("r2_varying"):
        r2 = f" (R² {s.value('r2'):z.2f} with them, {s.value('r2_varying'):z.2f} without)"
    return f"{start}, but still contain part of the state{r2}. Whitening restores it. {spread}"


def _scramble(s: _Symptoms) -> str:
    start = "Scramble: the latents have little or no linear relation to the state"
    check = "Check that rows of h and z belong together. If they do, the encoder has learned something else."
    if s.found == 0:
        return f"{start}, and no nonlinear function that was tried recovers it. {check}"
    r2 = f"R² {s.value('r2_nonlinear'):z.2f}"
    if s.folded:
        return (
            f"{start}, but a nonlinear function of them recovers it ({r2}). Train longer, or check that views are "
            "aligned."
        )
    return f"{start}, and nonlinear functions of them recover little of it ({r2}). {check}"


def _missing(s: _Symptoms) -> str:
    coverage = s.advice("coverage")
    copies = f" {s.advice('repeated_coordinates')}" if s.copies else ""
    return (
        f"Missing dimension: {coverage[0].lower()}{coverage[1:]}{copies} Use more latents, or show the encoder what it "
        "does not observe."
    )


def _warp(s: _Symptoms) -> str:
    return (
        f"Warp: {_percentage('warp', s)} of the variance{_in_one(s, 'nonlinear')} is a monotone curve along each "
        f"coordinate, like a cube{_minor(s, 'shear', 'curves one coordinate into the direction of others')}. In a "
        f"non-Gaussian world this is expected{_unwarped(s)}. In a Gaussian world, train longer."
    )


def _shear(s: _Symptoms) -> str:
    if not s.nonlinear_shear:
        return (
            "Shear: the latents are linear in the state, but scale some directions more than others (by up to "
            f"{_percentage('shear', s)} of the mean variance). Whiten the latents to undo it."
        )
    return (
        f"Shear: {_percentage('shear', s)} of the variance{_in_one(s, 'nonlinear')} curves one coordinate into the "
        f"direction of others{_minor(s, 'warp', 'is a monotone curve along each coordinate')}. Train longer, or check "
        "that views are aligned."
    )


def _bend(s: _Symptoms) -> str:
    return (
        f"Bend: {_percentage('bend', s)} of the variance{_in_one(s, 'nonlinear')} is nonlinear, and neither a warp nor "
        "a shear explains it. Train longer, or check the assumptions on the world (Gaussian, one rate)."
    )


def _noise(s: _Symptoms) -> str:
    return (
        f"Noise: {_percentage('noise', s)} of the variance{_in_one(s, 'noise')} is not explained by any function of "
        "the state that was tried. Average over views, or find out what else the latents depend on."
    )


def _quantised(s: _Symptoms) -> str:
    return (
        f"Quantised: the latents take few values. Rounding them explains {s.value('share_rounding'):.1%} of their "
        "variance. Store them with more digits."
    )


def _drift(s: _Symptoms) -> str:
    return (
        f"Drift: the map from state to latents changes along the rows. One linear map for all rows has R² "
        f"{s.value('r2'):z.2f}, a map for each of ten parts {s.value('r2_parts'):z.2f}. Certify parts on their own, "
        "or encode all rows with one model."
    )


def _surplus(s: _Symptoms) -> str:
    text = f"Surplus dimension: {s.width} latents contain all {s.states} state directions"
    if s.passed("r2_inverse"):
        text += "."
    else:
        text += f", but {1 - s.value('r2_inverse'):.1%} of their variance is not linear in the state."
    if s.combined:
        verb = "is a linear combination" if s.combined == 1 else "are linear combinations"
        text += f" {s.combined} of them {verb} of the others."
    if s.copies:
        text += f" {s.advice('repeated_coordinates')}"
    return f"{text} Use fewer latents."


_SENTENCES = {
    "rotation": _rotation,
    "undecided": _undecided,
    "collapsed": _collapsed,
    "scramble": _scramble,
    "missing": _missing,
    "warp": _warp,
    "shear": _shear,
    "bend": _bend,
    "noise": _noise,
    "quantised": _quantised,
    "drift": _drift,
    "surplus": _surplus,
}


def _percentage(kind: Kind, s: _Symptoms) -> str:
    return f"{_affected_share(kind, s).value:.1%}"


def _minor(s: _Symptoms, kind: Literal["warp", "shear"], meaning: str) -> str:
    """The smaller nonlinear part, if it is notable."""
    share = s.value(f"share_{kind}")
    return f", and {share:.1%} {meaning}" if share > UNEXPLAINED else ""


def _in_one(s: _Symptoms, part: Literal["nonlinear", "noise"]) -> str:
    """The share of a single direction, if it is small in total."""
    return f" ({s.value(f'worst_{part}'):.0%} of a single direction's)" if s.only_in_one(part) else ""


def _unwarped(s: _Symptoms) -> str:
    """R² after undoing the warp, if that was tried."""
    if not s.has("r2_unwarped"):
        return "; undo it with fit_warp or fit_latent_warp"
    r2 = s.estimate("r2_unwarped")
    form = "of the states, h = Qw(z), with fit_warp,"
    if s.value("r2_unwarped_latents", -np.inf) == s.value("r2_unwarped"):
        form = "of the latents, h = w(Qz), with fit_latent_warp,"
    return (
        f": undoing one warp shared by all coordinates {form} gives R² {r2.value:z.4f} [{r2.low:z.4f}, {r2.high:z.4f}]"
    )
