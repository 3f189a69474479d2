"""Claims on maps between encoders: outcomes from given results, and the measures behind them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from jepatlas.core.linear import least_squares
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate
from jepatlas.data.images import MultiViewTable
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial, reproduce
from jepatlas.experiments.alignment.alignment_nulls import smoother
from jepatlas.experiments.alignment.encoder_trials import recall
from jepatlas.experiments.alignment.gl_symmetry import changed_losses
from jepatlas.experiments.alignment.latent_pairs import add_noise, random_chart
from jepatlas.experiments.alignment.pair_budget import METHODS, budgets
from jepatlas.experiments.alignment.pair_noise import SHARES, mismatch
from jepatlas.experiments.alignment.view_alignment import view_pairs
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.experiments.engine.seed_tables import geometric_mean_and_interval
from jepatlas.objectives import LeJEPAConfig, Parts


def concluded(name: str, numbers: Callable[[Trial], dict[str, float]], apart: float = 1e-4, **more: Any) -> Finding:
    """The finding of a small study with the given numbers for every trial; seeds differ slightly."""
    results = []
    for trial in EXPERIMENTS[name].trials("small", 0):
        shift = apart * float(trial.at["seed"])
        estimates = {key: Estimate(v + shift, v + shift, v + shift, 9) for key, v in numbers(trial).items()}
        results.append(Result(trial, Path(), "finished", {"verdicts": as_verdicts(estimates, "")} | more))
    finding = EXPERIMENTS[name].conclude(results, "small")
    assert 0 < len(finding.sentence) <= 200 and finding.sentence.endswith(".")
    return finding


@pytest.mark.parametrize(
    ("lejepa", "free", "r2", "outcome"),
    [
        (0.05, 2.0, 0.99, "holds"),
        (0.05, 0.05, 0.99, "holds in part"),  # maps are orthogonal for every objective
        (0.05, 2.0, 0.5, "holds in part"),  # the linear map explains too little
        (0.5, 2.0, 0.99, "holds in part"),
        (0.5, 0.05, 0.99, "does not hold"),
    ],
)
def test_orthogonal_maps(lejepa: float, free: float, r2: float, outcome: str):
    off = {"LeJEPA": lejepa, "whitening": free, "VICReg": 9.0, "InfoNCE": 9.0}
    finding = concluded(
        "orthogonal-maps", lambda trial: {"orthogonality_raw": off[str(trial.at["objective"])], "r2": r2, "p": 0.01}
    )
    assert finding.outcome == outcome


def budget(trial: Trial, first: str, kappa: float) -> dict[str, float]:
    """R² is high from 500 pairs, and for `first` on identified charts from 2 d pairs."""
    dim, identified, found = int(trial.at["dim"]), trial.at["charts"] != "general", dict[str, float]()
    for n in budgets(dim, trial.settings["pairs"]):
        for name in METHODS:
            good = n >= (2 * dim if name == first and identified else 500)
            found |= {f"r2_{name}_{n}": 0.95 if good else 0.1, f"kappa_{name}_{n}": 1.0 if good else kappa}
    return found


@pytest.mark.parametrize(
    ("first", "kappa", "outcome"),
    [("Procrustes", 1e3, "holds"), ("Procrustes", 2.0, "holds in part"), ("ridge", 2.0, "does not hold")],
)
def test_pair_budget(first: str, kappa: float, outcome: str):
    finding = concluded("pair-budget", lambda trial: budget(trial, first, kappa))
    assert finding.outcome == outcome
    assert finding.tables[1].rows[1][2:] == ["500", "500", "128"] or first != "Procrustes"


@pytest.mark.parametrize(
    ("lost", "growth", "outcome"),
    [(0.2, 80.0, "holds"), (0.2, 1.1, "holds in part"), (-0.1, 1.1, "does not hold")],
)
def test_pair_noise(lost: float, growth: float, outcome: str):
    def numbers(trial: Trial) -> dict[str, float]:
        found = {
            f"{what}_{name}_{share:g}": 0.5
            for what in ("r2", "kappa")
            for name in ("plain", "robust")
            for share in SHARES
        }
        return found | {"lost_plain_0.3": lost, "lost_robust_0.3": 0.001, "growth_0.3": growth}

    finding = concluded("pair-noise", numbers)
    assert finding.outcome == outcome
    assert all(verdict.passed for verdict in finding.verdicts), "verdicts concern the robust fit only"


def test_factors_have_a_geometric_mean_and_interval():
    """Student's interval of the logarithms of 1, 10 and 100, around 10."""
    trials = EXPERIMENTS["pair-noise"].trials("small", 0)[:3]
    runs = [
        Result(trial, Path(), "finished", {"verdicts": as_verdicts({"growth": Estimate(v, v, v, 9)}, "")})
        for trial, v in zip(trials, (1.0, 10.0, 100.0), strict=True)
    ]
    found, margin = geometric_mean_and_interval(runs, "growth"), stats.t.ppf(0.975, 2) / np.sqrt(3)
    assert found.value == pytest.approx(10) and found.n == 3
    assert (found.low, found.high) == (pytest.approx(10 ** (1 - margin)), pytest.approx(10 ** (1 + margin)))
    one = geometric_mean_and_interval(runs[:1], "growth")
    assert (one.value, one.low, one.high) == (1.0, 0.0, np.inf)


