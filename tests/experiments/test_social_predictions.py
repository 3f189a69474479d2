"""Social-JEPA's predictions: verdicts follow their rules, and measures find what is known."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from experiments.social_latents import DIM, met, rotation, states
from scipy import stats

from jepatlas.core.records import Estimate
from jepatlas.experiments import EXPERIMENTS, Result, Trial
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.social import predictions
from jepatlas.experiments.social import predictions_loss as by_loss
from jepatlas.experiments.social import predictions_predictors as by_predictor
from jepatlas.experiments.social import predictions_stability as by_objective
from jepatlas.experiments.social import predictions_worlds as by_world
from jepatlas.experiments.social.predictions_outcome import Prediction
from jepatlas.experiments.social.predictions_runs import held_out_loss, step_name
from jepatlas.experiments.social.runs import run

LOOKS = [0, 10, 20]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def pairs(numbers: Callable[[str, int], Mapping[str, float]], *objectives: str) -> list[Result]:
    """Three seeds of each, whose numbers are given; with no inverse as with one, where nothing else is said."""
    made = []
    for name in objectives:
        for seed in range(3):
            given = {"directions": 9.0} | dict(numbers(name, seed))
            there = {f"{key}_there": v for key, v in given.items() if key.endswith(("dsc", "nos_10"))}
            found = {key: Estimate(v, v, v, 9) for key, v in (there | given).items()}
            place = {"scene": "rendered", "objective": name, "seed": seed}
            made.append(Result(Trial(place, run, {}), Path(), "finished", {"verdicts": as_verdicts(found, "")}))
    return made


@pytest.mark.parametrize(
    ("r2", "beyond", "fewest", "outcome"),
    [
        (-0.9, -0.8, 9.0, "holds"),
        (-0.9, 0.8, 9.0, "holds in part"),  # R² rises, but from pixels as well
        (-0.9, -0.8, 1.2, "undecided"),  # the loss fell by a collapse
        (0.9, 0.8, 9.0, "holds in part"),  # DSC and NOS@10 alone
    ],
)
def test_a_lower_loss(r2: float, beyond: float, fewest: float, outcome: str):
    rho = {"r2": r2, "beyond": beyond, "dsc": -0.7, "nos_10": 0.7}
    made = pairs(
        lambda name, seed: {f"rho_loss_{key}": v + 0.01 * seed for key, v in rho.items()} | {"fewest": fewest}, "ijepa"
    )
    found = by_loss.judge(made, LOOKS)
    assert found.outcome == outcome and len(found.tables[0]["rows"]) == 3 * len(LOOKS)
    assert found.verdicts[0].passed is (None if fewest < 2 else r2 < 0)


def test_neighbours_that_follow_the_loss_one_way_alone_do_not_count():
    rho = {"rho_loss_r2": 0.0, "rho_loss_beyond": 0.0, "rho_loss_dsc": -0.9, "rho_loss_nos_10": 0.9}
    there = {"rho_loss_dsc_there": 0.0, "rho_loss_nos_10_there": 0.0}
    wild = [
        pairs(lambda name, seed, more=more: rho | more | {"fewest": 9.0, "rho_loss_r2": 0.5 * (seed - 1)}, "ijepa")
        for more in ({}, there)
    ]
    assert [by_loss.judge(made, LOOKS).outcome for made in wild] == ["holds in part", "undecided"]


def test_a_loss_that_aligns_worse_refutes():
    rho = {"rho_loss_r2": 0.9, "rho_loss_beyond": 0.9, "rho_loss_dsc": 0.9, "rho_loss_nos_10": -0.9}
    made = pairs(lambda name, seed: rho | {"fewest": 9.0}, "ijepa")
    assert by_loss.judge(made, LOOKS).outcome == "does not hold"


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
    given = dict(zip(by_predictor.LADDER, scores, strict=True))
    off = {0: -1, 1: 0, 2: 1}

    def numbers(name: str, seed: int) -> dict[str, float]:
        return {"r2": given[name] + 0.01 * seed + (1e-3 * off[seed] if name == "ijepa" else 0), "loss": 0.1}

    found = by_predictor.judge(pairs(numbers, *by_predictor.LADDER))
    assert found.outcome == outcome
    assert found.figures[0]["names"] == ["linear", "perceptron", "transformer"]


def test_a_collapsed_predictor_refutes_nothing():
    """The weakest aligns best since it collapsed; what is left, transformer over perceptron, holds in part at most."""
    r2 = dict(zip(by_predictor.LADDER, (0.95, 0.6, 0.7), strict=True))

    def numbers(name: str, seed: int) -> dict[str, float]:
        return {"r2": r2[name] + 1e-3 * seed, "loss": 0.1, "directions": 1.1 if name == "ijepa-linear" else 9.0}

    found = by_predictor.judge(pairs(numbers, *by_predictor.LADDER))
    assert found.outcome == "holds in part" and [verdict.passed for verdict in found.verdicts] == [None, True]
    r2["ijepa-transformer"] = 0.6
    assert by_predictor.judge(pairs(numbers, *by_predictor.LADDER)).outcome == "undecided"


def test_a_seed_that_one_side_lost_is_not_compared():
    made = pairs(lambda name, seed: {"r2": 0.5 + 0.1 * (name == "ijepa")}, *by_predictor.LADDER)
    lost = [Result(one.trial, one.folder, "crashed", {"verdicts": []}) if one.at["seed"] == 0 else one for one in made]
    assert by_predictor.judge(lost).verdicts[0].n == 2 and len(by_predictor.judge(lost).tables[0]["rows"]) == 9


@pytest.mark.parametrize(
    ("ours", "others", "flat", "outcome"),
    [
        ((0.1, 1e-3), (0.3, 1e-1), "", "holds"),
        ((0.1, 1e-2), (0.3, 1e-2), "", "holds in part"),  # steadier over pairs, not over seeds
        ((0.3, 1e-2), (0.1, 1e-2), "", "does not hold"),
        ((0.1, 1e-3), (0.3, 1e-1), "mae", "holds in part"),  # simclr alone is left to compare with
        ((0.1, 1e-3), (0.3, 1e-1), "ijepa", "undecided"),
    ],
)
def test_steadier_maps(ours: tuple[float, float], others: tuple[float, float], flat: str, outcome: str):
    def numbers(name: str, seed: int) -> dict[str, float]:
        unrest, spread = ours if name == "ijepa" else others
        told = {"r2": 0.5 + spread * seed, "directions": 1.1 if name == flat else 5.0}
        return told | {f"log_unrest_{parts}": np.log(unrest * (1 + 0.01 * seed)) for parts in (2, 4)}

    found = by_objective.judge(pairs(numbers, "ijepa", "mae", "simclr"))
    assert found.outcome == outcome and len(found.tables[0]["rows"]) == 9
    assert (f"not compared: {flat}" in found.sentence) is bool(flat)


@pytest.mark.parametrize(("same", "apart", "outcome"), [(0.7, 0.5, "holds"), (0.5, 0.7, "does not hold")])
def test_the_same_world(same: float, apart: float, outcome: str):
    def of(score: float) -> list[Result]:
        return pairs(
            lambda name, seed: {"r2": score + 0.01 * seed, "dsc": score, "nos_10": 1 - score, "beyond": 0.1},
            *by_world.HALVES,
        )

    assert by_world.judge(of(same), of(apart)).outcome == outcome
    assert by_world.judge(of(same)[:1], of(apart)[:1]).outcome == "undecided", "one seed decides nothing"


def test_four_predictions_make_one_finding():
    made = [
        Prediction(f"number {i}", outcome, "So it is.", (), (), ())
        for i, outcome in enumerate(("holds", "does not hold", "undecided", "holds in part"))
    ]
    finding = predictions.judge(made)
    assert finding.outcome == "holds in part" and "Number 1: does not hold. So it is." in finding.sentence
    assert finding.short == "of 4: 1 hold, 1 in part, 1 do not, 1 undecided" and len(finding.short) <= 66
    assert predictions.judge(made[:1]).outcome == "holds"


def test_maps_of_exact_pairs_do_not_move_and_those_of_noisy_ones_do(rng: np.random.Generator):
    """Of independent noise, a map from n pairs moves by about d σ² / n in every direction."""
    z = states(rng)
    turned = z @ rotation(rng)
    exact, noisy = (by_objective.unrest(met(z, turned + noise * states(rng), rng), 1000) for noise in (0.0, 1.0))
    assert exact["unrest_2"].value < 1e-3 < noisy["unrest_2"].value < noisy["unrest_4"].value
    pairs_fitted, told = 160 / 2, DIM
    assert noisy["unrest_2"].value == pytest.approx(2 * (told + 1) / pairs_fitted, rel=0.5)
    assert noisy["moved_2"].value == pytest.approx(noisy["unrest_2"].value / 2, rel=0.3), "half of the target is noise"


def test_the_ratio_of_variances_by_hand(rng: np.random.Generator):
    a, b = [rng.standard_normal(3) for _ in range(3)], [rng.standard_normal(3) for _ in range(2)]
    found = by_objective.ratio_of_variances(a, b)
    ratio = np.mean([values.var(ddof=1) for values in a]) / np.mean([values.var(ddof=1) for values in b])
    assert found.value == pytest.approx(np.log(ratio)) and found.low < found.value < found.high
    assert found.high == pytest.approx(np.log(ratio * stats.f.ppf(0.975, 4, 6)))
    assert by_objective.ratio_of_variances(a, [b[0][:1]]).high == np.inf


def test_what_pixels_told_all_along_is_not_learned(rng: np.random.Generator):
    """The first agent comes to know the state; the second knew it from the start, and no image shows it."""
    z = states(rng)
    pair, late = met(z, z @ rotation(rng), rng), states(rng)
    for side, before in ((pair.a, late), (pair.b, pair.b["h"])):
        side |= {step_name("h", 0): before, step_name("h", 10): side["h"]}
    found = by_loss.watched(pair, [0, 10], 1000)
    assert found[step_name("r2", 0)] < 0.1 and found[step_name("r2", 10)] > 0.99
    assert found[step_name("beyond", 0)] < 0.1 and found[step_name("beyond", 10)] > 0.9
    pair.a["raw"] = np.pad(z, [(0, 0), (0, 36 - DIM)]).reshape(-1, 6, 6)
    assert abs(by_loss.watched(pair, [10], 1000)[step_name("beyond", 10)]) < 0.02


def test_the_held_out_loss_is_a_mean_over_images_beside_its_targets_variance():
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
    assert len(new) == 6 + 2 * 6 + 2 * 6, "of checkpoints, of two more predictors, of two worlds"
