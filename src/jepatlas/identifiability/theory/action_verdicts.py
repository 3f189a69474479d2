"""Action-conditioned identification: are the dynamics of the latents linear, determined, and those of the state?

A and B of h' = A h + B u + c are fitted on one part of the rows; how well they predict is judged on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out, least_squares
from jepatlas.core.linear_system import LinearSystem, fit_linear_system
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.checks import as_arrays, check_matrices, check_rows_to_judge, check_same_shape
from jepatlas.identifiability.theory.conjugacy import Conjugacy, conjugacy_verdicts, widest_directions
from jepatlas.identifiability.theory.excitation import excitation, varying_directions

__all__ = ["certify_dynamics"]

R2 = 0.98
"""Held-out R² of the next latent from which dynamics count as linear: that of the certificate."""
FEWEST_GROUPS = 3  # 1 to fit, 2 to score


def certify_dynamics(
    h: Any,
    u: Any,
    h_next: Any,
    z: Any = None,
    z_next: Any = None,
    *,
    truth: tuple[np.ndarray, np.ndarray] | None = None,
    groups: Any = None,
    seed: int = 0,
    replicates: int = 500,
) -> list[Verdict]:
    """Judge how latents move under actions. Intervals draw whole groups.

    linear_dynamics            held-out R² of the next latent; null: with actions dealt at random
    action_share               of what the latent alone leaves of the next one, the share that actions explain
    persistent_excitation      smallest eigenvalue of Corr(h, u) where h varies: whether the rows determine A and B
    conjugacy_a, conjugacy_b   errors of A and B against the conjugates of the state's; null: states dealt at random.
                               They only inform where the latents vary in more directions than the state has
    conjugacy_scale            of the similarity between state and latent

    The last three where states `z` are given and their dynamics: the `truth` (A, B), or `z_next` to fit them to.
    """
    h, u, h_next, z, z_next, groups = as_arrays(h=h, u=u, h_next=h_next, z=z, z_next=z_next, groups=groups)
    states = {name: array for name, array in (("z", z), ("z_next", z_next)) if array is not None}
    check_matrices(groups, h=h, u=u, h_next=h_next, **states)
    check_same_shape(h=h, h_next=h_next)
    split, rng = _split(h, u, groups, seed), numpy_generator(seed, "dynamics")
    found = [
        *_predicted(h, u, h_next, split, rng, groups=groups, replicates=replicates),
        excitation(h, u, rng, groups=groups, replicates=replicates, states=None if z is None else z.shape[1]),
    ]
    if z is None or (z_next is None and truth is None):
        return found
    fit = split.fit
    if truth is not None:
        state = _true_system(*truth, z.shape[1], u.shape[1])
    else:
        check_same_shape(z=z, z_next=states["z_next"])
        state = states["z_next"][fit]
    varying, dim = varying_directions(h).shape[1], z.shape[1]
    own, own_next = widest_directions(h, h_next, max(varying, dim))
    errors = Conjugacy(own[fit], u[fit], own_next[fit], z[fit], state)
    labels = None if groups is None else groups[fit]
    return found + conjugacy_verdicts(errors, rng, groups=labels, replicates=replicates, directions=varying)


def _true_system(a: np.ndarray, b: np.ndarray, dim: int, actions: int) -> LinearSystem:
    """Known A and B, for states of width `dim` and actions of width `actions`."""
    a = np.asarray(a, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    if a.shape != (dim, dim) or b.shape != (dim, actions):
        raise InputError(
            f"truth: for states of width {dim} and actions of width {actions}, A must be {(dim, dim)} and B "
            f"{(dim, actions)}, but they are {a.shape} and {b.shape}."
        )
    return LinearSystem(a, b)


def _split(h: np.ndarray, u: np.ndarray, groups: np.ndarray | None, seed: int) -> Split:
    check_rows_to_judge(len(h))
    if groups is not None and (count := len(np.unique(groups))) < FEWEST_GROUPS:
        raise InputError(f"Dynamics are judged on at least {FEWEST_GROUPS} groups, but there are only {count}.")
    split, widest = hold_out(len(h), numpy_generator(seed, "split"), groups=groups), h.shape[1] + u.shape[1]
    if len(split.fit) <= widest:
        raise InputError(
            f"Dynamics of {h.shape[1]} latents and {u.shape[1]} actions are fitted on more than {widest} rows, but "
            f"{len(split.fit)} of {len(h)} were left to fit on. Give more rows."
        )
    return split


def _predicted(
    h: np.ndarray,
    u: np.ndarray,
    h_next: np.ndarray,
    split: Split,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None,
    replicates: int,
) -> list[Verdict]:
    null = _prediction(h, u[rng.permutation(len(u))], h_next, split)(np.ones(len(split.score)))
    labels = None if groups is None else groups[split.score]
    statistic = _prediction(h, u, h_next, split)
    found = bootstrap(statistic, len(split.score), rng, groups=labels, replicates=replicates)
    return [
        Verdict.judge(
            "linear_dynamics",
            found["r2"],
            direction="higher",
            threshold=R2,
            null=null["r2"],
            good="The next latent is a linear function of the latent and the action.",
            bad="The next latent is no linear function of the latent and the action: the dynamics are "
            "nonlinear, or the latents do not hold the state. Plan by sampling, not by LQR.",
        ),
        Verdict.judge(
            "action_share",
            found["gain"],
            direction="higher",
            null=null["gain"],
            good="Of what the latent alone leaves of the next one, the share that actions explain, linearly: "
            "where it is small, the latents hardly see what is done.",
        ),
    ]


def _prediction(
    h: np.ndarray, u: np.ndarray, h_next: np.ndarray, split: Split
) -> Callable[[np.ndarray], dict[str, float]]:
    """What latent and action, beside the latent alone, say of the next latent on weighted rows to score on."""
    fit, score = split
    dynamics, alone = fit_linear_system(h[fit], u[fit], h_next[fit]), least_squares(h[fit], h_next[fit])
    left = np.square(h_next[score] - dynamics.step(h[score], u[score])).sum(1)
    left_alone = np.square(h_next[score] - alone.apply(h[score])).sum(1)
    shifted = h_next[score] - h_next[score[0]]  # so that latents that never vary are exactly zero
    around = np.square(shifted - shifted.mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"r2": _share(weights, left, around), "gain": _share(weights, left, left_alone)}

    return statistic


def _share(weights: np.ndarray, left: np.ndarray, of: np.ndarray) -> float:
    whole = float(weights @ of)
    return 1 - float(weights @ left) / whole if whole > 0 else float("nan")
