"""User-defined classes in the user's own file: trained, certified, resumed; never imported without permission."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import yaml
from cli.calls import Captured, refused
from training.small import call

import jepatlas as ja
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.plugins import DEFINED, trusting
from jepatlas.recipes import Recipe, WorldModelRecipe, any_recipe, recipe_from_plain

SOURCE = '''
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import nn

import jepatlas as ja
from jepatlas.core.records import Loss
from jepatlas.energy.heads import L2Config
from jepatlas.objectives import PairObjective, SIGRegConfig

Path("imported").touch()


@dataclass(frozen=True)
class Whitened(ja.Plugin):
    weight: float = 0.1
    sigreg: SIGRegConfig = field(default_factory=SIGRegConfig)

    def build(self, parts):
        return WhitenedLoss(parts.encoder, parts.projector, self.weight)


class WhitenedLoss(PairObjective):
    def __init__(self, encoder, projector, weight):
        super().__init__(encoder, projector)
        self.weight = weight

    def loss(self, h, h_next, step):
        difference = (h - h_next).square().mean()
        shape = (h.T @ h / len(h) - torch.eye(h.shape[1], dtype=h.dtype)).square().sum()
        return Loss(difference + self.weight * shape, {"shape": shape.detach()})


@dataclass(frozen=True)
class Linear(ja.Plugin):
    def build(self, in_dim, out_dim):
        return nn.Linear(in_dim, out_dim)


@dataclass(frozen=True)
class Still(ja.Plugin):
    """A mixing."""

    def observed_dim(self, dim):
        return dim

    def __call__(self, z):
        return 2 * z

    def inverse(self, x):
        return x / 2


@dataclass(frozen=True)
class Segment(ja.Plugin):
    """A world: a point in [-1, 1]."""

    speed: float = 0.2
    state_dim = action_dim = 1

    def states(self, count, rng):
        return rng.uniform(-1, 1, (count, 1))

    def step(self, states, actions):
        return np.clip(states + self.speed * actions, -1, 1)

    def observe(self, states):
        return np.concatenate([states, states**3], axis=1)

    def admits(self, states):
        return (np.abs(states) <= 1)[:, 0]

    def goals(self, states, rng):
        return self.states(len(states), rng)

    def reached(self, states, goals):
        return (np.abs(states - goals) < 0.1)[:, 0]


@dataclass(frozen=True)
class Head(ja.Plugin):
    scale: float = 1.0

    def build(self, width):
        return L2Config().build(width)


class NoDataclass(ja.Plugin):
    pass


@dataclass(frozen=True)
class NoDefault(ja.Plugin):
    weight: float


@dataclass(frozen=True)
class NoBuild(ja.Plugin):
    pass


class NoPlugin:
    pass
'''


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a module in the working directory that no other test has imported."""
    name = f"own_{abs(hash(request.node.name))}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path(f"{name}.py").write_text(SOURCE)
    return name


def train(module: str, *words: str) -> None:
    assert call("train", "--steps", "3", "--batch-size", "32", "--out", "run", *words) == 0


def forget(module: str) -> None:
    """As in a new process."""
    sys.modules.pop(module, None)
    for kind in [kind for kind in DEFINED if kind.startswith(module)]:
        del DEFINED[kind]
    Path("imported").unlink(missing_ok=True)


def test_objective_encoder_and_mixing_are_chosen_on_the_command_line(module: str):
    train(
        module,
        *("--objective", f"{module}:Whitened", "--objective.weight", "0.5", "--objective.sigreg.slices", "8"),
        *("--encoder", f"{module}:Linear", "--mixing", f"{module}:Still"),
    )
    saved = yaml.safe_load(Path("run/recipe.yaml").read_text())
    assert saved["objective"]["kind"] == f"{module}:Whitened"
    assert saved["objective"]["weight"] == 0.5 and saved["objective"]["sigreg"]["slices"] == 8
    assert saved["encoder"] == {"kind": f"{module}:Linear"}
    recipe = any_recipe(Path("run"))
    assert recipe_from_plain(to_plain(recipe)) == recipe
    loaded = ja.load("run")
    assert isinstance(loaded.encoder, torch.nn.Linear)


