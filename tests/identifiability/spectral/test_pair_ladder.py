"""ρ, dimension and ladder from pairs, or the reason why there is none; never an error."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from jepatlas.core.records import Verdict
from jepatlas.identifiability import PairLadder, fit_pair_ladder
from jepatlas.identifiability.spectral import pair_ladder as pair_ladder_module


def pairs(rows: int, dim: int, rho: float = 0.9, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, dim))
    return z, rho * z + math.sqrt(1 - rho**2) * noise


def verdicts(ladder: PairLadder, dim: int, given: float | None = None) -> dict[str, Verdict]:
    return {verdict.name: verdict for verdict in ladder.verdicts(dim, given)}


@pytest.fixture(scope="module")
def gaussian() -> PairLadder:
    return fit_pair_ladder(Z, Z_NEXT)


Z, Z_NEXT = pairs(4000, 2)
BENT, BENT_NEXT = (np.c_[z[:, 0], (z[:, 0] ** 2 - 1) / math.sqrt(2)] for z in (Z, Z_NEXT))


def test_ladder_of_a_gaussian_world(gaussian: PairLadder):
    ladder = gaussian
    assert ladder.rho is not None and 0.88 < ladder.rho.value < 0.9 + 0.02 and ladder.rho.high > 0.895
    assert "have 2 independent directions" in ladder.sentence and "harmonics start at 0." in ladder.sentence
    kinds = [row[1] for row in ladder.table.rows]
    assert kinds[:5] == ["direction"] * 2 + ["harmonic"] * 3
    assert all(len(row) == len(ladder.table.columns) for row in ladder.table.rows)
    values = [float(row[2]) for row in ladder.table.rows[:5]]
    np.testing.assert_allclose(values, [0.9, 0.9, 0.81, 0.81, 0.81], atol=0.07)  # a thousand scored pairs


def test_more_pairs_narrow_the_interval_of_rho(monkeypatch: pytest.MonkeyPatch):
    """The ladder uses a subsample; an exact ρ, if requested, uses all pairs."""
    monkeypatch.setattr(pair_ladder_module, "MAX_PAIRS", 2000)
    views = pairs(10_000, 1)
    some, every = fit_pair_ladder(*views), fit_pair_ladder(*views, exact=True)
    assert some.spectrum is not None and every.spectrum is not None and some.spectrum.fitted == every.spectrum.fitted
    assert some.rho is not None and every.rho is not None and every.rho.n > 2.5 * some.rho.n
    assert every.rho.high - every.rho.low < 0.75 * (some.rho.high - some.rho.low)
    assert verdicts(every, 1)["rho"].value == every.rho.value


def test_all_directions_of_wide_latents_are_searched():
    """Of forty directions the one with the smallest variance is slow; it is not among the first 32 components."""
    z, z_next = pairs(3000, 40, rho=0.3)
    slow, slow_next = pairs(3000, 1, rho=0.95, seed=1)
    ladder = fit_pair_ladder(np.c_[z, 0.5 * slow], np.c_[z_next, 0.5 * slow_next])
    assert ladder.rho is not None and ladder.rho.value > 0.85 and "32" not in ladder.sentence


def test_estimated_rho_is_compared_with_the_given_one(gaussian: PairLadder):
    right, low, high = (verdicts(gaussian, 2, rho)["rho"] for rho in (0.9, 0.6, 0.99))
    assert right.passed is True and right.threshold == pytest.approx(0.91)
    assert low.passed is False and "too small" in low.advice
    assert high.passed is True and "tighter" in high.advice
    assert verdicts(gaussian, 2)["rho"].passed is None


def test_dependent_latents_have_fewer_directions(gaussian: PairLadder):
    verdict = verdicts(fit_pair_ladder(BENT, BENT_NEXT), 2)["dimension"]
    assert (verdict.value, verdict.threshold, verdict.passed) == (1, 2, False) and "only 1" in verdict.advice
    assert verdicts(gaussian, 2)["dimension"].passed is True


def test_observations_reveal_directions_missing_in_latents():
    ladder = fit_pair_ladder(np.sinh(Z), np.sinh(Z_NEXT), "observations")
    observed = verdicts(ladder, 1)["dimension"]
    assert (observed.value, observed.passed) == (2, False) and "missing" in observed.advice
    assert verdicts(ladder, 3)["dimension"].passed is True and "The observations have 2" in ladder.sentence


def test_missing_ladder_gives_the_reason():
    for views, options, reason in [
        ((np.ones((500, 2)), np.ones((500, 2))), {}, "all rows are equal"),
        ((Z[:100], Z_NEXT[:100]), {}, "at least 200 pairs"),
        ((Z, Z_NEXT), {"groups": np.arange(4000) // 1000}, "groups"),
    ]:
        ladder = fit_pair_ladder(*views, **options)
        assert ladder.spectrum is None and ladder.rho is None and ladder.verdicts(2) == [] and ladder.table.rows == []
        assert reason in ladder.sentence


@pytest.mark.parametrize(
    "spoil",
    [
        lambda z: np.c_[z, np.full(len(z), 3.0)],
        lambda z: np.c_[z, 1e-9 * z[:, :1]],
        lambda z: z[:, [0, 1, 0]],
        np.sign,
        lambda z: z * 1e-12,
        lambda z: z.astype(np.float32),
    ],
    ids=["constant", "tiny", "repeated", "signs", "all tiny", "single precision"],
)
def test_degenerate_latents_raise_no_error(spoil):
    ladder = fit_pair_ladder(spoil(Z[:1500]), spoil(Z_NEXT[:1500]))
    assert ladder.spectrum is not None and ladder.rho is not None
    assert ladder.sentence and [v.name for v in ladder.verdicts(3, 0.9)] == ["paired", "rho", "dimension"]


def test_independent_pairs():
    apart = fit_pair_ladder(Z[:1500], Z[1500:3000])
    assert apart.rho is None or apart.rho.low < 0.1
    assert verdicts(apart, 2)["dimension"].passed is not False


def test_undecided_ladder_gives_no_dimension(gaussian: PairLadder):
    assert gaussian.spectrum is not None
    open_ = replace(
        gaussian.spectrum, ladder=replace(gaussian.spectrum.ladder, dim=None, advice="Undecided: so it is.")
    )
    ladder = PairLadder("observations", open_)
    assert math.isnan(verdicts(ladder, 2)["dimension"].value) and verdicts(ladder, 2)["dimension"].passed is None
    assert ladder.sentence.endswith("undecided: so it is.")
