"""What the trials of the Reacher experiments measure, against references from the definitions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jepatlas.data import EpisodeArrays, WindowStream
from jepatlas.experiments.reacher.reacher_agents import learn, reacher_of, reacher_recipe
from jepatlas.experiments.reacher.reacher_isotropisation_runs import WeightedPairs, isotropised
from jepatlas.experiments.reacher.reacher_probes import SCALE, Poses, degree_shares, gaussian_poses, probe, probes
from jepatlas.identifiability import isotropic_weights
from jepatlas.recipes import build_windows, gather_episodes
from jepatlas.workflows.plan import TrainedModel
from jepatlas.worlds import OrnsteinUhlenbeckMotion

RNG = np.random.default_rng(0)


def poses(count: int, bend: float = 0.0) -> Poses:
    """Latents that are the angles turned and stretched, with a square in the first."""
    z = RNG.standard_normal((count, 2))
    h = z @ np.array([[1.0, 2.0], [-1.0, 0.5]]) + bend * np.stack([z[:, 0] ** 2, np.zeros(count)], 1)
    return Poses(h, SCALE * z, np.repeat(np.arange(count // 4), 4))


def test_a_probe_is_least_squares_of_one_sample_scored_on_another():
    fit, score = poses(400, bend=1.0), poses(200, bend=1.0)
    found = probe(fit, score, "angles", seed=0)
    columns = [np.column_stack([p.h, np.ones(len(p.h))]) for p in (fit, score)]
    weights = np.linalg.lstsq(columns[0], fit.angles, rcond=None)[0]
    left = np.square(score.angles - columns[1] @ weights).sum()
    around = np.square(score.angles - score.angles.mean(0)).sum()
    assert found.value == pytest.approx(1 - left / around, abs=1e-9) and found.value < 0.95
    assert found.low < found.value < found.high
    assert probe(poses(400), poses(200), "angles", seed=0).value == pytest.approx(1)


def test_on_the_circle_angles_may_go_round():
    """Latents that are sine and cosine: linear there, and not in the angles."""
    angles = RNG.uniform(-np.pi, np.pi, (600, 2))
    h = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    both = [Poses(h[rows], angles[rows], np.arange(300)) for rows in (slice(300), slice(300, 600))]
    assert probe(both[0], both[1], "circle", seed=0).value == pytest.approx(1)
    assert probe(both[0], both[1], "angles", seed=0).value < 0.9


def test_shares_by_degree_are_those_of_the_polynomial():
    """h = (z₀ − z₁ + z₀², 2 z₀ + z₁ / 2): variances 1 + 1 + 4 + 1/4 at degree one, 2 at degree two."""
    shares = degree_shares(poses(4000, bend=1.0), seed=0)
    assert shares["degree_1"].value == pytest.approx(6.25 / 8.25, abs=0.05)
    assert shares["degree_2"].value == pytest.approx(2 / 8.25, abs=0.05)
    assert abs(shares["degree_3"].value) + abs(shares["beyond"].value) < 1e-9


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory):
    recipe = reacher_recipe("tiny", 3, OrnsteinUhlenbeckMotion(rho=0.8), length=4, stride=2)
    with reacher_of(recipe):
        data = gather_episodes(recipe.source, recipe.seed)
        record, found = learn(recipe, tmp_path_factory.mktemp("run"), data, build_windows(recipe, data))
        assert record["status"] == "finished" and record["step"] == recipe.training.steps and found is not None
        yield found


def test_a_model_is_probed_where_it_has_not_learned(model: TrainedModel):
    found, again = probes(model, 120), probes(model, 120)
    targets = {f"{t}_{a}_{b}" for t in ("angles", "circle") for a in ("own", "gaussian") for b in ("own", "gaussian")}
    assert targets < found.keys() and found == again
    drawn = gaussian_poses(model, 120)
    np.testing.assert_allclose(drawn.angles.std(0), SCALE, atol=0.15)
    assert found["angles_own_own"].n == 3 * len(model.data.held)  # five frames in an episode, the last two have no next
    assert found["correlation"].value == pytest.approx(0.8**2, abs=0.2)
    frames = model.data.episodes.rows(model.data.x, np.concatenate([5 * e + np.arange(3) for e in model.data.held]))
    variances = np.linalg.eigvalsh(np.cov(model.encode(frames).double().numpy(), rowvar=False))
    assert found["smallest_variance"].value == pytest.approx(variances[0], rel=1e-4)


def test_a_run_that_is_taken_up_again_is_the_same(model: TrainedModel, tmp_path: Path):
    batches = build_windows(model.recipe, model.data)
    half = replace(model.recipe, training=replace(model.recipe.training, checkpoint_every=6))
    _, once = learn(half, tmp_path, model.data, batches)
    _, again = learn(half, tmp_path, model.data, batches)  # from its last checkpoint
    assert once is not None and again is not None
    frames = model.data.episodes.rows(model.data.x, np.arange(20))
    np.testing.assert_array_equal(again.encode(frames), once.encode(frames))
    np.testing.assert_array_equal(once.encode(frames), model.encode(frames))


@pytest.fixture
def stream() -> WindowStream:
    """Three episodes of numbers, of which the first two are learned from."""
    state = RNG.standard_normal((90, 2)).cumsum(0)
    columns = {"seen": state, "state": state, "action": np.zeros((90, 0), np.float32)}
    source = EpisodeArrays(columns, np.full(3, 30))
    return WindowStream(source, 64, 0, skip=2, x="seen", u="action", z="state", episodes=[0, 1])


def test_the_weights_are_those_of_the_true_states_of_every_pair(stream: WindowStream):
    state = stream.source.rows("state", np.arange(60)).reshape(2, 30, 2).astype(np.float32).astype(np.float64)
    now, later = state[:, :-2].reshape(-1, 2), state[:, 2:].reshape(-1, 2)
    found = isotropised(stream, 0.7)
    np.testing.assert_allclose(found.weights, isotropic_weights(now, later, 0.7, seed=0).weights)
    assert len(found.weights) == stream.count == 56
    np.testing.assert_allclose(isotropised(stream, 0.0).weights, 1)


def test_pairs_come_as_often_as_their_weights_say(stream: WindowStream):
    weights = np.zeros(56)
    weights[[5, 40]] = 1, 3
    batches = WeightedPairs(stream, weights)
    pairs = batches(2)
    rows = {5: 5, 40: 30 + 12}  # a window's number and where it begins: 28 windows an episode
    state = stream.source.rows("state", np.arange(60)).astype(np.float32)
    counts = {n: int((pairs.x.numpy() == state[row]).all(1).sum()) for n, row in rows.items()}
    assert counts == {5: 16, 40: 48}
    np.testing.assert_array_equal(pairs.x_next[-1], state[44])
    np.testing.assert_array_equal(pairs.z, pairs.x)
    many = WeightedPairs(stream, np.ones(56))
    np.testing.assert_array_equal(many(1).x, many(1).x)
    assert not np.array_equal(many(1).x, many(2).x)
