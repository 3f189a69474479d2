from __future__ import annotations

import io
import math
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.files import cache_folder
from jepatlas.worlds.reacher import OrnsteinUhlenbeckMotion, Reacher, SACMotion, ScriptedMotion, fingertip
from jepatlas.worlds.reacher.kinematics import WRIST_LIMIT, draw_targets, joint_angles
from jepatlas.worlds.reacher.sac import OBSERVED, TorqueArms, mean_actions

TINY = SACMotion(training_steps=40, width=8, steps_per_target=5)
QUIET = Console(quiet=True)


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path_factory.getbasetemp() / "cache"  # shared by all tests, so that the policy is trained once
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "jepatlas"


@pytest.mark.parametrize("motion", [OrnsteinUhlenbeckMotion(), ScriptedMotion(), TINY], ids=lambda motion: motion.kind)
def test_trajectories_depend_on_the_seed_and_recipes_round_trip(motion, cache):
    first = motion.trajectory(Reacher(), 6, 11, seed=3)
    assert first.shape == (6, 11, 2) and np.isfinite(first).all()
    again = from_plain(type(motion), to_plain(motion)).trajectory(Reacher(), 6, 11, seed=3)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, motion.trajectory(Reacher(), 6, 11, seed=4))
    with pytest.raises(InputError, match="length is 0"):
        motion.trajectory(Reacher(), 6, 0, seed=3)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_ornstein_uhlenbeck_moments_and_correlations(rho):
    """N(0, scale² I) at every step, and correlation ρ^k after k steps; episodes are independent, so errors are 1/√e."""
    count = 20_000
    z = OrnsteinUhlenbeckMotion(rho, scale=0.5).trajectory(Reacher(), count, 6, seed=0) / 0.5
    error = 5 / math.sqrt(count)
    for step in (0, 5):
        np.testing.assert_allclose(z[:, step].mean(0), 0, atol=error)
        np.testing.assert_allclose(z[:, step].T @ z[:, step] / count, np.eye(2), atol=error * math.sqrt(2))
        np.testing.assert_allclose((z[:, step] ** 4).mean(0), 3, atol=error * math.sqrt(96))
    for lag in (1, 2, 5):
        np.testing.assert_allclose(z[:, 0].T @ z[:, lag] / count, rho**lag * np.eye(2), atol=error * math.sqrt(2))


def test_share_outside_the_range():
    motion = OrnsteinUhlenbeckMotion(rho=0.0, scale=0.835)
    angles = motion.trajectory(Reacher(), 1_000_000, 1, seed=0)[:, 0]
    outside = ((np.abs(angles) > [math.pi, WRIST_LIMIT]).any(1)).mean()
    assert outside == pytest.approx(motion.outside, abs=5 * math.sqrt(motion.outside / 1e6))


def test_the_scripted_arm_reaches_its_target():
    world, motion = Reacher(), ScriptedMotion(steps_per_target=60, noise=0.0)
    last = motion.trajectory(world, 30, 60, seed=0)[:, -1]
    far = np.linalg.norm(fingertip(last), axis=1)
    assert (far > 0.05 - 1e-4).all() and (far < 0.2 + 1e-4).all()  # a target's distance, to within 1e-4
    side = np.sign(last[:, 1])
    np.testing.assert_allclose(joint_angles(fingertip(last), side), last, atol=1e-9)
    assert {-1.0, 1.0} == set(side)


@pytest.mark.parametrize("gain", [0.3, 1.0])
def test_scripted_steps_are_valid_actions_without_wrapping(gain):
    world = Reacher(max_turn=0.1)
    angles = ScriptedMotion(gain=gain, arc=1.7).trajectory(world, 200, 100, seed=1)
    turns = np.diff(angles, axis=1)
    assert np.abs(turns).max() <= world.max_turn + 1e-12
    assert world.admits(angles.reshape(-1, 2)).all()


def test_scripted_distance_shrinks_by_the_gain():
    """Without noise and turn limits, the distance shrinks by 1 − gain in every step."""
    angles = ScriptedMotion(steps_per_target=40, gain=0.5, noise=0.0).trajectory(Reacher(max_turn=3.0), 20, 40, seed=2)
    left = angles[:, :10] - angles[:, -1:]
    np.testing.assert_allclose(left[:, 1:], 0.5 * left[:, :-1], atol=1e-9)


