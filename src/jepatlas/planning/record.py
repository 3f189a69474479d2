"""What came of planning, as a record: how often goals were reached, beside chance, how long it took, and episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.base.proportions import paired_difference, success_rate
from jepatlas.base.provenance import provenance
from jepatlas.base.records import Estimate, Record, Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.base.stats import bootstrap
from jepatlas.planning.driving import Drive
from jepatlas.planning.films import Films, driven_films
from jepatlas.worlds import ActionWorld, FlatWorld

__all__ = ["planning_record", "success_table"]

SHOWN = 6  # episodes that are kept as films


def planning_record(
    title: str,
    world: ActionWorld,
    drives: Mapping[str, Drive],
    chance: np.ndarray,
    *,
    seed: int,
    films: Sequence[Films] = (),
    about: Mapping[str, Any] | None = None,
) -> Record:
    """`drives` are of the same tasks, the first of them the one that is judged; `chance` is what random actions do."""
    first, main = next(iter(drives.items()))
    success = success_rate(main.reached)
    verdicts = [_success(success, float(chance.mean())), *_lengths(world, main, seed)]
    shown = [driven_films(world, main, SHOWN), *films]
    others = [_beside(name, first, main, drive) for name, drive in drives.items() if name != first]
    share = f"{success.value:.0%} [{success.low:.0%}, {success.high:.0%}]"
    summary = (
        f"{_begun(first)} reached {int(main.reached.sum())} of {success.n} goals ({share}); random actions "
        f"{chance.mean():.0%}. {' '.join(others)}".strip()
    )
    return Record(
        title,
        summary,
        provenance(seed) | {"tasks": success.n} | dict(about or {}),
        tuple(verdicts),
        (*(figure for _, figure in shown if figure["panels"]), _energies(drives)),
        (success_table(world, drives, chance),),
        {name: array for arrays, _ in shown for name, array in arrays.items()},
    )


def success_table(world: ActionWorld, drives: Mapping[str, Drive], chance: np.ndarray) -> dict[str, Any]:
    rows = [[name, *_share(drive.reached), _typical(drive), *_ratio(world, drive)] for name, drive in drives.items()]
    rows.append(["random actions", *_share(chance), "", ""])
    columns = ["who drives", "reached", "share [95%]", "steps where reached", "times the shortest way"]
    return {"title": "Goals reached", "columns": columns, "rows": rows}


def _success(success: Estimate, chance: float) -> Verdict:
    advice = (
        "The share of goals that were reached, on starts and goals that no training has seen."
        if success.low > chance
        else "No better than random actions: look at the imagined rollouts, train longer, or give the planner a longer "
        "horizon or another energy."
    )
    return Verdict.judge("success", success, direction="higher", good=advice, null=chance)


def _lengths(world: ActionWorld, drive: Drive, seed: int) -> list[Verdict]:
    ratio = _ratios(world, drive)
    if ratio is None or len(ratio) < 2:
        return []

    def median(weights: np.ndarray) -> dict[str, float]:
        return {"median": float(np.median(np.repeat(ratio, weights.round().astype(int))))}

    found = bootstrap(median, len(ratio), numpy_generator(seed, "lengths"))["median"]
    good = "How many times longer than the shortest way the agent took, where it arrived: the median."
    return [Verdict.judge("detour", found, direction="lower", good=good)]


def _ratios(world: ActionWorld, drive: Drive) -> np.ndarray | None:
    """Steps over the least number of steps to within reach, for the goals that were reached; where it is known."""
    if not isinstance(world, FlatWorld) or world.current is not None or not drive.reached.any():
        return None
    pairs = zip(drive.tasks.starts[drive.reached], drive.tasks.goals[drive.reached], strict=True)
    least = np.array([world.distance_to(goal, start[None])[0] for start, goal in pairs]) - world.reach
    return drive.steps[drive.reached] / np.maximum(np.ceil(least), 1)


def _share(reached: np.ndarray) -> list[str]:
    found = success_rate(reached)
    return [f"{int(reached.sum())} of {found.n}", f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"]


def _typical(drive: Drive) -> str:
    return f"{np.median(drive.steps[drive.reached]):.0f}" if drive.reached.any() else "–"


def _ratio(world: ActionWorld, drive: Drive) -> list[str]:
    ratio = _ratios(world, drive)
    return ["–" if ratio is None else f"{np.median(ratio):.2f}"]


def _beside(name: str, first: str, main: Drive, other: Drive) -> str:
    gap = paired_difference(main.reached, other.reached)
    points, low, high = (f"{100 * value:+.0f}" for value in (gap.value, gap.low, gap.high))
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
        "y_label": "energy / energy at the start",
        "panels": [{"title": name, "series": _falling(drive)} for name, drive in drives.items()],
    }


def _falling(drive: Drive) -> Sequence[dict[str, Any]]:
    share = drive.energies / np.maximum(drive.energies[:, :1], 1e-9)
    groups = {"reached": drive.reached, "not reached": ~drive.reached}
    return [
        {"name": f"{name} (median of {int(rows.sum())})", "x": list(range(share.shape[1])),
         "y": np.median(share[rows], 0).tolist(), "low": np.quantile(share[rows], 0.25, 0).tolist(),
         "high": np.quantile(share[rows], 0.75, 0).tolist()}
        for name, rows in groups.items() if rows.any()
    ]  # fmt: skip
