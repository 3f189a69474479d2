"""What the alignment experiments measure with, each against its definition."""

from pathlib import Path

import numpy as np
import pytest
import torch

from jepatlas.core.linear import least_squares
from jepatlas.core.linear_map import LinearMap
from jepatlas.data.images import MultiViewTable
from jepatlas.experiments.alignment.alignment_nulls import smoother
from jepatlas.experiments.alignment.charts import noisy, random_chart
from jepatlas.experiments.alignment.gl_symmetry_runs import changed_losses
from jepatlas.experiments.alignment.image_control_runs import view_pairs
from jepatlas.experiments.alignment.pair_noise import mismatch
from jepatlas.objectives import LeJEPAConfig, Parts


@pytest.mark.parametrize(("dim", "condition"), [(2, 1.0), (5, 30.0), (16, 1000.0)])
def test_a_random_chart_has_its_condition_and_keeps_volumes(dim: int, condition: float):
    chart = random_chart(dim, condition, np.random.default_rng(0))
    assert np.linalg.cond(chart) == pytest.approx(condition)
    assert abs(np.linalg.det(chart)) == pytest.approx(1)
    assert not np.allclose(chart, random_chart(dim, condition, np.random.default_rng(1)))


def test_noise_is_measured_against_the_signal():
    rng = np.random.default_rng(0)
    chart = random_chart(4, 20.0, rng)
    h = rng.standard_normal((100_000, 4)) @ chart.T
    added = noisy(h, 0.3, chart, rng) - h
    assert np.square(added).sum() / np.square(h).sum() == pytest.approx(0.09, rel=0.02)
    assert added.std(0) == pytest.approx(added.std(), rel=0.02), "white"


@pytest.mark.parametrize(("pairs", "share", "moved"), [(100, 0.0, 0), (100, 0.3, 30), (7, 1.0, 7)])
def test_as_many_pairs_are_mismatched_as_were_asked_for(pairs: int, share: float, moved: int):
    order = mismatch(pairs, share, np.random.default_rng(3))
    assert (order != np.arange(pairs)).sum() == moved
    assert sorted(order) == list(range(pairs)), "no y is lost"


def test_the_smoother_predicts_what_least_squares_predicts():
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


def test_a_stretched_loss_is_that_of_the_stretched_error():
    """p(h) = 0.1 + 0.9h, so the error is 0.1 − 0.3ε; the change multiplies its coordinates by 2, 1 and ½."""
    found = losses(np.diag([2.0, 1.0, 0.5]))
    rng = np.random.default_rng(0)
    rng.standard_normal((600, 3))
    error = 0.1 - 0.3 * rng.standard_normal((600, 3))
    expected = np.square(error * [2, 1, 0.5]).sum() / np.square(error).sum()
    assert found["jepa"] == pytest.approx(expected)
    assert (found["low"], found["high"]) == (0.25, 4.0)
    assert found["zero"] < 1e-15 and found["whitening"] == pytest.approx(1)
    assert abs(found["lejepa"] - 1) > 0.1


def test_a_rotation_changes_no_loss_but_that_of_the_slices():
    found = losses(random_chart(3, 1.0, np.random.default_rng(1)))
    assert [found[name] for name in ("jepa", "whitening", "low", "high")] == pytest.approx([1, 1, 1, 1])
    assert found["lejepa"] == pytest.approx(1, abs=0.1), "SIGReg looks along other directions"


def table(folder: Path, lines: list[str]) -> MultiViewTable:
    (folder / "views.csv").write_text("\n".join(["path,state,view,group", *lines]) + "\n")
    return MultiViewTable.read(folder)


def test_turned_objects_are_paired_all_around(tmp_path: Path):
    lines = [f"{name}-{view}.png,{name}-0,{view},{name}" for name in ("cup", "car") for view in (0, 45, 90, 180, 270)]
    seen = table(tmp_path, lines)
    (first, second), groups = view_pairs(seen, "eth80", None)
    views = seen.column("view").astype(int)
    assert len(first) == 8, "four turns of two objects; 45° has no partner"
    assert ((views[second] - views[first]) % 360 == 90).all()
    assert (seen.column("state")[first] == seen.column("state")[second]).all()
    assert (groups == seen.column("group")[second]).all()
    assert set(view_pairs(seen, "eth80", 1)[1]) == {"car"}


def test_cameras_are_paired_by_moment(tmp_path: Path):
    lines = [f"{t}-{side}.png,t{t},{side},block{t // 2}" for t in range(4) for side in ("left", "center", "right")]
    seen = table(tmp_path, lines)
    (first, second), groups = view_pairs(seen, "driving", None)
    assert set(seen.column("view")[first]) == {"left"} and set(seen.column("view")[second]) == {"right"}
    assert groups.tolist() == ["block0", "block0", "block1", "block1"]
