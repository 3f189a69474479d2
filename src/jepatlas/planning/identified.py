"""The certificate of a world model: its latents of frames that were held out, against the true states."""

from __future__ import annotations

from pathlib import Path

from jepatlas.base.errors import InputError
from jepatlas.certificates import Certificate, certificate
from jepatlas.planning.models import latent_episodes, load_world_model

__all__ = ["certify_world_model"]


def certify_world_model(
    folder: Path, *, samples: int = 40_000, seed: int = 0, out: Path | None = None, audited: bool = False
) -> Certificate:
    """Certify a run on its held-out episodes, and keep the record as `records/certificate.json`.

    Rows of one episode are alike, so intervals draw whole episodes.
    """
    model = load_world_model(folder)
    if model.data.z is None:
        raise InputError(
            f"{folder} was trained on a file without true states. Name their column with --source.state, or judge its "
            "latents as a file: jepatlas certify LATENTS.npz."
        )
    found = latent_episodes(model, most=samples)
    assert found.z is not None
    arrays = {"h": found.h, "h_next": found.h_next, "z": found.z, "groups": found.episode}
    note = "No bound is given: it presumes a Gaussian world whose rate is known."
    about = {"trained with seed": model.recipe.seed, "held-out episodes": len(model.data.held)}
    title = f"Certificate of {folder.name}"
    record = certificate(title, arrays, rho=None, seed=seed, audited=audited, note=note, about=about)
    record.save(out or folder, "certificate")
    return record
