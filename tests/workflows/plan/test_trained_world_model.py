"""Trained world models: encoding, latents of held-out episodes, agents."""

from pathlib import Path

import numpy as np
import pytest
import torch
from workflows.plan.small import recipe, run

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.energy import LeastAction, LeastActionConfig
from jepatlas.nn import ResidualDynamicsConfig
from jepatlas.recipes import Predictive, TwoFrames
from jepatlas.workflows.plan import agent_of, latent_episodes, latent_steps, load_world_model, ported


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("models") / "run")


def test_encode_takes_images_with_channels_last(folder: Path):
    model = load_world_model(folder)
    assert model.world is not None
    seen = model.world.observe(model.world.states(5, np.random.default_rng(0)))
    first = torch.from_numpy(seen).permute(0, 3, 1, 2)
    with torch.no_grad():
        assert torch.allclose(model.encode(seen), model.objective.encode(first), atol=1e-6)


def test_latent_pairs_are_of_held_out_episodes(folder: Path):
    model = load_world_model(folder)
    found = latent_episodes(model)
    assert set(found.episode) == set(model.data.held) and not set(found.episode) & set(model.data.learnt)
    assert len(found.h) == 20 * len(model.data.held)
    assert found.z is not None and found.z_next is not None and model.world is not None
    assert np.allclose(model.world.step(found.z, found.u), found.z_next)
    assert np.allclose(found.h, model.encode(model.world.observe(found.z)), atol=1e-5)
    assert np.allclose(found.h_next, model.encode(model.world.observe(found.z_next)), atol=1e-5)


def test_subsampled_pairs_cover_all_episodes(tmp_path: Path):
    model = load_world_model(run(tmp_path / "run", steps=1, stride=2))
    all_, some = latent_episodes(model, held=False), latent_episodes(model, held=False, most=40)
    assert len(some.h) == 40 and set(some.episode) == set(all_.episode)
    assert some.u.shape == (40, 4), "two actions per step of the model"


def test_ported_agent_applies_the_map(folder: Path):
    model = load_world_model(folder)
    agent, world = agent_of(model), model.world
    assert world is not None
    turn = LinearMap(np.roll(np.eye(8), 1, 0), np.zeros(8), np.ones(8))
    seen = world.observe(world.states(4, np.random.default_rng(1)))
    other = ported(agent, agent.encode, turn)
    assert torch.allclose(other.encode(seen).double(), torch.as_tensor(turn.apply(agent.encode(seen).double().numpy())))
    assert other.dynamics is agent.dynamics and other.energy is agent.energy


def test_agents_need_dynamics(tmp_path: Path):
    model = load_world_model(run(tmp_path / "run", model=TwoFrames()))
    with pytest.raises(InputError, match="dynamics"):
        agent_of(model)


def test_recipe_is_loaded_unchanged(folder: Path):
    assert load_world_model(folder).recipe == recipe()


@pytest.mark.parametrize("stride", [1, 3])
def test_steps_lead_from_frame_to_frame_in_sequences(stride: int, tmp_path: Path):
    model = load_world_model(run(tmp_path / "run", stride=stride))
    steps = latent_steps(model, held=True)
    pairs = latent_episodes(model)
    same = (steps.episode[1:] == steps.episode[:-1])[:, None]
    assert np.where(same, steps.x[1:] == steps.x_next[:-1], True).all()
    assert len(np.unique(steps.episode)) == stride * len(model.data.held)
    found, wanted = (
        np.concatenate([each[0], each[1]], 1) for each in ((steps.x, steps.x_next), (pairs.h, pairs.h_next))
    )
    order, other = (np.lexsort(rows.round(4).T) for rows in (found, wanted))
    np.testing.assert_allclose(found[order], wanted[other], atol=1e-3)


def test_an_agent_plans_with_least_action_if_its_recipe_says_so(tmp_path: Path):
    parts = Predictive(dynamics=ResidualDynamicsConfig(16), energy=LeastActionConfig(cells=20))
    model = load_world_model(run(tmp_path / "run", model=parts))
    energy = agent_of(model).energy
    assert isinstance(energy, LeastAction) and energy is model.least_action
    h = torch.from_numpy(latent_steps(model).x[:10])
    assert energy(h, h[:1]).shape == (10,) and energy(h[:1], h[:1]) == 0
