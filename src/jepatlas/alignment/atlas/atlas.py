"""The atlas: K models in one common frame, by K maps and not K². Any two of them translate through the frame.

A model that comes later is fitted to the frame alone: the atlas keeps anchors, states with their frame coordinates, and
a newcomer that has seen some of them is turned onto these. The other charts stay as they are, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from jepatlas.alignment.atlas.charts import Attachment, Chart, ChartLatents, standardiser
from jepatlas.alignment.atlas.frames import Frame, consensus, generalised_procrustes
from jepatlas.alignment.atlas.placing import place, rank
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.linear import subsample
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict

__all__ = ["Anchors", "Atlas"]

ANCHORS = 1024


@dataclass(frozen=True)
class Anchors:
    """States by id, and where they lie in the frame."""

    ids: np.ndarray  # (n,) int64 or text
    coordinates: np.ndarray  # (n, D)


@dataclass(frozen=True)
class Atlas:
    """Charts of one world.

    >>> h = np.random.default_rng(0).standard_normal((300, 2))
    >>> states = np.arange(300)
    >>> atlas = Atlas.build([ChartLatents("ada", h, states), ChartLatents("ben", 3 * h[:, ::-1] + 1, states)])
    >>> atlas.translate(np.array([[1.0, 2.0]]), "ada", "ben").round(6).tolist()
    [[7.0, 4.0]]
    """

    charts: tuple[Chart, ...]
    anchors: Anchors
    judged: tuple[Verdict, ...] | None = None
    """What held-out states said of it, to be sealed in with it; None where nobody asked them."""

    def __post_init__(self) -> None:
        folded = [name.casefold() for name in self.names]  # some disks do not tell 'Ada' from 'ada'
        if twice := sorted({name for name in self.names if folded.count(name.casefold()) > 1}):
            raise InputError(f"Every chart needs a name of its own, but {' and '.join(twice)} was given twice.")
        if not self.charts:
            raise InputError("An atlas has at least one chart, but there is none.")

    @classmethod
    def build(cls, charts: Sequence[ChartLatents], *, anchors: int = ANCHORS) -> Self:
        """Fit the frame on the states that charts share; keep up to so many of them as anchors."""
        if len(charts) < 2:
            raise InputError(f"An atlas is built from at least 2 charts, but {len(charts)} was given.")
        names, ids = [chart.name for chart in charts], [chart.ids for chart in charts]
        _check_ids(ids)
        maps = [standardiser(chart) for chart in charts]
        u = [one.apply(chart.latents) for one, chart in zip(maps, charts, strict=True)]
        frame = generalised_procrustes(u, ids, names)
        states = _most_seen(ids, anchors)
        placed = tuple(_place(chart, maps[k], frame, k) for k, chart in enumerate(charts))
        return cls(placed, Anchors(states, consensus(dict(enumerate(frame.maps)), u, ids, states)))

    @property
    def width(self) -> int:
        """Dimensions of the common frame."""
        return self.anchors.coordinates.shape[1]

    @property
    def names(self) -> list[str]:
        return [chart.name for chart in self.charts]

    def chart(self, name: str) -> Chart:
        for chart in self.charts:
            if chart.name == name:
                return chart
        raise InputError(f"The atlas has no chart '{name}'. {did_you_mean(name, self.names)}")

    def map(self, source: str, target: str) -> LinearMap:
        """The transition map: into the frame, and out of it."""
        return self.chart(source).into.compose(self.chart(target).out)

    def translate(self, latents: np.ndarray, source: str, target: str) -> np.ndarray:
        """Latents (n, d) of one chart in the coordinates of another."""
        width = self.chart(source).width
        if np.ndim(latents) != 2 or latents.shape[1] != width:
            raise InputError(f"Latents of '{source}' have the shape (n, {width}), but {np.shape(latents)} was given.")
        return self.map(source, target).apply(latents)

    def add(self, chart: ChartLatents) -> Self:
        """With one more chart, turned onto the anchors that it has seen; all else stays bit for bit as it is.

        Nothing is judged of it by that.
        """
        _check_ids([self.anchors.ids, chart.ids])
        _, known, rows = np.intersect1d(self.anchors.ids, chart.ids, assume_unique=True, return_indices=True)
        if len(rows) < 2:
            raise InputError(
                f"'{chart.name}' has seen {len(rows)} of the atlas' {len(self.anchors.ids)} anchors, but at least 2 "
                f"are needed (more than its {chart.latents.shape[1]} dimensions, to place all of them). Give latents "
                "of the anchor states, under their ids."
            )
        white, goal = standardiser(chart), self.anchors.coordinates[known]
        u = white.apply(chart.latents[rows])
        tied = rank((goal - goal.mean(0)).T @ (u - u.mean(0)))
        placed = Chart(chart.name, white, place(u, goal), tied, len(rows), chart.certificate, chart.provenance)
        return replace(self, charts=(*self.charts, placed))

    def judge(self, verdicts: Sequence[Verdict]) -> Self:
        """With these verdicts of held-out states, beside those that it has."""
        return replace(self, judged=(*(self.judged or ()), *verdicts))

    def attach(self, name: str, attachment: Attachment) -> Self:
        """With a probe, an energy or the like on the chart `name`."""
        changed = self.chart(name).attach(attachment)
        return replace(self, charts=tuple(changed if chart.name == name else chart for chart in self.charts))

    def verdicts(self) -> list[Verdict]:
        """Of each chart, how many of its directions the shared states hold in place, be it by noise.

        The one that a last layer normalisation takes is not among them.
        """
        return [_tied_verdict(chart, self.width) for chart in self.charts]


def _place(chart: ChartLatents, white: LinearMap, frame: Frame, k: int) -> Chart:
    return Chart(chart.name, white, frame.maps[k], frame.tied[k], frame.shared[k], chart.certificate, chart.provenance)


def _tied_verdict(chart: Chart, width: int) -> Verdict:
    found = Estimate(chart.tied, chart.tied, chart.tied, chart.states)
    # noise of so many states, too, has a cross-scatter of full rank: all of it is no evidence, but less is a lack
    noise = min(chart.full, width, max(chart.states - 1, 0))
    but = ", but for the one that a last layer normalisation takes: nothing is lost there" if chart.normed else ""
    loose = f"{chart.full - chart.tied} of {chart.full} directions of '{chart.name}' are tied to no other chart"
    if chart.full > width:
        why = f"the frame has {width} dimensions; build the atlas anew with this chart in it to keep them"
    elif chart.states <= chart.full:
        why = f"it shares only {chart.states} states; share more than {chart.full}"
    else:
        why = "the others do not see them, or its latents do not vary there"
    return Verdict.judge(
        f"{chart.name}.tied",
        found,
        direction="higher",
        null=float(noise),
        threshold=chart.full if chart.tied < chart.full else None,
        good=f"The states that '{chart.name}' shares are enough to hold all its directions in place{but}. So they "
        "would be for noise: whether charts agree there, held-out states say.",
        bad=f"{loose}, and translate to nothing or by accident: {why}.",
    )


def _check_ids(ids: Sequence[np.ndarray]) -> None:
    if len({own.dtype.kind for own in ids}) > 1:
        raise InputError("Some ids are numbers and some are texts, so no state could be shared. Use one sort of ids.")


def _most_seen(ids: Sequence[np.ndarray], limit: int) -> np.ndarray:
    """States that most charts have seen; an even choice of the last that still find room."""
    if limit < 2:
        raise InputError(f"An atlas keeps at least 2 anchors, but {limit} was asked for.")
    states, counts = np.unique(np.concatenate(ids), return_counts=True)
    states, counts = states[counts > 1], counts[counts > 1]
    if len(states) <= limit:
        return states
    least = np.sort(counts)[-limit]
    first, last = states[counts > least], states[counts == least]
    return np.concatenate([first, subsample(last, limit - len(first))])
