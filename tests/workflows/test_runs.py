"""Training runs, from recipe to certificate."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from training.small import metrics, recipe, same, tensors

from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.data import Siblings
from jepatlas.nn import MLPConfig
from jepatlas.objectives import CovarianceConfig, InfoNCEConfig, LeJEPAConfig, VICRegConfig, WhiteningConfig
from jepatlas.recipes import Recipe, build_batches, load_recipe
from jepatlas.training import Outcome
from jepatlas.workflows.runs import certify_run, load_objective, resume_run, start_run
from jepatlas.worlds import (
    AdditiveGeneralisedNormal,
    AnyLaw,
    AnyMixing,
    BoundedWalk,
    CopulaGeneralisedNormal,
    Coupling,
    InvertibleMLP,
    LatentWorld,
    Lift,
    OrnsteinUhlenbeck,
    ParabolicShear,
    SinusoidalShear,
    Spiral,
    UniformWalk,
)

SHORT = recipe(steps=80, log_every=2, batch_size=128, lr=3e-3)
LAWS: list[AnyLaw] = [
    OrnsteinUhlenbeck(),
    OrnsteinUhlenbeck(rho=(0.9, 0.5)),
    AdditiveGeneralisedNormal(),
    CopulaGeneralisedNormal(),
    UniformWalk(),
    BoundedWalk(),
]
MIXINGS: list[AnyMixing] = [
    Spiral(),
    SinusoidalShear(),
    ParabolicShear(),
    Coupling(),
    Coupling(form="affine"),
    InvertibleMLP(),
    Lift(),
]


def named(value: object) -> str:
    return type(value).__name__


def trains(given: Recipe, folder: Path) -> None:
    """Check that the run finishes, lowers its loss and can be certified."""
    assert start_run(given, folder) == Outcome("finished", given.training.steps)
    losses = [line["loss"] for line in metrics(folder)]
    assert np.median(losses[-10:]) < np.median(losses[:10])
    record = certify_run(folder, samples=600)
    assert json.loads((folder / "records" / "certificate.json").read_text())["verdicts"]
    assert {"r2", "orthogonality"} <= {verdict.name for verdict in record.verdicts}
    assert ("No bound: " in record.summary) != ("bound" in {verdict.name for verdict in record.verdicts})


@pytest.mark.parametrize("mixing", MIXINGS, ids=named)
def test_each_mixing_trains(mixing: AnyMixing, tmp_path: Path):
    trains(replace(SHORT, world=LatentWorld(OrnsteinUhlenbeck(), mixing)), tmp_path / "run")


@pytest.mark.parametrize("law", LAWS[1:], ids=named)
def test_each_law_trains(law: AnyLaw, tmp_path: Path):
    trains(replace(SHORT, world=LatentWorld(law)), tmp_path / "run")


@pytest.mark.parametrize(
    "objective",
    [VICRegConfig(), CovarianceConfig(), InfoNCEConfig(), WhiteningConfig(), LeJEPAConfig(form="additive")],
    ids=named,
)
def test_each_objective_trains(objective, tmp_path: Path):
    given = replace(SHORT, objective=objective, pairs=Siblings())
    trains(given, tmp_path / "run")


def test_projector_and_other_width_train(tmp_path: Path):
    given = replace(SHORT, latent_dim=3, projector=MLPConfig(width=8, depth=1))
    trains(given, tmp_path / "run")
    recipe, objective = load_objective(tmp_path / "run")
    assert objective.encode(build_batches(recipe)(0).x).shape == (128, 3)


def test_run_folder_contains_the_documented_files(tmp_path: Path):
    given = recipe(steps=10)
    start_run(given, tmp_path / "run")
    certify_run(tmp_path / "run", samples=600)
    files = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert files == {
        "recipe.yaml",
        "metrics.jsonl",
        "checkpoints/step-10/state.safetensors",
        "checkpoints/step-10/checkpoint.json",
        "records/outcome.json",
        "records/certificate.json",
        "records/certificate.npz",
    }
    assert load_recipe(tmp_path / "run") == given
    outcome = json.loads((tmp_path / "run" / "records" / "outcome.json").read_text())
    assert outcome["summary"] == "The run finished after 10 of 10 steps."


def test_equal_recipes_give_equal_weights(tmp_path: Path):
    start_run(recipe(steps=10), tmp_path / "a")
    start_run(recipe(steps=10), tmp_path / "deep" / "b")
    start_run(recipe(seed=1, steps=10), tmp_path / "c")
    assert same(tmp_path / "a", tmp_path / "deep" / "b")
    assert not same(tmp_path / "a", tmp_path / "c")


def test_existing_run_is_not_overwritten(tmp_path: Path):
    start_run(recipe(steps=3), tmp_path / "run")
    before = tensors(tmp_path / "run")
    with pytest.raises(InputError, match=r"--resume .*run.*--out"):
        start_run(recipe(seed=1, steps=3), tmp_path / "run")
    (tmp_path / "run" / "recipe.yaml").unlink()
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "run"))):  # its checkpoints belong to another run
        start_run(recipe(steps=3), tmp_path / "run")
    assert all(torch.equal(value, before[name]) for name, value in tensors(tmp_path / "run").items())


def test_recipe_that_cannot_be_built_leaves_no_folder(tmp_path: Path):
    for given in (
        replace(recipe(batch_size=4), objective=WhiteningConfig(), latent_dim=8),
        replace(recipe(), projector=MLPConfig(), objective=WhiteningConfig()),
    ):
        with pytest.raises(InputError):
            start_run(given, tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_run_without_checkpoint_restarts_from_the_beginning(tmp_path: Path):
    start_run(recipe(steps=10), tmp_path / "whole")
    start_run(recipe(steps=10), tmp_path / "run")
    for path in (tmp_path / "run" / "checkpoints").glob("*/*"):
        path.unlink()
    for path in (tmp_path / "run" / "checkpoints").glob("*"):
        path.rmdir()
    with pytest.raises(InputError, match="jepatlas train --resume"):
        load_objective(tmp_path / "run")
    assert resume_run(tmp_path / "run").status == "finished"
    assert same(tmp_path / "run", tmp_path / "whole")


def test_certificate_depends_on_its_samples_and_records_them(tmp_path: Path):
    start_run(recipe(steps=10), tmp_path / "run")
    first, again, other = (certify_run(tmp_path / "run", samples=600, seed=seed) for seed in (0, 0, 1))
    assert [v.value for v in first.verdicts] == [v.value for v in again.verdicts]
    assert [v.value for v in first.verdicts] != [v.value for v in other.verdicts]
    assert {"seed": 0, "trained with seed": 0, "samples": 600}.items() <= first.provenance.items()
    elsewhere = certify_run(tmp_path / "run", samples=600, out=tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "records" / "certificate.json").exists()
    arrays = read_arrays(tmp_path / "elsewhere" / "records" / "certificate.npz")
    assert arrays.keys() == elsewhere.arrays.keys() == {"z", "x", "h", "h_rotated"}


@pytest.mark.parametrize("samples", [0, 1, 3])
def test_certificate_requires_samples(samples: int, tmp_path: Path):
    start_run(recipe(steps=3), tmp_path / "run")
    with pytest.raises(InputError, match=r"samples|rows"):
        certify_run(tmp_path / "run", samples=samples)
    assert not (tmp_path / "run" / "records" / "certificate.json").exists()


def test_averaged_weights_are_certified(tmp_path: Path):
    start_run(recipe(steps=10, ema=0.9), tmp_path / "run")
    _, objective = load_objective(tmp_path / "run")
    assert not objective.training
    arrays = certify_run(tmp_path / "run", samples=600).arrays
    with torch.no_grad():
        h = objective.encode(torch.from_numpy(arrays["x"])).numpy()
    np.testing.assert_allclose(arrays["h"], h, rtol=1e-5, atol=1e-6)
    saved = tensors(tmp_path / "run")
    assert not torch.equal(saved["average.encoder.0.weight"], saved["model.encoder.0.weight"])