@pytest.mark.parametrize(
    ("in_sample", "held_out", "early", "outcome"),
    [
        (0.77, -1.9, 4, "holds"),
        (0.77, -1.9, 30, "holds in part"),  # too many small p-values
        (0.10, 0.1, 30, "does not hold"),
    ],
)
def test_alignment_nulls(in_sample: float, held_out: float, early: int, outcome: str):
    names = ("r2_in_sample", "cka", "r2", "cka_debiased", "dsc", "nos_10")
    values = {"r2_in_sample": in_sample, "cka": 0.43, "r2": held_out, "cka_debiased": 0.0, "dsc": 0.0, "nos_10": 0.9}
    values |= {f"related{p}_{name}": 0.1 for name in names for p in ("", "_p")} | {"r2_ridge": -0.01}
    p_values = {name: [0.05] * early + [0.6] * (40 - early) for name in names}
    assert concluded("alignment-nulls", lambda trial: values, p=p_values).outcome == outcome


@pytest.mark.parametrize(
    ("driving", "eth80", "outcome"),
    [(0.95, 0.95, "does not hold"), (0.95, 0.5, "holds in part"), (0.5, 0.5, "undecided")],
)
def test_image_controls(driving: float, eth80: float, outcome: str):
    """A single control that reaches the published figure refutes the claim."""

    def numbers(trial: Trial) -> dict[str, float]:
        best = trial.at["control"] == "untrained" and trial.at["width"] == 64
        r2 = {"driving": driving, "eth80": eth80}[str(trial.at["scene"])] if best else 0.2
        return {"r2": r2, "r2_raw": r2, "dsc": 0.5, "nos_10": 0.5} | {f"p_{n}": 0.05 for n in ("r2", "dsc")}

    assert concluded("image-controls", numbers).outcome == outcome


@pytest.mark.parametrize(
    ("untrained", "untrained_raw", "better", "better_raw"),
    [
        (0.5, 0.9, "untrained encoder", "untrained encoder"),
        (0.3, 0.3, "PCA", "PCA"),
        (0.5, 0.3, "untrained encoder", "PCA"),
        (0.4, 0.3, "too close to tell", "PCA"),
    ],
)
def test_image_controls_compare_the_untrained_encoder_with_pca(
    untrained: float, untrained_raw: float, better: str, better_raw: str
):
    def numbers(trial: Trial) -> dict[str, float]:
        best = float(trial.at["width"] == 64)  # other widths are poorer
        both = (untrained, untrained_raw) if trial.at["control"] == "untrained" else (0.4, 0.8)
        return {"r2": both[0] * best, "r2_raw": both[1] * best, "dsc": 0.5, "nos_10": 0.5}

    rows = concluded("image-controls", numbers).tables[1].rows
    assert [row[-1] for row in rows] == [better, better_raw] * 2, "for both scenes"


@pytest.mark.parametrize(
    ("trained", "untrained", "raw", "p", "outcome"),
    [
        (0.8, 0.5, 0.4, 0.05, "holds"),
        (0.8, 0.9, 0.4, 0.05, "holds in part"),  # random weights predict as well
        (0.8, 0.5, 0.9, 0.05, "holds in part"),  # so does the input
        (0.3, 0.5, 0.4, 0.50, "does not hold"),
    ],
)
def test_real_encoders(trained: float, untrained: float, raw: float, p: float, outcome: str):
    values = {"r2": trained, "r2_untrained": untrained, "r2_raw": raw, "p_r2": p - 0.01}
    assert concluded("real-encoders", lambda trial: values).outcome == outcome


