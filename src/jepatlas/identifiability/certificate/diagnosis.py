"""The diagnosis: which corruption latents suffer from, read off the verdicts of a certificate with the truth at hand.

    collapsed   latent directions that do not vary        missing   directions of the state that h tells nothing of
    scramble    no linear relation with the state         warp      coordinates curved, each along its own axis
    shear       coordinates added to one another          bend      nonlinear in another way
    noise       latents that are no function of z         surplus   all of the state, and more

They are looked for from the most basic on: what has collapsed need not be blamed for being bent. Nothing but verdicts
is needed, so that a saved certificate can be diagnosed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from jepatlas.core.records import Estimate, Verdict
from jepatlas.identifiability.certificate.symptoms import NOTABLE, Symptoms

__all__ = ["Diagnosis", "Kind", "diagnose", "diagnosis_verdict"]

Kind = Literal["rotation", "undecided", "collapsed", "scramble", "missing", "warp", "shear", "bend", "noise", "surplus"]

NAMES: dict[Kind, str] = {
    "collapsed": "a collapsed dimension",
    "scramble": "a scramble",
    "missing": "a missing dimension",
    "warp": "a warp",
    "shear": "a shear",
    "bend": "a bend",
    "noise": "noise",
    "surplus": "a surplus dimension",
}


@dataclass(frozen=True)
class Diagnosis:
    """What was found; `also` are further corruptions beside it."""

    kind: Kind
    sentence: str
    also: tuple[Kind, ...] = ()


def diagnose(verdicts: Iterable[Verdict]) -> Diagnosis | None:
    """What the verdicts of `certify` say together; None where there was no truth to say it of."""
    by_name = {verdict.name: verdict for verdict in verdicts}
    if "coverage" not in by_name:
        return None
    symptoms = Symptoms(by_name)
    kind, *also = _kinds(symptoms)
    besides = f" Besides: {', '.join(NAMES[other] for other in also)}." if also else ""
    return Diagnosis(kind, _sentence(kind, symptoms) + besides, tuple(also))


def diagnosis_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The diagnosis as a verdict: the share of variance, or of directions, that the corruption takes; 0 for none."""
    by_name = {verdict.name: verdict for verdict in verdicts}
    found, share = diagnose(by_name.values()), Estimate(0.0, 0.0, 0.0, by_name["r2"].n)
    assert found is not None
    if found.kind != "rotation":
        share = _share(found.kind, Symptoms(by_name))
    numbers = (share.value, share.low, share.high, share.n)
    return Verdict("diagnosis", *numbers, None, 0.0, "lower", found.kind == "rotation", found.sentence)


def _kinds(s: Symptoms) -> list[Kind]:
    if not s.failed:
        return ["rotation"]
    if not s.failed_by_value:
        return ["undecided"]
    scrambled = s.live > 0 and (s.found == 0 or (s.unrelated and s.curve not in ("warp", "shear")))
    incomplete = bool(s.collapsed or scrambled or s.lost)
    surplus = s.width > s.states and not incomplete and s.passed("r2") and not s.passed("r2_inverse")
    shaped = not scrambled and not surplus
    curved = shaped and s.curved
    leaning = s.leaning and not (incomplete or s.copies or s.combined or (curved and s.curve != "warp"))
    rules: list[tuple[Kind, bool]] = [
        ("collapsed", s.collapsed > 0),
        ("scramble", scrambled),
        ("missing", s.lost > s.collapsed and not scrambled),
        (s.curve, curved),
        ("noise", shaped and s.noisy),
        ("shear", leaning),
        ("surplus", surplus or (s.copies + s.combined > 0 and not incomplete)),
    ]
    return [kind for kind, holds in rules if holds] or [s.curve if s.nonlinear >= s.noise else "noise"]


def _share(kind: Kind, s: Symptoms) -> Estimate:
    if kind == "collapsed":
        return s.counted("effective_rank")
    if kind == "missing":
        return s.counted("coverage")
    if kind == "surplus":
        return Estimate(*[1 - s.states / s.width] * 3, n=s.verdicts["r2"].n)
    if kind == "shear" and not s.bent:
        return s.estimate("stretch")
    if kind in ("warp", "shear", "noise"):
        return s.estimate(f"share_{kind}")
    return s.without("share_linear" if kind == "bend" else "r2")


