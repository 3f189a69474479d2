"""What a monitor has found so far: typed rows, and their summary and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from jepatlas.core.figures import Curve, CurvePanel, Curves
from jepatlas.core.records import Estimate, Verdict

__all__ = ["MonitorRow", "history_figure", "history_summary"]

TITLES = {
    "r2": "held-out R² of the state",
    "bound": "bound on E‖h − Qz‖²",
    "bound_whitened": "bound, whitened latents",
    "rho": "ρ of the slowest function",
    "dimension": "independent directions",
    "effective_rank": "directions that vary",
    "sigreg": "SIGReg statistic",
}
LOGARITHMIC = ("bound", "bound_whitened", "sigreg")


@dataclass(frozen=True)
class MonitorRow:
    """What a monitor found at one step. A number that the pairs do not give is NaN."""

    step: int
    pairs: int
    seconds: float
    """Time of the computation, without collecting pairs."""
    r2: Estimate | None
    """Held-out R² of the true state by least squares; None if it was not given."""
    bound: Estimate
    """Theorem 3: an upper bound on the mean squared distance of the latents from a rotation of the state."""
    bound_whitened: Estimate
    """The same after whitening the latents."""
    rho: Estimate
    """Largest correlation between views of any function of the latents."""
    dimension: Estimate
    """Number of independent directions of the latents; NaN if undecided."""
    effective_rank: Estimate
    """Number of latent directions that vary."""
    sigreg: Estimate
    """SIGReg statistic, mean over both views; 1.05 is expected of N(0, I)."""

    @classmethod
    def of(cls, step: int, pairs: int, seconds: float, verdicts: Sequence[Verdict], *, truth: bool) -> Self:
        found: dict[str, Any] = dict.fromkeys(ESTIMATES, Estimate.undefined(pairs))
        if not truth:
            found["r2"] = None
        for verdict in verdicts:
            found[verdict.name] = Estimate(verdict.value, verdict.low, verdict.high, verdict.n)
        return cls(step, pairs, seconds, **found)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The row that `dataclasses.asdict` made plain; numbers may be the strings "nan", "inf" and "-inf"."""
        estimates: dict[str, Any] = {}
        for name in ESTIMATES:
            found = plain[name]
            ends = {} if found is None else {key: float(found[key]) for key in ("value", "low", "high")}
            estimates[name] = found and Estimate(**found | ends)
        return cls(**{**plain, **estimates})

    def estimates(self) -> dict[str, Estimate]:
        """All estimates by name."""
        found = {name: getattr(self, name) for name in ESTIMATES}
        return {name: estimate for name, estimate in found.items() if estimate is not None}

    def values(self) -> dict[str, float]:
        """All numbers by name, without intervals, for a logger."""
        values = {name: estimate.value for name, estimate in self.estimates().items()}
        return values | {"pairs": float(self.pairs), "seconds": self.seconds}

    def columns(self) -> dict[str, float]:
        """All numbers by name, with the ends of the intervals as NAME_low and NAME_high."""
        found: dict[str, float] = {"step": self.step, "pairs": self.pairs, "seconds": self.seconds}
        for name, estimate in self.estimates().items():
            found |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        return found


ESTIMATES = tuple(field.name for field in fields(MonitorRow) if field.name not in ("step", "pairs", "seconds"))


def history_summary(history: Sequence[MonitorRow]) -> str:
    last = history[-1]
    numbers = []
    for name, estimate in last.estimates().items():
        interval = "" if estimate.low == estimate.high else f" [{estimate.low:.3g}, {estimate.high:.3g}]"
        numbers.append(f"{TITLES[name]} {estimate.value:.3g}{interval}")
    records = "1 record" if len(history) == 1 else f"{len(history)} records"
    return f"{records}, the last at step {last.step:,} from {last.pairs:,} pairs: {'; '.join(numbers)}."


def history_figure(history: Sequence[MonitorRow], verdicts: Sequence[Verdict]) -> Curves:
    """One panel for each number, with its interval and its threshold (or null) as a dashed line."""
    last = {verdict.name: verdict for verdict in verdicts}
    panels = []
    for name, title in TITLES.items():
        found = {row.step: row.estimates()[name] for row in history if name in row.estimates()}
        if not found:
            continue
        steps = list(found)
        estimates = list(found.values())
        value = [estimate.value for estimate in estimates]
        low = [estimate.low for estimate in estimates]
        high = [estimate.high for estimate in estimates]
        series = [Curve(name, steps, value, low=low, high=high)]
        if name in last:
            series += _reference(last[name], steps)
        panels.append(CurvePanel(series, title=title, log_y=name in LOGARITHMIC))
    return Curves(title="Certificate during training", x_label="step", panels=panels)


def _reference(verdict: Verdict, steps: Sequence[int]) -> list[Curve]:
    if verdict.threshold is not None:
        return [Curve("threshold", [steps[0], steps[-1]], [verdict.threshold] * 2, dash=True)]
    if verdict.null is not None:
        return [Curve("null", [steps[0], steps[-1]], [verdict.null] * 2, dash=True)]
    return []