def test_neighbours_found_by_an_exact_map_an_unrelated_one_and_a_reference():
    rng = np.random.default_rng(0)
    own = rng.standard_normal((60, 4))
    assert recall(own, own) == 1.0
    assert recall(own, 2 * own + 1e-3) < 1.0, "the database is searched with the queries as they are"
    mapped = own + rng.standard_normal(own.shape)
    shares = []
    for i, query in enumerate(own):
        near = [np.argsort(np.linalg.norm(rows - query, axis=1)) for rows in (own, mapped)]
        wanted, found = (set([j for j in order if j != i][:10]) for order in near)
        shares.append(len(wanted & found) / 10)
    assert recall(own, mapped) == pytest.approx(np.mean(shares))


def test_missing_images_name_the_environment_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("JEPATLAS_DATA", raising=False)
    record = reproduce(EXPERIMENTS["image-controls"], "tiny", tmp_path, lambda: ThreadPoolExecutor(1))
    assert record.about["outcome"] == "undecided" and record.about["failed"] == record.about["runs"]
    assert "JEPATLAS_DATA" in record.summary


def changes(ratio: float, zero: float) -> list[dict[str, float]]:
    return [
        {"condition": k, "low": 1 / k, "high": k, "jepa": ratio, "zero": zero, "lejepa": k, "whitening": 1.0}
        for k in (1.0, 2.0, 5.0, 10.0, 100.0, 1000.0)
    ]


@pytest.mark.parametrize(
    ("ratio", "zero", "outcome"),
    [(1.0, 1e-15, "holds"), (1.5, 1e-15, "holds in part"), (1.5, 1e-3, "does not hold")],
)
def test_gl_symmetry(ratio: float, zero: float, outcome: str):
    assert concluded("gl-symmetry", lambda trial: {}, changes=changes(ratio, zero)).outcome == outcome


def linear_numbers(trial: Trial, slope: float, off: float, bound: float) -> dict[str, float]:
    s, found = trial.settings, {f"bound_{k:g}": bound for k in trial.settings["conditions"]}
    for where in ("target", "both"):
        for k in s["conditions"]:
            for noise in s["noises"]:
                for n in s["pairs"]:
                    key = f"{where}_{k:g}_{noise:g}_{n}"
                    error = 100 * float(n) ** slope if noise else 0.0
                    found |= {f"error_{key}": error, f"r2_{key}": 1 / (1 + noise**2) + off}
                    found[f"kappa_{key}"] = 0.95 + noise * 300 / n
    return found


@pytest.mark.parametrize(
    ("slope", "off", "bound", "outcome"),
    [(-0.5, 0.0, 0.9, "holds"), (-0.1, 0.0, 0.9, "holds in part"), (-0.1, 0.1, 1.5, "does not hold")],
)
def test_linear_state_model(slope: float, off: float, bound: float, outcome: str):
    finding = concluded("linear-state-model", lambda trial: linear_numbers(trial, slope, off, bound), apart=0.0)
    assert finding.outcome == outcome
    assert finding.criteria[2].found == f"{bound:.2f}"
    summary = dict(finding.tables[1].rows)
    assert summary["largest κ(W) / κ(A₂)κ(A₁) without noise"] == "0.95"
    assert summary["largest κ(W) / κ(A₂)κ(A₁), σ = 1 in h₂, 30,000 pairs"] == "0.96"
    assert summary["largest κ(W) / κ(A₂)κ(A₁), σ = 1 in h₂, 300 pairs"] == "1.95"


@pytest.mark.parametrize(("dim", "condition"), [(2, 1.0), (5, 30.0), (16, 1000.0)])
def test_random_chart_has_the_condition_number_and_unit_determinant(dim: int, condition: float):
    chart = random_chart(dim, condition, np.random.default_rng(0))
    assert np.linalg.cond(chart) == pytest.approx(condition)
    assert abs(np.linalg.det(chart)) == pytest.approx(1)
    assert not np.allclose(chart, random_chart(dim, condition, np.random.default_rng(1)))


