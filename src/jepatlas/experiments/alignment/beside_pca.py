"""Does anything beat PCA of the pixels? Asked with standardised latents, as published, and with latents as they are.

Standardising gives PCA's faint directions, which two views hardly share, the weight of its strong ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import grouped, mean_and_range, select

__all__ = ["beside_pca", "best_runs"]


def best_runs(results: Sequence[Result], name: str = "r2") -> list[Result]:
    """The runs, over seeds, of the control and width that align best."""
    kinds = grouped(results, "control", "width").values()
    return max(kinds, key=lambda runs: mean_and_range(runs, name).value, default=[])


def beside_pca(results: Sequence[Result]) -> str:
    """The answer for one scene; nothing where one of the two did not finish."""
    untrained, pca = (select(results, control=control) for control in ("untrained", "pca"))
    if not untrained or not pca:
        return ""
    (answer, shown), (raw, raw_shown) = (_duel(untrained, pca, name) for name in ("r2", "r2_raw"))
    depends = "" if answer == raw else ": which is better depends on standardising"
    return f"With standardised latents {answer} ({shown}), with latents as they are {raw} ({raw_shown}){depends}."


def _duel(untrained: Sequence[Result], pca: Sequence[Result], name: str) -> tuple[str, str]:
    """Each at its best width; one beats the other where its lowest seed is above the other's highest."""
    ours, theirs = (mean_and_range(best_runs(runs, name), name) for runs in (untrained, pca))
    answer = "an untrained encoder beats PCA" if ours.low > theirs.high else "nothing beats PCA"
    if ours.low <= theirs.high and theirs.low <= ours.high:
        answer = "an untrained encoder and PCA are too close to tell"
    return answer, f"R² {ours.value:z.3f} against {theirs.value:z.3f}"
