"""Certificates of world models: latents, and their dynamics under actions."""

import json
from pathlib import Path

import pytest
from training.small import call
from workflows.plan.small import run

from jepatlas.core.errors import InputError
from jepatlas.identifiability import certify_dynamics
from jepatlas.nn import MLPConfig, ResidualDynamicsConfig
from jepatlas.recipes import Predictive, TwoFrames, WalkedWorld
from jepatlas.workflows.plan import certify_world_model, latent_episodes, load_world_model
from jepatlas.worlds import LinearQuadratic, OrnsteinUhlenbeckMotion, Reacher, Rooms

DYNAMICS = ("linear_dynamics", "action_share", "persistent_excitation", "conjugacy_a", "conjugacy_b", "conjugacy_scale")
LINEAR = {
    "source": WalkedWorld(LinearQuadratic(), episodes=60, length=20),
    "encoder": MLPConfig(width=16),
    "latent_dim": 4,
    "model": Predictive(dynamics=ResidualDynamicsConfig(16)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("identified") / "run", **LINEAR)


def test_dynamics_verdicts_use_held_out_episodes(folder: Path):
    record = certify_world_model(folder, out=folder / "elsewhere")
    found = {verdict.name: verdict for verdict in record.verdicts}
    held = latent_episodes(load_world_model(folder))
    direct = certify_dynamics(held.h, held.u, held.h_next, held.z, held.z_next, groups=held.episode)
    assert [found[name] for name in DYNAMICS] == direct
    assert found["persistent_excitation"].n == len(held.h) == 120
    assert "Under actions" in record.summary
    assert (folder / "elsewhere" / "records" / "certificate.json").is_file()


def test_true_states_pass_the_dynamics_checks(folder: Path):
    """With its states as latents, the linear world has linear dynamics conjugate to the true ones."""
    model = load_world_model(folder)
    held = latent_episodes(model)
    assert held.z is not None and held.z_next is not None and isinstance(model.world, LinearQuadratic)
    truth = (model.world.A, model.world.B)
    found = certify_dynamics(held.z, held.u, held.z_next, held.z, truth=truth, groups=held.episode)
    values = {verdict.name: verdict.value for verdict in found}
    assert values["linear_dynamics"] == pytest.approx(1, abs=1e-9)
    assert max(values["conjugacy_a"], values["conjugacy_b"]) < 1e-6, "actions are stored in float32"


def test_certify_command_on_world_models(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert call("certify", folder, "--samples", "120", "--json", "-") == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(DYNAMICS) <= {verdict["name"] for verdict in answer["verdicts"]}
    assert call("certify", folder, "--samples", "3") == 2
    assert "100" in capsys.readouterr().err


def test_no_dynamics_verdicts_without_actions(tmp_path: Path):
    pytest.importorskip("mujoco")
    source = WalkedWorld(Reacher(), OrnsteinUhlenbeckMotion(), episodes=40, length=8)
    record = certify_world_model(run(tmp_path / "run", source=source, model=TwoFrames(), latent_dim=2))
    assert not {verdict.name for verdict in record.verdicts} & set(DYNAMICS) and "Under actions" not in record.summary


def test_surplus_latents_have_dynamics_verdicts_without_thresholds(tmp_path: Path):
    source = WalkedWorld(Rooms(), episodes=40, length=40)
    record = certify_world_model(run(tmp_path / "run", source=source, latent_dim=16), audited=True)
    assert record.summary.lower().count("spectrum of the latents") == 1
    assert "surplus dimensions" in record.summary
    found = {verdict.name: verdict for verdict in record.verdicts}
    assert found["conjugacy_a"].passed is None and found["conjugacy_b"].passed is None
    assert found["persistent_excitation"].passed, "actions are random"


def test_too_few_samples_are_refused(folder: Path):
    with pytest.raises(InputError, match="samples is 99"):
        certify_world_model(folder, samples=99)