def test_a_recipe_imports_nothing_without_permission(module: str, capsys: Captured):
    train(module, "--objective", f"{module}:Whitened")
    forget(module)
    capsys.readouterr()
    for command in (["certify", "run"], ["train", "--resume", "run"], ["train", "--recipe", "run/recipe.yaml"]):
        message = refused(capsys, *command)
        assert f"{module}:Whitened" in message and "--trust" in message
    with pytest.raises(InputError, match=f"import {module}"):
        ja.load("run")
    assert not Path("imported").exists()
    assert call("certify", "run", "--samples", "300", "--trust") == 0
    assert Path("imported").exists()


def test_permission_ends_with_the_command(module: str, capsys: Captured):
    train(module, "--objective", f"{module}:Whitened")
    forget(module)
    assert call("train", "--resume", "run", "--trust") == 0
    forget(module)
    capsys.readouterr()
    assert "--trust" in refused(capsys, "certify", "run")
    assert not Path("imported").exists()


def test_plugins_are_found_where_they_were_at_training(module: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured):
    train(module, "--objective", f"{module}:Whitened")
    forget(module)
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert call("certify", "../run", "--samples", "300", "--trust") == 0
    forget(module)
    capsys.readouterr()
    Path(f"../{module}.py").unlink()
    message = refused(capsys, "certify", "../run", "--trust")
    assert f"{module}:Whitened" in message and "not found" in message and str(Path("..").resolve()) in message


def test_report_needs_no_permission(module: str):
    train(module, "--objective", f"{module}:Whitened")
    forget(module)
    assert call("report", "run") == 0
    assert not Path("imported").exists()


def test_a_sweep_imports_plugins_in_its_processes(module: str):
    words = ("--vary", f"objective={module}:Whitened,vicreg", "--steps", "3", "--batch-size", "32", "--workers", "1")
    assert call("sweep", *words, "--out", "grid") == 0
    assert len(list(Path("grid").glob("*/records/certificate.json"))) == 2


def test_a_user_world_is_explored(module: str):
    length = ("--source.episodes", "20", "--source.length", "12", "--steps", "3")
    words = ("--source.world.speed", "0.3", "--model", "frames", "--objective", f"{module}:Whitened")
    assert call("train", "world-model", f"{module}:Segment", *length, *words) == 0
    (folder,) = Path("runs").iterdir()
    recipe = any_recipe(folder)
    assert isinstance(recipe, WorldModelRecipe) and recipe.source.world.kind == f"{module}:Segment"
    assert recipe.source.world.speed == 0.3 and recipe.model.objective.kind == f"{module}:Whitened"
    assert call("train", "world-model", *length, "--world", f"{module}:Segment", "--out", "again") == 0
    assert recipe.encoder.kind == "mlp"


def test_a_user_energy_head_is_fitted_and_loaded(module: str):
    words = ("one-way-grid", "--head", f"{module}:Head", "--head.scale", "2", "--steps", "3")
    assert call("energy", "fit", *words, "--out", "energy") == 0
    assert any_recipe(Path("energy")).head.scale == 2
    assert ja.load("energy") is not None


def test_a_plugin_in_a_recipe_object_round_trips(module: str):
    with trusting(True):
        recipe = from_plain(Recipe, {"objective": {"kind": f"{module}:Whitened", "weight": 0.25}})
    assert recipe.objective.weight == 0.25
    run = ja.train(
        Recipe(objective=recipe.objective, training=from_plain(type(recipe.training), {"steps": 2})), "python"
    )
    assert run.passed and any_recipe(run.folder).objective == recipe.objective


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("NoDataclass", "frozen dataclass"),
        ("NoDefault", "weight"),
        ("NoBuild", "'build'"),
        ("NoPlugin", "jepatlas.Plugin"),
        ("Whitend", "Did you mean 'Whitened'"),
    ],
)
def test_unusable_classes_are_rejected_with_the_reason(module: str, name: str, complaint: str, capsys: Captured):
    Path("imported").touch()
    assert complaint in refused(capsys, "train", "--objective", f"{module}:{name}", "--out", "run")


def test_unknown_modules_are_rejected(capsys: Captured):
    assert "no_such_file.py" in refused(capsys, "train", "--objective", "no_such_file:My", "--out", "run")


def test_a_file_with_the_name_of_another_module_is_rejected(capsys: Captured):
    Path("yaml.py").write_text(SOURCE)
    assert "Rename the file" in refused(capsys, "train", "--objective", "yaml:Whitened", "--out", "run")
