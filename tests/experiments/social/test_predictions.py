"""Predictions of the theory: outcomes from given measures, and measures against known values."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from experiments.social.synthetic_agents import DIM, rotation, states, synthetic_pair
from scipy import stats

from jepatlas.core.records import Estimate
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.experiments.social import (
    common_worlds,
    loss_and_alignment,
    map_stability,
    predictions,
    predictor_strength,
)
from jepatlas.experiments.social.checkpoint_trials import held_out_loss, step_key
from jepatlas.experiments.social.common_worlds import HALVES
from jepatlas.experiments.social.loss_and_alignment import measure_checkpoints
from jepatlas.experiments.social.predictor_strength import LADDER
from jepatlas.experiments.social.trained_agents import run_agent

STEPS = [0, 10, 20]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def pairs(numbers: Callable[[str, int], Mapping[str, float]], *objectives: str) -> list[Result]:
    """Three seeds of each objective. Measures without an inverse default to those with one."""
    made = []
    for name in objectives:
        for seed in range(3):
            given = {"directions": 9.0} | dict(numbers(name, seed))
            there = {f"{key}_there": v for key, v in given.items() if key.endswith(("dsc", "nos_10"))}
            found = {key: Estimate(v, v, v, 9) for key, v in (there | given).items()}
            place = {"scene": "rendered", "objective": name, "seed": seed}
            made.append(Result(Trial(place, run_agent, {}), Path(), "finished", {"verdicts": as_verdicts(found, "")}))
    return made


@pytest.mark.parametrize(
    ("r2", "beyond", "fewest", "outcome"),
    [
        (-0.9, -0.8, 9.0, "holds"),
        (-0.9, 0.8, 9.0, "holds in part"),  # R² rises, but from pixels as well
        (-0.9, -0.8, 1.2, "undecided"),  # the loss fell because latents collapsed
        (0.9, 0.8, 9.0, "holds in part"),  # DSC and NOS@10 alone
    ],
)
def test_a_lower_loss(r2: float, beyond: float, fewest: float, outcome: str):
    rho = {"r2": r2, "beyond": beyond, "dsc": -0.7, "nos_10": 0.7}
    made = pairs(
        lambda name, seed: {f"rho_loss_{key}": v + 0.01 * seed for key, v in rho.items()} | {"fewest": fewest}, "ijepa"
    )
    found = loss_and_alignment.judge(made, STEPS)
    assert found.outcome == outcome and len(found.tables[0].rows) == 3 * len(STEPS)
    assert found.verdicts[0].passed is (None if fewest < 2 else r2 < 0)


def test_neighbour_scores_count_only_if_both_directions_follow_the_loss():
    rho = {"rho_loss_r2": 0.0, "rho_loss_beyond": 0.0, "rho_loss_dsc": -0.9, "rho_loss_nos_10": 0.9}
    there = {"rho_loss_dsc_there": 0.0, "rho_loss_nos_10_there": 0.0}
    results = [
        pairs(lambda name, seed, more=more: rho | more | {"fewest": 9.0, "rho_loss_r2": 0.5 * (seed - 1)}, "ijepa")
        for more in ({}, there)
    ]
    assert [loss_and_alignment.judge(made, STEPS).outcome for made in results] == ["holds in part", "undecided"]


def test_alignment_that_falls_with_the_loss_refutes_the_prediction():
    rho = {"rho_loss_r2": 0.9, "rho_loss_beyond": 0.9, "rho_loss_dsc": 0.9, "rho_loss_nos_10": -0.9}
    made = pairs(lambda name, seed: rho | {"fewest": 9.0}, "ijepa")
    assert loss_and_alignment.judge(made, STEPS).outcome == "does not hold"


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        ((0.5, 0.6, 0.7), "holds"),
        ((0.5, 0.7, 0.6), "holds in part"),
        ((0.7, 0.6, 0.5), "does not hold"),
        ((0.6, 0.6, 0.6), "undecided"),
    ],
)
def test_stronger_predictors(scores: tuple[float, ...], outcome: str):
    given = dict(zip(LADDER, scores, strict=True))
    off = {0: -1, 1: 0, 2: 1}

    def numbers(name: str, seed: int) -> dict[str, float]:
        return {"r2": given[name] + 0.01 * seed + (1e-3 * off[seed] if name == "ijepa" else 0), "loss": 0.1}

    found = predictor_strength.judge(pairs(numbers, *LADDER))
    assert found.outcome == outcome
    assert found.figures[0].names == ["linear", "perceptron", "transformer"]


def test_a_collapsed_predictor_is_excluded():
    """The weakest predictor aligns best because it collapsed; the remaining comparison holds in part at most."""
    r2 = dict(zip(LADDER, (0.95, 0.6, 0.7), strict=True))

    def numbers(name: str, seed: int) -> dict[str, float]:
        return {"r2": r2[name] + 1e-3 * seed, "loss": 0.1, "directions": 1.1 if name == "ijepa-linear" else 9.0}

    found = predictor_strength.judge(pairs(numbers, *LADDER))
    assert found.outcome == "holds in part" and [verdict.passed for verdict in found.verdicts] == [None, True]
    r2["ijepa-transformer"] = 0.6
    assert predictor_strength.judge(pairs(numbers, *LADDER)).outcome == "undecided"


def test_seeds_that_crashed_on_one_side_are_not_compared():
    made = pairs(lambda name, seed: {"r2": 0.5 + 0.1 * (name == "ijepa")}, *LADDER)
    lost = [Result(one.trial, one.folder, "crashed", {"verdicts": []}) if one.at["seed"] == 0 else one for one in made]
    assert predictor_strength.judge(lost).verdicts[0].n == 2 and len(predictor_strength.judge(lost).tables[0].rows) == 9


@pytest.mark.parametrize(
    ("ours", "others", "flat", "outcome"),
    [
        ((0.1, 1e-3), (0.3, 1e-1), "", "holds"),
        ((0.1, 1e-2), (0.3, 1e-2), "", "holds in part"),  # more stable over pairs, not over seeds
        ((0.3, 1e-2), (0.1, 1e-2), "", "does not hold"),
        ((0.1, 1e-3), (0.3, 1e-1), "mae", "holds in part"),  # only simclr remains for comparison
        ((0.1, 1e-3), (0.3, 1e-1), "ijepa", "undecided"),
    ],
)
def test_more_stable_maps(ours: tuple[float, float], others: tuple[float, float], flat: str, outcome: str):
    def numbers(name: str, seed: int) -> dict[str, float]:
        instability, spread = ours if name == "ijepa" else others
        given = {"r2": 0.5 + spread * seed, "directions": 1.1 if name == flat else 5.0}
        return given | {f"log_instability_{parts}": np.log(instability * (1 + 0.01 * seed)) for parts in (2, 4)}

    found = map_stability.judge(pairs(numbers, "ijepa", "mae", "simclr"))
    assert found.outcome == outcome and len(found.tables[0].rows) == 9


@pytest.mark.parametrize(("same", "apart", "outcome"), [(0.7, 0.5, "holds"), (0.5, 0.7, "does not hold")])
def test_agents_of_the_same_world_align_better(same: float, apart: float, outcome: str):
    def results(score: float) -> list[Result]:
        return pairs(
            lambda name, seed: {"r2": score + 0.01 * seed, "dsc": score, "nos_10": 1 - score, "beyond": 0.1},
            *HALVES,
        )

    assert common_worlds.judge(results(same), results(apart)).outcome == outcome
    assert common_worlds.judge(results(same)[:1], results(apart)[:1]).outcome == "undecided", "one seed is undecided"


def test_predictions_are_combined_into_one_finding():
    made = [
        Finding(outcome, f"Number {i}: {outcome}.")
        for i, outcome in enumerate(("holds", "does not hold", "undecided", "holds in part"))
    ]
    finding = predictions.judge(made)
    assert finding.outcome == "holds in part" and "Number 1: does not hold." in finding.sentence
    assert finding.short == "of 4: 1 hold, 1 in part, 1 do not, 1 undecided" and len(finding.short) <= 66
    assert predictions.judge(made[:1]).outcome == "holds"


def test_instability_is_zero_for_exact_pairs_and_grows_with_noise(rng: np.random.Generator):
    """With independent noise, a map fitted on n pairs varies by about d σ² / n in every direction."""
    z = states(rng)
    turned = z @ rotation(rng)
    exact, noisy = (
        map_stability.measure_instability(synthetic_pair(z, turned + noise * states(rng), rng), 1000)
        for noise in (0.0, 1.0)
    )
    assert exact["instability_2"].value < 1e-3 < noisy["instability_2"].value < noisy["instability_4"].value
    pairs_fitted = 160 / 2
    assert noisy["instability_2"].value == pytest.approx(2 * (DIM + 1) / pairs_fitted, rel=0.5)
    assert noisy["moved_2"].value == pytest.approx(noisy["instability_2"].value / 2, rel=0.3), (
        "half of the target is noise"
    )


def test_ratio_of_variances_has_the_f_interval(rng: np.random.Generator):
    a, b = [rng.standard_normal(3) for _ in range(3)], [rng.standard_normal(3) for _ in range(2)]
    found = map_stability.ratio_of_variances(a, b)
    ratio = np.mean([values.var(ddof=1) for values in a]) / np.mean([values.var(ddof=1) for values in b])
    assert found.value == pytest.approx(np.log(ratio)) and found.low < found.value < found.high
    assert found.high == pytest.approx(np.log(ratio * stats.f.ppf(0.975, 4, 6)))
    assert map_stability.ratio_of_variances(a, [b[0][:1]]).high == np.inf


def test_margin_over_pixels_is_zero_if_pixels_are_the_state(rng: np.random.Generator):
    """The first agent learns the state; the second has it from the start; images do not contain it."""
    z = states(rng)
    pair, late = synthetic_pair(z, z @ rotation(rng), rng), states(rng)
    pair = replace(
        pair,
        a=replace(pair.a, layers={step_key("h", 0): late, step_key("h", 10): pair.a.h}),
        b=replace(pair.b, layers={step_key("h", 0): pair.b.h, step_key("h", 10): pair.b.h}),
    )
    found = measure_checkpoints(pair, [0, 10], 1000)
    assert found[step_key("r2", 0)] < 0.1 and found[step_key("r2", 10)] > 0.99
    assert found[step_key("beyond", 0)] < 0.1 and found[step_key("beyond", 10)] > 0.9
    pixels = np.pad(z, [(0, 0), (0, 36 - DIM)]).reshape(-1, 6, 6)
    shown = replace(pair, a=replace(pair.a, raw=pixels))
    assert abs(measure_checkpoints(shown, [10], 1000)[step_key("beyond", 10)]) < 0.02


def test_held_out_loss_is_the_mean_over_images_and_its_ratio_to_the_target_variance():
    images = np.arange(300, dtype=np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 3), np.uint8)

    class Objective(SimpleNamespace):
        def __call__(self, batch, step: int):
            return SimpleNamespace(total=batch.x.float().mean())

    values = images[:, 0, 0, 0].astype(float)
    objective = Objective(
        targets=lambda x: x.float().mean((1, 2, 3))[:, None, None] * torch.ones(1, 4, 2),
        parameters=lambda: iter([torch.zeros(1)]),
    )
    assert held_out_loss(objective, images) == pytest.approx((values.mean(), values.mean() / values.var()))


def test_agents_are_shared_with_other_experiments():
    asked = ("social-views", "social-paradigms", "social-predictions")
    jobs = {name: {trial.job.name for trial in EXPERIMENTS[name].trials("small", 0)} for name in asked}
    assert jobs["social-views"] & jobs["social-predictions"] <= jobs["social-paradigms"]
    new = jobs["social-predictions"] - jobs["social-paradigms"]
    assert len(new) == 6 + 2 * 6 + 2 * 6, "checkpoints, two further predictors, two worlds"
