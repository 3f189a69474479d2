"""What was not trained on anything, beside two models: the same map between controls, and whether the models have more.

The control that asks what training did is each model's own network before its first step. Where a file does not hold
its latents, a random network on the raw input stands in for it. It is a weaker rival: of vision transformers on drawn
toys the untrained ones align with R² .87, where random networks on small copies of the images have .39.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jepatlas.alignment import Evidence, pca_control, untrained_control
from jepatlas.alignment.paired import PairedLatents
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.workflows.align.evidence import BRIEF, Fit, Study, gather

__all__ = [
    "PCA",
    "RANDOM",
    "UNTRAINED",
    "WHY",
    "Controls",
    "beyond_controls",
    "controls_said",
    "gather_controls",
    "rivals_of",
]

Controls = Mapping[str, Mapping[str, Evidence]]

PCA = "PCA of the raw input"
UNTRAINED = "the same networks, untrained"
RANDOM = "a random network on the raw input"
VERDICTS = {PCA: "r2_beyond_pca", UNTRAINED: "r2_beyond_untrained", RANDOM: "r2_beyond_untrained"}
"""What each is judged under: the random network only stands in for the untrained ones."""
WHY = {
    PCA: "what they agree on may come from the input alone.",
    UNTRAINED: "what they agree on may come from the input and the kind of network, and owe nothing to training.",
    RANDOM: "what they agree on may come from the input alone.",
}
"""What it means to be no better than one of them."""


def rivals_of(matched: PairedLatents) -> list[str]:
    """The names of the controls that there are: those of raw input, where both models' is given."""
    learnt_nothing = [UNTRAINED] if matched.has_untrained else [RANDOM] if matched.has_raw else []
    return [*([PCA] if matched.has_raw else []), *learnt_nothing]


def gather_controls(matched: PairedLatents, fit: Fit, study: Study) -> dict[str, dict[str, Evidence]]:
    """The same map between what was not trained on anything."""
    found = {name: _latents(name, matched, study) for name in rivals_of(matched)}
    return {name: gather(a, b, fit, study, BRIEF) for name, (a, b) in found.items()}


def _latents(name: str, matched: PairedLatents, study: Study) -> list[np.ndarray]:
    """Of both sides, (b, k) each."""
    if name == UNTRAINED:
        return [one.untrained for one in (matched.a, matched.b) if one.untrained is not None]
    sides = {"untrained a": matched.a, "untrained b": matched.b}
    given = {side: (one.raw, one.h.shape[1]) for side, one in sides.items() if one.raw is not None}
    if name == PCA:
        return [pca_control(raw, width, study.split.fit) for raw, width in given.values()]
    return [untrained_control(raw, width, numpy_generator(study.seed, side)) for side, (raw, width) in given.items()]


def beyond_controls(r2: Evidence, controls: Controls) -> list[Verdict]:
    """Whether R² is higher than each control's."""
    return [
        Verdict.judge(
            VERDICTS[name],
            r2.estimate,
            direction="higher",
            null=r2.null.mean,
            threshold=control["r2"].estimate.high,
            good=f"The models align better than {name} (R² {control['r2'].estimate.value:.3f}).{_weaker(name)}",
            bad=f"{_not_better(r2, control['r2'])} than {name} (R² {_interval(control['r2'])}): {WHY[name]}",
        )
        for name, control in controls.items()
    ]


def _weaker(name: str) -> str:
    """That it stands in for the network itself is said where it might be taken for that."""
    if name != RANDOM:
        return ""
    return (
        " That need not be training's merit: the models' own networks may align as well before it. Store their "
        "latents as 'untrained' in both files (jepatlas encode does)."
    )


def _not_better(r2: Evidence, control: Evidence) -> str:
    worse = control.estimate.low > r2.estimate.high
    return "The models align worse" if worse else "It is not beyond doubt that the models align better"


def _interval(one: Evidence) -> str:
    return f"{one.estimate.value:z.3f} [{one.estimate.low:z.3f}, {one.estimate.high:z.3f}]"


def controls_said(r2: Evidence, controls: Controls) -> list[str]:
    """A sentence for each."""
    if not controls:
        return ["What the raw input alone would give is not known: --raw-a and --raw-b tell."]
    return [_said(name, r2, control["r2"]) for name, control in controls.items()]


def _said(name: str, r2: Evidence, control: Evidence) -> str:
    """Beyond doubt, where the intervals do not meet; where they do, the difference may be chance."""
    several = name == UNTRAINED
    gives = "give" if several else "gives"
    if r2.estimate.low > control.estimate.high:
        told = f"{gives} less"
    else:
        told = f"{gives} more" if control.estimate.low > r2.estimate.high else "may give as much"
    return f"{name[0].upper()}{name[1:]}{',' * several} {told}: {control.cell}."