def test_torque_arms_follow_torques_and_observe_their_state():
    arms, rng = TorqueArms(3), np.random.default_rng(0)
    arms.reset(rng)
    arms.targets = draw_targets(3, 1.5, rng)
    before = arms.angles
    arms.step(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]))
    turned = (arms.angles - before)[:, 0]
    assert turned[0] > 1e-3 and turned[1] < -1e-3 and abs(turned[2]) < 1e-9
    seen = arms.observe()
    assert seen.shape == (3, OBSERVED) and seen.dtype == np.float32
    np.testing.assert_allclose(
        np.arctan2(seen[:, 2:4], seen[:, 0:2]), np.arctan2(*[f(arms.angles) for f in (np.sin, np.cos)]), atol=1e-6
    )
    np.testing.assert_allclose(seen[:, 6:8] - seen[:, 8:10], fingertip(arms.angles) / 0.24, atol=1e-6)


def test_a_policy_is_trained_once_and_reloads_to_the_same_actions(cache):
    from stable_baselines3 import SAC

    from jepatlas.worlds.reacher.sac_training import TorqueEnv

    weights, made = TINY.policy(QUIET), TINY.path.stat()
    model = SAC("MlpPolicy", TorqueEnv(5, 1.5), policy_kwargs={"net_arch": [8, 8]}, buffer_size=1, device="cpu")
    model.policy.actor.load_state_dict(weights)
    seen = np.random.default_rng(0).standard_normal((20, OBSERVED)).astype(np.float32)
    np.testing.assert_allclose(mean_actions(weights, seen), model.predict(seen, deterministic=True)[0], atol=1e-6)
    np.testing.assert_array_equal(mean_actions(TINY.policy(QUIET), seen), mean_actions(weights, seen))
    assert TINY.path.stat() == made and TINY.path.parent == cache == cache_folder()


def test_learned_trajectories_are_admissible_states(cache):
    angles = TINY.trajectory(Reacher(), 20, 100, seed=0)
    assert Reacher().admits(angles.reshape(-1, 2)).all() and (np.abs(angles[..., 0]) <= np.pi).all()
    assert (np.abs(angles[..., 1]) == WRIST_LIMIT).any()  # some joints reach their limit


@pytest.mark.filterwarnings("ignore:.*A Box observation space:UserWarning")
def test_training_environment_passes_check_env():
    from gymnasium.utils.env_checker import check_env

    from jepatlas.worlds.reacher.sac_training import TorqueEnv

    check_env(TorqueEnv(5, 1.5), skip_render_check=True)


def generators() -> tuple:
    return random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()


def test_training_is_independent_of_global_generators(cache):
    motions = [replace(TINY, training_seed=seed) for seed in (1, 1, 2)]
    found = []
    for number, motion in enumerate(motions):
        motion.path.unlink(missing_ok=True)
        random.seed(number)
        np.random.seed(number)
        torch.manual_seed(number)
        before = generators()
        found.append(motion.policy(QUIET)["mu.weight"])
        assert generators() == before
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    assert motions[0].path != motions[2].path != TINY.path


def test_truncated_policy_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    TINY.path.parent.mkdir()
    TINY.path.write_bytes(b"\x10\x00")
    with pytest.raises(InputError, match=TINY.path.name):
        TINY.policy(QUIET)


def test_cache_folder_location(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert cache_folder() == tmp_path / ".cache" / "jepatlas"


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (OrnsteinUhlenbeckMotion, {"rho": 1.0}, "rho is 1.0"),
        (OrnsteinUhlenbeckMotion, {"scale": 0.84}, "scale is 0.84"),
        (OrnsteinUhlenbeckMotion, {"scale": float("nan")}, "scale is nan"),
        (ScriptedMotion, {"gain": 0.0}, "gain is 0.0"),
        (ScriptedMotion, {"noise": -0.1}, "noise is -0.1"),
        (ScriptedMotion, {"arc": 3.0}, "arc is 3.0"),
        (ScriptedMotion, {"steps_per_target": 0}, "steps_per_target is 0"),
        (SACMotion, {"training_steps": 10}, "training_steps is 10"),
        (SACMotion, {"width": 0}, "width is 0"),
        (SACMotion, {"arc": 0.0}, "arc is 0.0"),
    ],
)
def test_invalid_fields_are_refused(kind, given, message):
    with pytest.raises(InputError, match=message):
        kind(**given)


def test_concurrent_workers_train_a_policy_once(cache):
    """Every thread opens the lock file separately, like processes."""
    motion, consoles = replace(TINY, training_seed=9), [Console(file=io.StringIO()) for _ in range(3)]
    with ThreadPoolExecutor(3) as workers:
        found = list(workers.map(motion.policy, consoles))
    outputs = [console.file.getvalue() for console in consoles]  # pyright: ignore[reportAttributeAccessIssue]
    assert sum("Training" in text for text in outputs) == 1
    for weights in found[1:]:
        assert all(torch.equal(weights[name], found[0][name]) for name in found[0])
