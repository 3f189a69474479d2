"""Frame history: in a world observed by positions, two frames determine the velocity and one does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from workflows.plan.small import Integrator, recipe, run, tracking_agent

from jepatlas.core.config import to_plain
from jepatlas.core.linear import least_squares, r2
from jepatlas.core.linear_map import LinearMap
from jepatlas.data import RandomPolicy, collect, stack_history
from jepatlas.nn import MLPConfig, ResidualDynamicsConfig
from jepatlas.planning import MPPIConfig
from jepatlas.recipes import EpisodeSource, Predictive, gather_episodes
from jepatlas.workflows.plan import (
    DrivingConfig,
    PlanningAgent,
    agent_of,
    draw_tasks,
    drive,
    euclidean,
    imagined_films,
    latent_episodes,
    load_world_model,
    ported,
)
from jepatlas.worlds import LinearQuadratic, Rooms


@dataclass(frozen=True)
class Positions(LinearQuadratic):
    """A mass on a spring: p' = p + v/2, v' = 0.7 v − p/2 + u/4, where only p is observed."""

    dim: int = 2
    actions: int = 1
    a: Any = ((1.0, 0.5), (-0.5, 0.7))
    b: Any = ((0.0,), (0.25,))

    def observe(self, states: np.ndarray) -> np.ndarray:
        return np.array(states[..., :1])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> EpisodeSource:
    path = tmp_path_factory.mktemp("positions") / "p.h5"
    collect(Positions().make, RandomPolicy(0.8), 60, 20, 0, out=path, options={"goal": None})
    return EpisodeSource(str(path)).sealed()


def positions(file: EpisodeSource, history: int) -> dict[str, Any]:
    """Options of a model that observes positions. The column is not named, because it is the only observation."""
    model = Predictive(dynamics=ResidualDynamicsConfig(16))
    return {"source": file, "encoder": MLPConfig(width=16), "latent_dim": 4, "model": model, "history": history}


def velocity_r2(folder: Path) -> float:
    """Held-out R² of the velocity by a linear map of the latents, fitted on the training episodes."""
    model = load_world_model(folder)
    fit, score = latent_episodes(model, held=False), latent_episodes(model)
    assert fit.z is not None and score.z is not None
    return r2(score.z[:, 1:], least_squares(fit.h, fit.z[:, 1:]).apply(score.h))


def test_two_frames_show_the_velocity_and_one_does_not(file: EpisodeSource, tmp_path: Path):
    one, two = (velocity_r2(run(tmp_path / f"m{m}", steps=20, **positions(file, m))) for m in (1, 2))
    assert one < 0.3 and two > 0.8


def test_held_out_latents_use_the_stacking_of_training(file: EpisodeSource, tmp_path: Path):
    """Latents equal those of frames stacked by hand, with the first frame repeated."""
    model = load_world_model(run(tmp_path / "run", **positions(file, 3), stride=2))
    found = latent_episodes(model)
    number = int(model.data.held[0])
    x = gather_episodes(file, 0).episodes.episode(number)["observation"][:, 0]
    rows = np.stack([[x[max(0, t - 4)], x[max(0, t - 2)], x[t]] for t in range(len(x) - 2)])
    with torch.no_grad():
        h = model.objective.encode(torch.as_tensor(rows, dtype=torch.float32))
    assert np.allclose(found.h[found.episode == number], h.numpy(), atol=1e-5)


def test_single_frames_are_repeated(tmp_path: Path):
    model = load_world_model(run(tmp_path / "run", history=2))
    world, agent = model.world, agent_of(model)
    assert world is not None and agent.history == 2
    goal = world.observe(world.states(3, np.random.default_rng(0)))
    assert torch.equal(agent.encode(goal), agent.encode(np.concatenate([goal, goal], -1)))
    assert model.objective.encode(torch.zeros(2, 6, 64, 64, dtype=torch.uint8)).shape == (2, 8)
    arrays, _ = imagined_films(model, agent, 1, steps=3)
    assert arrays[f"imagined-{model.data.held[0]}"].shape == (4, 64, 64, 3), "films show single frames"
    same = LinearMap(np.eye(8), np.zeros(8), np.zeros(8))
    assert ported(agent, agent.encode, same).history == 2 and ported(agent, agent.encode, same, history=1).history == 1


@pytest.mark.parametrize("stride", [1, 2])
def test_agent_stacks_past_frames_while_driving(stride: int):
    """The agent receives the stacked observations of the states in the record of the drive."""
    world, shown = Rooms(), []
    last_frame = tracking_agent(world, world.step_length).encode

    def locate(observations: np.ndarray) -> torch.Tensor:
        shown.append(observations)
        return last_frame(observations[..., -3:])

    class Strided(Integrator):
        def rollout(self, h: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
            return super().rollout(h, actions.unflatten(-1, (stride, 2)).sum(-2))

    agent = PlanningAgent(locate, Strided(world.step_length), euclidean, 2, stride, history=3)
    config = DrivingConfig(MPPIConfig(horizon=3, samples=8, iterations=1), steps=4 * stride)
    driven = drive(world, agent, draw_tasks(world, 2, 0), config)
    assert shown[0].shape[-1] == 3, "the goal is a single frame"
    seen = [world.observe(driven.states[:, t]) for t in range(0, driven.states.shape[1], stride)]
    assert len(shown) == 1 + len(seen) > 3
    for t, given in enumerate(shown[1:]):
        assert np.array_equal(given, stack_history(seen[: t + 1], 3))


def test_runs_without_a_history_field_can_be_loaded(tmp_path: Path):
    folder = run(tmp_path / "run")
    saved = yaml.safe_load((folder / "recipe.yaml").read_text())
    assert "history" not in saved and to_plain(recipe(history=2))["history"] == 2
    model = load_world_model(folder)
    assert model.recipe == recipe() and model.recipe.history == 1
    assert replace(model.recipe, history=2) != model.recipe
