"""Atlas: K models in one common frame by K maps, so that any two of them translate through the frame.

A model that joins later is fitted to the frame only. For this the atlas keeps anchors, states with their coordinates in
the frame; a new chart that has some of these states is rotated onto them. The other charts do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from jepatlas.alignment.atlas.chart import Attachment, Chart, ChartLatents, standardiser
from jepatlas.alignment.atlas.common_frame import Frame, consensus, generalised_procrustes, place, rank
from jepatlas.alignment.probes import LinearProbe, migrate
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.linear import subsample
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict

__all__ = ["Anchors", "Atlas", "attach_probe", "probe_for", "probe_of"]

ANCHORS = 1024
PROBE = "probe"


@dataclass(frozen=True)
class Anchors:
    """Ids of states and their coordinates in the frame."""

    ids: np.ndarray  # (n,) int64 or text
    coordinates: np.ndarray  # (n, D)


@dataclass(frozen=True)
class Atlas:
    """Charts of one world in a common frame.

    >>> h = np.random.default_rng(0).standard_normal((300, 2))
    >>> states = np.arange(300)
    >>> atlas = Atlas.build([ChartLatents("ada", h, states), ChartLatents("ben", 3 * h[:, ::-1] + 1, states)])
    >>> atlas.translate(np.array([[1.0, 2.0]]), "ada", "ben").round(6).tolist()
    [[7.0, 4.0]]
    """

    charts: tuple[Chart, ...]
    anchors: Anchors
    judged: tuple[Verdict, ...] | None = None
    """Verdicts on held-out states, stored with the atlas; None if it was not judged."""

    def __post_init__(self) -> None:
        folded = [name.casefold() for name in self.names]  # some file systems ignore case
        if twice := sorted({name for name in self.names if folded.count(name.casefold()) > 1}):
            raise InputError(f"Names of charts must be unique, but {' and '.join(twice)} was given twice.")
        if not self.charts:
            raise InputError("An atlas needs at least one chart.")

    @classmethod
    def build(cls, charts: Sequence[ChartLatents], *, anchors: int = ANCHORS) -> Self:
        """Fit the frame on shared states and keep up to `anchors` of them as anchors."""
        if len(charts) < 2:
            raise InputError(f"An atlas needs at least 2 charts, but {len(charts)} was given.")
        for chart in charts:
            if not isinstance(chart, ChartLatents):
                raise InputError(f"'charts' must be ChartLatents(name, latents, ids), not a {type(chart).__name__}.")
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
        """Dimension of the common frame."""
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
        """The transition map from source to target, through the frame."""
        return self.chart(source).into.compose(self.chart(target).out)

    def translate(self, latents: np.ndarray, source: str, target: str) -> np.ndarray:
        """Map latents (n, d) of one chart to the coordinates of another."""
        width = self.chart(source).width
        if np.ndim(latents) != 2 or latents.shape[1] != width:
            raise InputError(f"'latents' of '{source}' must have shape (n, {width}), but have {np.shape(latents)}.")
        return self.map(source, target).apply(latents)

    def add(self, chart: ChartLatents) -> Self:
        """A copy with one more chart, rotated onto the anchors that it shares. Verdicts are not added."""
        _check_ids([self.anchors.ids, chart.ids])
        _, known, rows = np.intersect1d(self.anchors.ids, chart.ids, assume_unique=True, return_indices=True)
        if len(rows) < 2:
            raise InputError(
                f"'{chart.name}' has {len(rows)} of the {len(self.anchors.ids)} anchors of the atlas, but at least 2 "
                f"are needed, and more than {chart.latents.shape[1]} to determine all its dimensions. Give latents of "
                "the anchor states with their ids."
            )
        white, goal = standardiser(chart), self.anchors.coordinates[known]
        u = white.apply(chart.latents[rows])
        tied = rank((goal - goal.mean(0)).T @ (u - u.mean(0)))
        placed = Chart(chart.name, white, place(u, goal), tied, len(rows), chart.certificate, chart.provenance)
        return replace(self, charts=(*self.charts, placed))

    def judge(self, verdicts: Sequence[Verdict]) -> Self:
        """A copy with further verdicts on held-out states."""
        return replace(self, judged=(*(self.judged or ()), *verdicts))

    def attach(self, name: str, attachment: Attachment) -> Self:
        """A copy with an attachment of the chart `name`."""
        changed = self.chart(name).attach(attachment)
        return replace(self, charts=tuple(changed if chart.name == name else chart for chart in self.charts))

    def verdicts(self) -> list[Verdict]:
        """For each chart, how many of its directions shared states tie to other charts.

        A direction that a final layer normalisation removes does not count.
        """
        return [_tied_verdict(chart, self.width) for chart in self.charts]


def _place(chart: ChartLatents, white: LinearMap, frame: Frame, k: int) -> Chart:
    return Chart(chart.name, white, frame.maps[k], frame.tied[k], frame.shared[k], chart.certificate, chart.provenance)


def _tied_verdict(chart: Chart, width: int) -> Verdict:
    found = Estimate.exact(chart.tied, chart.states)
    # The cross-scatter of noise has full rank as well: full rank is no evidence, but lower rank is a deficiency.
    noise = min(chart.full, width, max(chart.states - 1, 0))
    exception = ", except the one that a final layer normalisation removes, which is harmless" if chart.normed else ""
    if chart.full > width:
        reason = f"the frame has {width} dimensions; rebuild the atlas with this chart to keep them"
    elif chart.states <= chart.full:
        reason = f"it shares only {chart.states} states; share more than {chart.full}"
    else:
        reason = "the other charts lack them, or its latents do not vary there"
    return Verdict.judge(
        f"{chart.name}.tied",
        found,
        direction="higher",
        null=float(noise),
        threshold=chart.full if chart.tied < chart.full else None,
        good=f"The shared states are enough to determine all directions of '{chart.name}'{exception}. This holds for "
        "noise, too: whether charts agree is judged on held-out states.",
        bad=f"{chart.full - chart.tied} of {chart.full} directions of '{chart.name}' are tied to no other chart, so "
        f"they cannot be translated: {reason}.",
    )


def _check_ids(ids: Sequence[np.ndarray]) -> None:
    if len({own.dtype.kind for own in ids}) > 1:
        raise InputError("Some ids are numbers and some are strings, so states cannot be matched. Use one type of ids.")


def _most_seen(ids: Sequence[np.ndarray], limit: int) -> np.ndarray:
    """The states that most charts share; an even subsample of the last ones that fit the limit."""
    if limit < 2:
        raise InputError(f"'anchors' must be at least 2, but {limit} was given.")
    states, counts = np.unique(np.concatenate(ids), return_counts=True)
    states, counts = states[counts > 1], counts[counts > 1]
    if len(states) <= limit:
        return states
    least = np.sort(counts)[-limit]
    first, last = states[counts > least], states[counts == least]
    return np.concatenate([first, subsample(last, limit - len(first))])


def attach_probe(atlas: Atlas, chart: str, name: str, probe: LinearProbe) -> Atlas:
    """A copy of the atlas with the probe `name` attached to the chart whose latents it reads."""
    width = atlas.chart(chart).width
    if len(probe.x_mean) != width:
        raise InputError(f"The probe '{name}' reads {len(probe.x_mean)} dimensions, but '{chart}' has {width}.")
    return atlas.attach(chart, Attachment(PROBE, name, probe.to_bytes()))


def probe_of(atlas: Atlas, chart: str, name: str) -> LinearProbe:
    """The probe `name` of a chart."""
    data = atlas.chart(chart).attachment(PROBE, name).data
    return LinearProbe.from_bytes(data, f"The attached probe '{name}' of the chart '{chart}'")


def probe_for(atlas: Atlas, chart: str, name: str, source: str) -> LinearProbe:
    """The probe `name` of the chart `source`, migrated to `chart` without training."""
    return migrate(probe_of(atlas, source, name), atlas.map(source, chart))
