"""Records of planning: success rates with controls, path lengths, energies along the way, and films."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.core.figures import Curve, CurvePanel, Curves, Film, Table
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap, paired_difference, success_rate
from jepatlas.data import RandomPolicy
from jepatlas.workflows.plan.driving import Drive
from jepatlas.workflows.plan.episode_films import Films, driven_films
from jepatlas.workflows.plan.planning_agent import PlanningAgent
from jepatlas.worlds import ActionWorld, FlatWorld

__all__ = ["planning_record", "success_table"]

MAX_FILMS = 6  # episodes shown as films
NONE = "–"


def planning_record(
    title: str,
    world: ActionWorld | None,
    drives: Mapping[str, Drive],
    chance: np.ndarray,
    *,
    seed: int,
    agent: PlanningAgent | None = None,
    explored: RandomPolicy | None = None,
    films: Sequence[Films] = (),
    about: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Record:
    """The record of drives of the same tasks; the first one is judged, and the others are compared with it.

    `chance` (b,) says which goals random actions reach: those of the policy `explored`, or else independent ones. With
    the `agent` of the first drive, films also show its imagination. `notes` are added to the summary. `world` is None
    for an environment, whose `films` are given.
    """
    first, main = next(iter(drives.items()))
    success = success_rate(main.reached)
    verdicts = [_success_verdict(success, float(chance.mean())), *_detour_verdicts(world, main, seed)]
    share = f"{success.value:.0%} [{success.low:.0%}, {success.high:.0%}]"
    summary = [
        f"{_capitalised(first)} reached {int(main.reached.sum())} of {success.n} goals ({share}); random actions "
        f"{chance.mean():.0%} ({_random_actions(explored)})."
    ]
    for name, drive in drives.items():
        if name != first:
            summary.append(_comparison(name, first, main, drive))
    unreachable = int(main.unreachable.sum())
    if unreachable:
        summary.append(f"For {unreachable} of the goals, every candidate of the first plan had energy +∞.")
    if agent is not None and agent.linear is not None:
        verdicts.append(agent.linear.verdict())
        summary.append(agent.linear.summary)
    arrays: dict[str, np.ndarray] = {}
    figures: list[Film | Curves] = []
    driven = [] if world is None else [driven_films(world, main, MAX_FILMS, agent, seed)]
    for frames, film in [*driven, *films]:
        arrays |= frames
        if film.panels:
            figures.append(film)
    energies = _energy_curves(drives)
    if energies.panels:
        figures.append(energies)
    return Record(
        title=title,
        summary=" ".join([*summary, *filter(None, notes)]),
        provenance=provenance(seed) | {"tasks": success.n} | dict(about or {}),
        verdicts=tuple(verdicts),
        figures=tuple(figures),
        tables=(success_table(world, drives, chance),),
        arrays=arrays,
    )


def _random_actions(explored: RandomPolicy | None) -> str:
    """
    >>> _random_actions(RandomPolicy(persistence=0.8))
    'by the policy that collected the training data: persistence 0.8'
    """
    if explored is None:
        return "independent at each step"
    repeat = f", each repeated for {explored.repeat} steps" if explored.repeat > 1 else ""
    return f"by the policy that collected the training data: persistence {explored.persistence:g}{repeat}"


def _capitalised(name: str) -> str:
    """
    >>> _capitalised("roomsA's planner")
    "RoomsA's planner"
    """
    return name[:1].upper() + name[1:]


def _comparison(name: str, first: str, main: Drive, other: Drive) -> str:
    gap = paired_difference(main.reached, other.reached)
    points, low, high = (f"{100 * value:+z.0f}" for value in (gap.value, gap.low, gap.high))
    return f"{_capitalised(first)} minus {name}: {points} percentage points [{low}, {high}]."


def _success_verdict(success: Estimate, chance: float) -> Verdict:
    if success.low > chance:
        advice = "Share of goals reached, for random starts and goals."
    else:
        advice = (
            "Not shown to be better than random actions. Check the imagined rollouts, train longer, or use a longer "
            "horizon or another energy."
        )
    return Verdict.judge("success", success, direction="higher", good=advice, null=chance)


def _detour_verdicts(world: ActionWorld | None, drive: Drive, seed: int) -> list[Verdict]:
    ratio = _detours(world, drive)
    if ratio is None or len(ratio) < 2:
        return []

    def median(weights: np.ndarray) -> dict[str, float]:
        return {"median": float(np.median(np.repeat(ratio, weights.round().astype(int))))}

    estimate = bootstrap(median, len(ratio), numpy_generator(seed, "lengths"))["median"]
    advice = "Median path length relative to the shortest path, over the goals reached."
    return [Verdict.judge("detour", estimate, direction="lower", good=advice)]


def success_table(world: ActionWorld | None, drives: Mapping[str, Drive], chance: np.ndarray) -> Table:
    """Success and path lengths of each drive; narrow enough for a terminal of 80 columns."""
    rows = []
    for name, drive in drives.items():
        steps, ratio = NONE, NONE
        if drive.reached.any():
            steps = f"{np.median(drive.steps[drive.reached]):.0f}"
        detours = _detours(world, drive)
        if detours is not None:
            ratio = f"{np.median(detours):.2f}"
        rows.append([name, *_share(drive.reached), steps, ratio, str(int(drive.unreachable.sum()))])
    rows.append(["random actions", *_share(chance), NONE, NONE, NONE])
    return Table(
        title="Goals reached (medians over goals reached; +∞: no finite plan at the start)",
        columns=["agent", "reached", "share [95%]", "steps", "× shortest", "+∞"],
        rows=rows,
    )


def _share(reached: np.ndarray) -> list[str]:
    rate = success_rate(reached)
    return [f"{int(reached.sum())} of {rate.n}", f"{rate.value:.2f} [{rate.low:.2f}, {rate.high:.2f}]"]


def _detours(world: ActionWorld | None, drive: Drive) -> np.ndarray | None:
    """Steps divided by the least number of steps, for the goals reached; None where that number is unknown."""
    if not isinstance(world, FlatWorld) or world.current is not None or not drive.reached.any():
        return None
    least = []
    for start, goal in zip(drive.tasks.starts[drive.reached], drive.tasks.goals[drive.reached], strict=True):
        least.append(world.distance_to(goal, start[None])[0] - world.reach)
    return drive.steps[drive.reached] / np.maximum(np.ceil(least), 1)


def _energy_curves(drives: Mapping[str, Drive]) -> Curves:
    """The agent's energy to the goal over time: it should fall, and stays constant where the agent is stuck."""
    panels = []
    for name, drive in drives.items():
        curves = _relative_energies(drive)
        if curves:
            panels.append(CurvePanel(curves, title=name))
    return Curves(
        title="Energy to the goal over time, relative to the start",
        x_label="step",
        y_label="share of the first energy",
        panels=panels,
    )


def _relative_energies(drive: Drive) -> list[Curve]:
    """Medians and quartiles over tasks whose energies are always finite."""
    finite = np.logical_and.reduce(np.isfinite(drive.energies), axis=1)
    share = np.where(finite[:, None], drive.energies, 0) / np.maximum(drive.energies[:, :1], 1e-9)
    curves = []
    for name, rows in (("reached", drive.reached & finite), ("not reached", ~drive.reached & finite)):
        if rows.any():
            curves.append(
                Curve(
                    name=f"{name} (median of {int(rows.sum())})",
                    x=list(range(share.shape[1])),
                    y=np.median(share[rows], 0).tolist(),
                    low=np.quantile(share[rows], 0.25, 0).tolist(),
                    high=np.quantile(share[rows], 0.75, 0).tolist(),
                )
            )
    return curves
