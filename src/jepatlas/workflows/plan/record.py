"""What came of planning, as a record: how often goals were reached, beside chance, how long it took, and episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap, paired_difference, success_rate
from jepatlas.data import RandomPolicy
from jepatlas.workflows.plan.agents import PlanningAgent
from jepatlas.workflows.plan.driving import Drive
from jepatlas.workflows.plan.films import Films, driven_films
from jepatlas.workflows.plan.success import detours, success_table
from jepatlas.worlds import ActionWorld

__all__ = ["planning_record"]

SHOWN = 6  # episodes that are kept as films


def planning_record(
    title: str,
    world: ActionWorld,
    drives: Mapping[str, Drive],
    chance: np.ndarray,
    *,
    seed: int,
    agent: PlanningAgent | None = None,
    explored: RandomPolicy | None = None,
    films: Sequence[Films] = (),
    about: Mapping[str, Any] | None = None,
) -> Record:
    """`drives` are of the same tasks, the first of them the one that is judged; `chance` is what random actions do.

    They are those of `explored`, where it is given, and have no memory where it is not. Where the `agent` that drove
    the first is given, what it imagined is shown beside what it did.
    """
    first, main = next(iter(drives.items()))
    success = success_rate(main.reached)
    verdicts = [_success(success, float(chance.mean())), *_lengths(world, main, seed)]
    shown = [driven_films(world, main, SHOWN, agent, seed), *films]
    linear = None if agent is None else agent.linear
    if linear is not None:
        verdicts.append(linear.verdict())
    others = [_beside(name, first, main, drive) for name, drive in drives.items() if name != first]
    share = f"{success.value:.0%} [{success.low:.0%}, {success.high:.0%}]"
    summary = (
        f"{_begun(first)} reached {int(main.reached.sum())} of {success.n} goals ({share}); random actions "
        f"{chance.mean():.0%} ({_null(explored)})."
    )
    said = [summary, *others, _lost(main), "" if linear is None else linear.said]
    return Record(
        title,
        " ".join(filter(None, said)),
        provenance(seed) | {"tasks": success.n} | dict(about or {}),
        tuple(verdicts),
        tuple(figure for figure in (*(figure for _, figure in shown), _energies(drives)) if figure["panels"]),
        (success_table(world, drives, chance),),
        {name: array for arrays, _ in shown for name, array in arrays.items()},
    )


def _null(explored: RandomPolicy | None) -> str:
    """
    >>> _null(RandomPolicy(persistence=0.8))
    'those it explored by: persistence 0.8'
    """
    if explored is None:
        return "each drawn anew"
    held = f", each held for {explored.repeat} steps" if explored.repeat > 1 else ""
    return f"those it explored by: persistence {explored.persistence:g}{held}"


def _success(success: Estimate, chance: float) -> Verdict:
    advice = (
        "The share of goals that were reached, on starts and goals that no training has seen."
        if success.low > chance
        else "No better than random actions: look at the imagined rollouts, train longer, or give the planner a longer "
        "horizon or another energy."
    )
    return Verdict.judge("success", success, direction="higher", good=advice, null=chance)


def _lengths(world: ActionWorld, drive: Drive, seed: int) -> list[Verdict]:
    ratio = detours(world, drive)
    if ratio is None or len(ratio) < 2:
        return []

    def median(weights: np.ndarray) -> dict[str, float]:
        return {"median": float(np.median(np.repeat(ratio, weights.round().astype(int))))}

    found = bootstrap(median, len(ratio), numpy_generator(seed, "lengths"))["median"]
    good = "How many times longer than the shortest way the agent took, where it arrived: the median."
    return [Verdict.judge("detour", found, direction="lower", good=good)]


def _lost(drive: Drive) -> str:
    """What the agent itself held to be impossible."""
    count = int(drive.out_of_reach.sum())
    goals = "1 goal was" if count == 1 else f"{count} goals were"
    return f"{goals} out of reach, as it saw them: whatever it tried at the start had the energy +∞." if count else ""


def _beside(name: str, first: str, main: Drive, other: Drive) -> str:
    gap = paired_difference(main.reached, other.reached)
    points, low, high = (f"{100 * value:+z.0f}" for value in (gap.value, gap.low, gap.high))
    return f"{_begun(first)} less {name}: {points} points [{low}, {high}]."


def _begun(name: str) -> str:
    """
    >>> _begun("roomsA's planner")
    "RoomsA's planner"
    """
    return name[:1].upper() + name[1:]


def _energies(drives: Mapping[str, Drive]) -> dict[str, Any]:
    """What an agent thinks is still to go, along the way: it should fall, and does not where it is stuck."""
    return {
        "kind": "curves",
        "title": "Energy to the goal along the way, as a share of the first",
        "x_label": "step",
        "y_label": "share of the first energy",
        "panels": [{"title": name, "series": found} for name, drive in drives.items() if (found := _falling(drive))],
    }


def _falling(drive: Drive) -> Sequence[dict[str, Any]]:
    """Of tasks whose energies are finite all the way: of +∞ there are no shares."""
    finite = np.logical_and.reduce(np.isfinite(drive.energies), axis=1)
    share = np.where(finite[:, None], drive.energies, 0) / np.maximum(drive.energies[:, :1], 1e-9)
    groups = {"reached": drive.reached & finite, "not reached": ~drive.reached & finite}
    return [
        {
            "name": f"{name} (median of {int(rows.sum())})",
            "x": list(range(share.shape[1])),
            "y": np.median(share[rows], 0).tolist(),
            "low": np.quantile(share[rows], 0.25, 0).tolist(),
            "high": np.quantile(share[rows], 0.75, 0).tolist(),
        }
        for name, rows in groups.items()
        if rows.any()
    ]
