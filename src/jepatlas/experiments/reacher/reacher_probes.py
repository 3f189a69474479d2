"""Linear probes of Reacher latents for the joint angles, on two distributions of poses.

own         training trajectories: fitted on the training episodes, scored on the held-out ones
gaussian    fresh poses, angle = 0.6 z with z ~ N(0, I): fitted on one half, scored on the other

Every probe is scored on both distributions, since an encoder or a probe can fail on one of them only. The study fitted
on trajectories and scored on Gaussian poses. An angle is not a linear function of an image of a circle, so sines and
cosines are probed as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from jepatlas.core.linear import least_squares
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.latent_trials import r2_with_interval
from jepatlas.experiments.engine.rules import point_estimates
from jepatlas.identifiability import degree_variances
from jepatlas.workflows.plan import LatentEpisodes, TrainedModel, latent_episodes
from jepatlas.worlds import OrnsteinUhlenbeckMotion, Reacher

__all__ = ["DEGREE", "PLACES", "TARGETS", "Poses", "degree_shares", "gaussian_poses", "probe", "probes"]

PLACES = ("own", "gaussian")
TARGETS = ("angles", "circle")
DEGREE = 4
MAX_ROWS = 2000  # rows of trajectories that a probe uses
SCALE = OrnsteinUhlenbeckMotion().scale


@dataclass(frozen=True)
class Poses:
    """Latents and joint angles; rows of one group are not independent."""

    h: np.ndarray  # (b, d)
    angles: np.ndarray  # (b, 2)
    group: np.ndarray  # (b,)


def probes(model: TrainedModel, arm: Reacher, count: int) -> dict[str, Estimate]:
    """All measures of a model, with `count` Gaussian poses:

    {target}_{fitted on}_{scored on}    R² of the angles, or of their sines and cosines ("circle")
    degree_1 … degree_4, beyond         shares of the latents' variance over Gaussian poses, by Hermite degree
    smallest_variance                   of any latent direction on the held-out episodes; 1 at LeJEPA's optimum
    correlation                         of a joint's angles in the two frames of a pair, mean over joints
    """
    seed = model.recipe.seed
    gaussian = gaussian_poses(model, arm, count)
    learnt = latent_episodes(model, held=False, most=MAX_ROWS)
    held = latent_episodes(model, held=True, most=MAX_ROWS)
    fits = {"own": _poses(learnt), "gaussian": _rows(gaussian, 0)}
    scores = {"own": _poses(held), "gaussian": _rows(gaussian, 1)}
    found = {}
    for target, one, other in product(TARGETS, PLACES, PLACES):
        found[f"{target}_{one}_{other}"] = probe(fits[one], scores[other], target, seed)
    smallest = float(np.linalg.eigvalsh(np.cov(held.h, rowvar=False))[0])
    found |= degree_shares(gaussian, seed)
    found |= point_estimates({"smallest_variance": smallest}, len(held.h))
    return found | point_estimates({"correlation": _correlation(learnt)}, len(learnt.h))


def gaussian_poses(model: TrainedModel, arm: Reacher, count: int) -> Poses:
    angles = SCALE * numpy_generator(model.recipe.seed, "gaussian poses").standard_normal((count, 2))
    return Poses(model.encode(arm.render(angles)).double().numpy(), angles, np.arange(count))


def _poses(episodes: LatentEpisodes) -> Poses:
    assert episodes.z is not None  # a simulated world provides its states
    return Poses(episodes.h, episodes.z, episodes.episode)


def _correlation(episodes: LatentEpisodes) -> float:
    assert episodes.z is not None and episodes.z_next is not None
    joints = zip(episodes.z.T, episodes.z_next.T, strict=True)
    return float(np.mean([np.corrcoef(now, later)[0, 1] for now, later in joints]))


def _rows(poses: Poses, half: int) -> Poses:
    return Poses(poses.h[half::2], poses.angles[half::2], poses.group[half::2])


def probe(fit: Poses, score: Poses, target: str, seed: int, replicates: int = 200) -> Estimate:
    """R² by least squares, with an interval from resampled groups."""
    predicted = least_squares(fit.h, _target(fit.angles, target)).apply(score.h)
    rng = numpy_generator(seed, "probe")
    return r2_with_interval(_target(score.angles, target), predicted, rng, groups=score.group, replicates=replicates)


def _target(angles: np.ndarray, target: str) -> np.ndarray:
    return angles if target == "angles" else np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def degree_shares(poses: Poses, seed: int) -> dict[str, Estimate]:
    """Shares of the latents' variance by Hermite degree of the angles."""
    rng = numpy_generator(seed, "degrees")
    found = degree_variances(poses.h, poses.angles / SCALE, DEGREE, rng, replicates=100)
    total = found["total"].value
    shares = {}
    for name, variance in found.items():
        if name.startswith("degree_") or name == "beyond":
            shares[name] = Estimate(variance.value / total, variance.low / total, variance.high / total, variance.n)
    return shares
