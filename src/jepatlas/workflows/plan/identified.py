"""The certificate of a world model: its latents of frames that were held out, against the true states.

Where there are actions, it also says whether the latents move under them as the states do.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jepatlas.core.errors import InputError
from jepatlas.core.records import Verdict
from jepatlas.identifiability import certify_dynamics
from jepatlas.workflows.certify import Certificate, certificate
from jepatlas.workflows.plan.models import LatentEpisodes, latent_episodes, load_world_model

__all__ = ["certify_world_model"]

FEWEST = 3  # held-out episodes: one to fit on, two to score on
FEWEST_FRAMES = 20  # below this no interval means anything
SMALLEST = 100  # pairs of a certificate: fewer say nothing


def certify_world_model(
    folder: Path, *, samples: int = 40_000, seed: int = 0, out: Path | None = None, audited: bool = False
) -> Certificate:
    """Certify a run on its held-out episodes, and keep the record as `records/certificate.json`.

    Rows of one episode are alike, so intervals draw whole episodes.
    """
    if samples < SMALLEST:
        raise InputError(f"A certificate needs at least {SMALLEST} samples, but {samples} were asked for.")
    model = load_world_model(folder)
    if model.data.z is None:
        raise InputError(
            f"{folder} was trained on a file without true states. Name their column with --source.state, or judge its "
            "latents as a file: jepatlas certify LATENTS.npz."
        )
    if (held := len(model.data.held)) < FEWEST:
        raise InputError(
            f"{held} of its episodes {'is' if held == 1 else 'are'} held out, and a certificate needs {FEWEST}, to fit "
            f"on some and to score on others: a tenth is, so train {folder.name} on more of them."
        )
    found = latent_episodes(model, most=samples)
    assert found.z is not None
    _refuse_few(folder, found)
    arrays = {"h": found.h, "h_next": found.h_next, "z": found.z, "groups": found.episode}
    note = "No bound is given: it presumes a Gaussian world whose rate is known."
    about = {"trained with seed": model.recipe.seed, "held-out episodes": len(model.data.held)}
    title = f"Certificate of {folder.name}"
    record = certificate(title, arrays, rho=None, seed=seed, audited=audited, note=note, about=about)
    record = _with_dynamics(record, found, seed)
    record.save(out or folder, "certificate")
    return record


def _refuse_few(folder: Path, found: LatentEpisodes) -> None:
    """Fewer than a linear map needs, in the half that it is fitted on and in the one that scores it."""
    assert found.z is not None
    needed = max(FEWEST_FRAMES, 2 * (max(found.h.shape[1], found.z.shape[1]) + 1))
    if len(found.h) < needed:
        raise InputError(
            f"{folder.name} has {len(found.h)} pairs of held-out frames, too few for a certificate: latents of "
            f"{found.h.shape[1]} dimensions need at least {needed}. Train it on more or longer episodes, of which a "
            "tenth is held out, or with fewer latents (--latent-dim)."
        )


def _with_dynamics(record: Certificate, found: LatentEpisodes, seed: int) -> Certificate:
    """What the dynamics say informs: whether the certificate passes is a matter of the latents alone."""
    if not found.u.shape[1]:
        return record
    verdicts = certify_dynamics(found.h, found.u, found.h_next, found.z, found.z_next, groups=found.episode, seed=seed)
    told = {verdict.name: verdict for verdict in verdicts}
    summary = f"{record.summary} Under actions: {_said(told)}."
    return replace(record, summary=summary, verdicts=(*record.verdicts, *verdicts))


def _said(told: dict[str, Verdict]) -> str:
    linear, excited = told["linear_dynamics"], told["persistent_excitation"]
    surplus = ", which only inform: there are surplus dimensions" if told["conjugacy_a"].threshold is None else ""
    return (
        f"held-out R² {linear.value:.3f} of the next latent by a linear map ({linear.null:.3f} with actions dealt at "
        f"random), excitation {excited.value:.3g}, errors of A and B against those of the state "
        f"{told['conjugacy_a'].value:.3g} and {told['conjugacy_b'].value:.3g}{surplus}"
    )