def _sentence(kind: Kind, s: Symptoms) -> str:
    """What it is, in plain words, and what to do."""
    share = f"{_share(kind, s).value:.1%}" if kind != "rotation" else ""
    bent, blurred = _own(s, "nonlinear"), _own(s, "noise")
    return {
        "rotation": "Rotation: the latents are the world's coordinates, turned"
        + (" and scaled by a common factor; whitening undoes that." if s.scaled else "."),
        "undecided": "Undecided: the values are those of a rotation, but the intervals are too wide to be sure. Give "
        "more samples.",
        "collapsed": f"Collapsed dimension: {s.collapsed} of {s.width} latent directions without variance to speak of"
        + _collapse(s),
        "scramble": f"Scramble: the latents have little or no linear relation with the state{_scrambled(s)}",
        "missing": f"Missing dimension: {s.advice('coverage')[0].lower()}{s.advice('coverage')[1:]}"
        + (f" {s.advice('repeated_coordinates')}" if s.copies else "")
        + " Use more latents, or show the encoder what it does not see.",
        "warp": f"Warp: {share} of the variance{bent} is each coordinate curved along its own axis, as a cube does"
        f"{_besides(s, 'shear', 'coordinates bent into the directions of others')}. In a world that is not "
        f"Gaussian this is to be expected, and {_undone(s)}; in a Gaussian one, train longer.",
        "shear": f"Shear: {share} of the variance{bent} is coordinates bent into the directions of others"
        f"{_besides(s, 'warp', 'each coordinate curved along its own axis')}. Train longer, or check that "
        "views are aligned."
        if s.bent
        else "Shear: the latents are linear in the state, but stretch some directions more than others (by "
        f"{share} of the mean variance). Whitening the latents undoes it.",
        "bend": f"Bend: {share} of the variance{bent} is not linear, and neither a warp nor a shear explains it. Train "
        "longer, or check the world's assumptions (Gaussian, one rate).",
        "noise": f"Noise: {share} of the variance{blurred} is no function of the state that was tried. Average it "
        "out, or find what else the latents follow.",
        "surplus": f"Surplus dimension: {s.width} latents hold all {s.states} directions of the state"
        + (
            "."
            if s.passed("r2_inverse")
            else f", and more: {1 - s.value('r2_inverse'):.1%} of their variance is not linear in it."
        )
        + (f" {s.combined} of them are linear combinations of the others." if s.combined else "")
        + (f" {s.advice('repeated_coordinates')}" if s.copies else "")
        + " Use fewer latents.",
    }[kind]


def _besides(s: Symptoms, kind: Literal["warp", "shear"], what: str) -> str:
    """The smaller part of what is curved, where it is one."""
    other = s.value(f"share_{kind}")
    return f", and {other:.1%} {what}" if other > NOTABLE else ""


def _own(s: Symptoms, part: Literal["nonlinear", "noise"]) -> str:
    """Where it is little of all, but much of one direction."""
    return f" ({s.value(f'worst_{part}'):.0%} of one direction's)" if s.hidden(part) else ""


def _scrambled(s: Symptoms) -> str:
    """Whether the state is in them all the same, and what to do."""
    anew = "Do rows of h and z belong together? If so, the encoder has learned something else."
    if s.found == 0:
        return f", and no function of them that was tried finds it. {anew}"
    score = f"R² {s.value('r2_nonlinear'):z.2f}"
    if s.curled:
        again = "Train longer, or check that views are aligned."
        return f", though a nonlinear function of them finds it ({score}). {again}"
    return f", and functions of them that were tried find hardly any of it either ({score}). {anew}"


def _collapse(s: Symptoms) -> str:
    """What became of the state with it, and what to do."""
    spread = "Strengthen what keeps the latents spread (SIGReg, a variance term), or learn more slowly."
    if s.lost:
        return f", and {s.lost} of {s.states} directions of the state lost with it. {spread}"
    if s.spread_holds_all:
        return "; the others hold the whole state. Use fewer latents."
    left = (
        f" (R² {s.value('r2'):z.2f} with them, {s.value('r2_varying'):z.2f} without)" if s.knows("r2_varying") else ""
    )
    return f", in which a part of the state is still written{left}. Whitening brings it back. {spread}"


def _undone(s: Symptoms) -> str:
    """What is recovered where the warp is undone, if that was tried."""
    if not s.knows("r2_unwarped"):
        return "fit_warp, or fit_latent_warp, undoes it"
    found = s.estimate("r2_unwarped")
    how = (
        "the latents' own coordinates, h = w(Qz), undone (fit_latent_warp)"
        if s.warped_latents
        else ("the states' coordinates, h = Qw(z), undone (fit_warp)")
    )
    return f"with one warp shared by {how} R² is {found.value:z.4f} [{found.low:z.4f}, {found.high:z.4f}]"
