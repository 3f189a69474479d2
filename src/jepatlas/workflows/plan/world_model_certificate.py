"""Certificate of a world model: latents of held-out frames against the true states.

With actions, the record also compares the dynamics of the latents with those of the states.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jepatlas.core.errors import InputError
from jepatlas.workflows.certify import SAMPLES, CertificateRecord, certificate, check_samples
from jepatlas.workflows.certify_actions import ActionFindings
from jepatlas.workflows.plan.trained_world_model import LatentEpisodes, latent_episodes, load_world_model

__all__ = ["certify_world_model"]

MIN_EPISODES = 3  # held out: one to fit on, two to score on
MIN_FRAMES = 20


def certify_world_model(
    folder: Path,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    out: Path | None = None,
    audited: bool = False,
    quick: bool = False,
) -> CertificateRecord:
    """Certify a run on its held-out episodes and save `records/certificate.json`.

    Intervals resample whole episodes, because rows of an episode are dependent.
    """
    check_samples(samples)
    model = load_world_model(folder)
    if model.data.z is None:
        raise InputError(
            f"{folder} was trained on a file without true states. Name their column with --source.state, or certify "
            "a file of latents: jepatlas certify LATENTS.npz."
        )
    held = len(model.data.held)
    if held < MIN_EPISODES:
        raise InputError(
            f"{folder.name} holds out {held} of its episodes, but a certificate needs at least {MIN_EPISODES}. A "
            "tenth of the episodes is held out: train on more of them."
        )
    pairs = latent_episodes(model, most=samples)
    assert pairs.z is not None
    needed = max(MIN_FRAMES, 2 * (max(pairs.h.shape[1], pairs.z.shape[1]) + 1))  # for a linear map in each half
    if len(pairs.h) < needed:
        raise InputError(
            f"{folder.name} has {len(pairs.h)} pairs of held-out frames, but latents of {pairs.h.shape[1]} dimensions "
            f"need at least {needed}. Train on more or longer episodes (a tenth is held out), or with fewer latents "
            "(--latent-dim)."
        )
    record = certificate(
        f"Certificate of {folder.name}",
        {"h": pairs.h, "h_next": pairs.h_next, "z": pairs.z, "groups": pairs.episode},
        rho=None,
        seed=seed,
        audited=audited,
        quick=quick,
        note="No bound is given: it assumes a Gaussian world of known correlation.",
        about={"trained with seed": model.recipe.seed, "held-out episodes": held},
    )
    record = _with_dynamics(record, pairs, seed)
    record.save(out or folder, "certificate")
    return record


def _with_dynamics(record: CertificateRecord, pairs: LatentEpisodes, seed: int) -> CertificateRecord:
    """Add verdicts on the dynamics; whether the certificate passes depends on the latents alone."""
    if not pairs.u.shape[1]:
        return record
    arrays = {"h": pairs.h, "u": pairs.u, "h_next": pairs.h_next, "z": pairs.z, "z_next": pairs.z_next}
    known = {name: array for name, array in arrays.items() if array is not None}
    found = ActionFindings.of(known | {"groups": pairs.episode}, seed=seed)
    return replace(record, summary=f"{record.summary} {found.sentence}", verdicts=(*record.verdicts, *found.verdicts))
