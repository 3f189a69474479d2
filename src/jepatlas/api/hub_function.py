"""`push_to_hub`: a model with its certificate as a repository of the HuggingFace Hub."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jepatlas.alignment import Atlas, LinearProbe, save_atlas
from jepatlas.api.inputs import as_folder
from jepatlas.api.record_files import read_saved_record
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Record
from jepatlas.recipes import EnergyRecipe, any_recipe
from jepatlas.results import Result
from jepatlas.workflows.encoder_files import SavedEncoder, save_encoder
from jepatlas.workflows.energy import FittedEnergy, SavedEnergy, load_fitted, save_energy
from jepatlas.workflows.hub import ATLAS, is_repository_name, upload, write_card

__all__ = ["push_to_hub"]

OUTCOME = "outcome"  # the record of how a training ended, which does not describe the model


def push_to_hub(
    model: Any,
    repository: str,
    *,
    certificate: Result | Mapping[str, Result] | None = None,
    private: bool = False,
    token: str | None = None,
) -> str:
    """Upload a model to the repository "user/name" of the HuggingFace Hub; returns its address.

    `model` is a run folder (its encoder, or its energy), a `LinearMap`, `LinearProbe`, `SavedEnergy`, `FittedEnergy`,
    `Atlas` or what `load` returned for a repository. The files are safetensors and JSON, with a model card that shows
    the checks of `certificate`; for a run, by default those of its records. `ja.load("user/name")` loads it again.
    `token` and the address are those of `huggingface_hub` (HF_TOKEN, HF_ENDPOINT) if they are not given.
    """
    if not isinstance(repository, str) or not is_repository_name(repository) or "@" in repository:
        raise InputError(f"'repository' is {repository!r}, but it must have the form user/name.")
    records = _records(model, certificate)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        kind = _write_model(model, folder)
        write_card(folder, kind, repository, records)
        return upload(folder, repository, private=private, token=token)


def _records(model: Any, certificate: Result | Mapping[str, Result] | None) -> dict[str, Record]:
    if isinstance(certificate, Result):
        return {certificate.record_name: certificate.record}
    if certificate is not None:
        return {name: result.record for name, result in certificate.items()}
    if not isinstance(model, str | Path):
        return {}
    paths = sorted(Path(model).glob("records/*.json"))
    return {path.stem: read_saved_record(path) for path in paths if path.stem != OUTCOME}


def _write_model(model: Any, folder: Path) -> str:
    """Write a model under the name of its kind; returns the kind."""
    if isinstance(model, str | Path):
        run = as_folder("model", model)
        if not (run / "recipe.yaml").is_file():
            raise InputError(f"'model': {run} is not a run folder. Load other files first: ja.load(path).")
        if any_recipe(run).kind != EnergyRecipe.kind:
            save_encoder(run, folder / "encoder.safetensors")
            return "encoder"
        model = load_fitted(run)
    if isinstance(model, FittedEnergy):
        model = model.saved()
    if isinstance(model, Atlas):
        save_atlas(model, folder / ATLAS)
        return ATLAS
    if isinstance(model, SavedEnergy):
        save_energy(model, folder / "energy.safetensors")
        return "energy"
    if isinstance(model, SavedEncoder):
        (folder / "encoder.safetensors").write_bytes(model.to_bytes())
        return "encoder"
    for kind, one in (("map", LinearMap), ("probe", LinearProbe)):
        if isinstance(model, one):
            model.save(folder / f"{kind}.safetensors")
            return kind
    raise InputError(
        f"'model' must be a run folder, a map, a probe, an energy, an atlas or a saved encoder, not a "
        f"{type(model).__name__}."
    )