def test_noise_is_white_and_relative_to_the_signal():
    rng = np.random.default_rng(0)
    chart = random_chart(4, 20.0, rng)
    h = rng.standard_normal((100_000, 4)) @ chart.T
    added = add_noise(h, 0.3, chart, rng) - h
    assert np.square(added).sum() / np.square(h).sum() == pytest.approx(0.09, rel=0.02)
    assert added.std(0) == pytest.approx(added.std(), rel=0.02), "white"


@pytest.mark.parametrize(("pairs", "share", "moved"), [(100, 0.0, 0), (100, 0.3, 30), (7, 1.0, 7)])
def test_mismatch_moves_the_requested_share_of_pairs(pairs: int, share: float, moved: int):
    order = mismatch(pairs, share, np.random.default_rng(3))
    assert (order != np.arange(pairs)).sum() == moved
    assert sorted(order) == list(range(pairs)), "no y is lost"


def test_smoother_matches_least_squares():
    rng = np.random.default_rng(0)
    for rows, columns in ((30, 4), (10, 20)):
        x, others, y = (
            rng.standard_normal((rows, columns)),
            rng.standard_normal((8, columns)),
            rng.normal(5, 1, (rows, 3)),
        )
        np.testing.assert_allclose(smoother(x, others) @ y, least_squares(x, y).apply(others), atol=1e-9)


def losses(chart: np.ndarray) -> dict[str, float]:
    rng = np.random.default_rng(0)
    h = rng.standard_normal((600, 3))
    h_next = 0.9 * h + 0.3 * rng.standard_normal((600, 3))
    lejepa = LeJEPAConfig().build(Parts(torch.nn.Identity(), 3)).eval()
    return changed_losses(h, h_next, LinearMap(0.9 * np.eye(3), np.ones(3), np.ones(3)), chart, lejepa)


def test_linear_change_of_latents_scales_the_prediction_loss():
    """p(h) = 0.1 + 0.9h has the error 0.1 − 0.3ε, whose coordinates are multiplied by 2, 1 and ½."""
    found = losses(np.diag([2.0, 1.0, 0.5]))
    rng = np.random.default_rng(0)
    rng.standard_normal((600, 3))
    error = 0.1 - 0.3 * rng.standard_normal((600, 3))
    expected = np.square(error * [2, 1, 0.5]).sum() / np.square(error).sum()
    assert found["jepa"] == pytest.approx(expected)
    assert (found["low"], found["high"]) == (0.25, 4.0)
    assert found["zero"] < 1e-15 and found["whitening"] == pytest.approx(1)
    assert abs(found["lejepa"] - 1) > 0.1


def test_rotation_changes_only_the_sliced_loss():
    found = losses(random_chart(3, 1.0, np.random.default_rng(1)))
    assert [found[name] for name in ("jepa", "whitening", "low", "high")] == pytest.approx([1, 1, 1, 1])
    assert found["lejepa"] == pytest.approx(1, abs=0.1), "SIGReg uses other directions"


def table(folder: Path, lines: list[str]) -> MultiViewTable:
    (folder / "views.csv").write_text("\n".join(["path,state,view,group", *lines]) + "\n")
    return MultiViewTable.read(folder)


def test_objects_are_paired_at_views_90_degrees_apart(tmp_path: Path):
    lines = [f"{name}-{view}.png,{name}-0,{view},{name}" for name in ("cup", "car") for view in (0, 45, 90, 180, 270)]
    views_table = table(tmp_path, lines)
    (first, second), groups = view_pairs(views_table, "eth80", None)
    views = views_table.column("view").astype(int)
    assert len(first) == 8, "four views of two objects; 45° has no partner"
    assert ((views[second] - views[first]) % 360 == 90).all()
    assert (views_table.column("state")[first] == views_table.column("state")[second]).all()
    assert (groups == views_table.column("group")[second]).all()
    assert set(view_pairs(views_table, "eth80", 1)[1]) == {"car"}


def test_left_and_right_cameras_are_paired_by_state(tmp_path: Path):
    lines = [f"{t}-{side}.png,t{t},{side},block{t // 2}" for t in range(4) for side in ("left", "center", "right")]
    views_table = table(tmp_path, lines)
    (first, second), groups = view_pairs(views_table, "driving", None)
    assert set(views_table.column("view")[first]) == {"left"} and set(views_table.column("view")[second]) == {"right"}
    assert groups.tolist() == ["block0", "block0", "block1", "block1"]
