"""Action-conditioned identification: linear latent dynamics, persistent excitation, and conjugacy to the state's.

    z' = A z + B u + c    ⇒    h' = QAQᵀ h + QB u + Qc        where h = Qz

So A and B fitted to (h, u) and h' must be these conjugates; where h = sQz with a common scale s, B is sQB. Latents that
vary in more directions than the state are not a rotation of it; conjugacy then has no threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out, least_squares
from jepatlas.core.linear_moments import PairMoments, procrustes_of
from jepatlas.core.linear_system import LinearSystem, fit_linear_system
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap, explained_share
from jepatlas.identifiability.covariance import WeightedCovariance
from jepatlas.identifiability.theory.excitation import excitation, varying_directions
from jepatlas.identifiability.validation import as_arrays, check_enough_rows, check_matrices, check_same_shape

__all__ = ["certify_dynamics", "conjugacy_errors"]

R2 = 0.98
"""Held-out R² of the next latent from which dynamics count as linear."""
CONJUGATE = 0.1
"""Relative error up to which A and B count as conjugate to those of the state."""
MIN_GROUPS = 3  # 1 to fit, 2 to score


def certify_dynamics(
    h: np.ndarray,
    u: np.ndarray,
    h_next: np.ndarray,
    z: np.ndarray | None = None,
    z_next: np.ndarray | None = None,
    *,
    truth: tuple[np.ndarray, np.ndarray] | None = None,
    groups: np.ndarray | None = None,
    seed: int = 0,
    replicates: int = 500,
) -> list[Verdict]:
    """Verdicts on the dynamics of latents h (b, d) under actions u (b, a). Intervals resample whole groups.

    linear_dynamics            held-out R² of the next latent; null: permuted actions. Only informs if the states, given
                               `z_next`, are as hard to predict
    action_share               share of the residual of the latent-only prediction that actions explain
    persistent_excitation      smallest eigenvalue of Corr(h, u) where h varies: whether the rows determine A and B
    conjugacy_a, conjugacy_b   errors of A and B relative to the conjugates of the state's; null: permuted states
    conjugacy_scale            scale s of the similarity between state and latent

    The last three need the states `z` and either their true dynamics `truth` = (A, B), or `z_next` to fit them to.
    """
    h, u, h_next, z, z_next, groups = as_arrays(h=h, u=u, h_next=h_next, z=z, z_next=z_next, groups=groups)
    states = {name: array for name, array in (("z", z), ("z_next", z_next)) if array is not None}
    if z_next is not None and z is None:
        raise InputError("'z_next' was given without 'z'. Give the true states of both steps, or of neither.")
    check_matrices(groups, h=h, u=u, h_next=h_next, **states)
    check_same_shape(h=h, h_next=h_next)
    split = _split(h, u, groups, seed)
    rng = numpy_generator(seed, "dynamics")
    state_dim = None if z is None else z.shape[1]
    verdicts = [
        *_prediction_verdicts(h, u, h_next, split, rng, groups=groups, replicates=replicates),
        excitation(h, u, rng, groups=groups, replicates=replicates, states=state_dim),
    ]
    if z is None or (z_next is None and truth is None):
        return verdicts
    fit = split.fit
    if z_next is not None:
        check_same_shape(z=z, z_next=z_next)
        r2_of_states = _prediction(z, u, z_next, split)(np.ones(len(split.score)))["r2"]
        verdicts[0] = _relative_to_states(verdicts[0], r2_of_states)
    state = _true_system(*truth, z.shape[1], u.shape[1]) if truth is not None else states["z_next"][fit]
    directions = varying_directions(h).shape[1]
    widest, widest_next = _widest_directions(h, h_next, max(directions, z.shape[1]))
    errors = _Conjugacy(widest[fit], u[fit], widest_next[fit], z[fit], state)
    fit_groups = None if groups is None else groups[fit]
    verdicts += _conjugacy_verdicts(errors, rng, groups=fit_groups, replicates=replicates, directions=directions)
    return verdicts


def _true_system(a: np.ndarray, b: np.ndarray, dim: int, actions: int) -> LinearSystem:
    a = np.asarray(a, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    if a.shape != (dim, dim) or b.shape != (dim, actions):
        raise InputError(
            f"truth: for states of width {dim} and actions of width {actions}, A must have shape {(dim, dim)} and B "
            f"{(dim, actions)}, but they have {a.shape} and {b.shape}."
        )
    return LinearSystem(a, b)


def _split(h: np.ndarray, u: np.ndarray, groups: np.ndarray | None, seed: int) -> Split:
    check_enough_rows(len(h))
    if groups is not None:
        count = len(np.unique(groups))
        if count < MIN_GROUPS:
            raise InputError(f"'groups' must have at least {MIN_GROUPS} distinct labels, but has {count}.")
    split = hold_out(len(h), numpy_generator(seed, "split"), groups=groups)
    columns = h.shape[1] + u.shape[1]
    if len(split.fit) <= columns:
        raise InputError(
            f"Dynamics of {h.shape[1]} latents and {u.shape[1]} actions need more than {columns} rows to fit, but "
            f"there are {len(split.fit)} of {len(h)}. Give more rows."
        )
    return split


def _prediction_verdicts(
    h: np.ndarray,
    u: np.ndarray,
    h_next: np.ndarray,
    split: Split,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None,
    replicates: int,
) -> list[Verdict]:
    permuted = _prediction(h, u[rng.permutation(len(u))], h_next, split)
    null = permuted(np.ones(len(split.score)))
    score_groups = None if groups is None else groups[split.score]
    statistic = _prediction(h, u, h_next, split)
    found = bootstrap(statistic, len(split.score), rng, groups=score_groups, replicates=replicates)
    return [
        Verdict.judge(
            "linear_dynamics",
            found["r2"],
            direction="higher",
            threshold=R2,
            null=null["r2"],
            good="The next latent is a linear function of the latent and the action.",
            bad="The next latent is not a linear function of the latent and the action: the dynamics are nonlinear, "
            "or the latents do not contain the state. Plan by sampling instead of LQR.",
        ),
        Verdict.judge(
            "action_share",
            found["gain"],
            direction="higher",
            null=null["gain"],
            good="Share of the latent-only prediction error that actions explain linearly. A small share means that "
            "actions hardly affect the latents.",
        ),
    ]


def _relative_to_states(linear: Verdict, r2_of_states: float) -> Verdict:
    """Latents need not be more predictable than the states: noise in the world lowers the R² of both."""
    if linear.passed is not False or not linear.high >= r2_of_states - (1 - R2):
        return linear
    advice = (
        f"The next latent is as predictable by a linear map as the next state (R² {r2_of_states:.3f}): the world is "
        "noisy or nonlinear."
    )
    return replace(linear, threshold=None, passed=None, advice=advice)


def _prediction(
    h: np.ndarray, u: np.ndarray, h_next: np.ndarray, split: Split
) -> Callable[[np.ndarray], dict[str, float]]:
    """R² of the next latent from latent and action, and their gain over the latent alone, on weighted score rows."""
    fit, score = split
    dynamics = fit_linear_system(h[fit], u[fit], h_next[fit])
    latent_only = least_squares(h[fit], h_next[fit])
    residual = np.square(h_next[score] - dynamics.step(h[score], u[score])).sum(1)
    residual_latent_only = np.square(h_next[score] - latent_only.apply(h[score])).sum(1)
    shifted = h_next[score] - h_next[score[0]]  # constant latents become exactly zero
    deviation = np.square(shifted - shifted.mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {
            "r2": explained_share(weights @ residual, weights @ deviation),
            "gain": explained_share(weights @ residual, weights @ residual_latent_only),
        }

    return statistic


def conjugacy_errors(
    latent: LinearSystem, state: LinearSystem, h: np.ndarray, z: np.ndarray, weights: np.ndarray | None = None
) -> dict[str, float]:
    """Relative errors, with sQ the best similarity from z to h (Procrustes) on these rows:

    conjugacy_a        ‖A_h − QAQᵀ‖_F / ‖QAQᵀ‖_F
    conjugacy_b        ‖B_h − sQB‖_F / ‖sQB‖_F
    conjugacy_scale    s
    """
    similarity = procrustes_of(PairMoments.of(z, h, weights), scaled=True).weight
    scale = float(np.linalg.norm(similarity, 2))
    turn = similarity / scale if scale > 0 else similarity
    return {
        "conjugacy_a": _relative_error(latent.a_dd, turn @ state.a_dd @ turn.T),
        "conjugacy_b": _relative_error(latent.b_da, similarity @ state.b_da),
        "conjugacy_scale": scale,
    }


def _relative_error(found: np.ndarray, true: np.ndarray) -> float:
    size = float(np.linalg.norm(true))
    return float(np.linalg.norm(found - true)) / size if size > 0 else float("nan")


def _widest_directions(h: np.ndarray, h_next: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Latents projected onto their `count` directions of largest variance, in the same coordinates."""
    if count >= h.shape[1]:
        return h, h_next
    axes = np.linalg.eigh(WeightedCovariance(h)(np.ones(len(h))))[1][:, -count:]
    mean = h.mean(0)
    return mean + (h - mean) @ axes @ axes.T, mean + (h_next - mean) @ axes @ axes.T


@dataclass(frozen=True)
class _Conjugacy:
    """`conjugacy_errors` as a statistic of weighted rows; the state's dynamics are known, or fitted to these rows."""

    h: np.ndarray
    u: np.ndarray
    h_next: np.ndarray
    z: np.ndarray
    state: LinearSystem | np.ndarray  # the dynamics, or the next states

    def __call__(self, weights: np.ndarray, order: np.ndarray | None = None) -> dict[str, float]:
        """`order` permutes the states against the latents."""
        latent = fit_linear_system(self.h, self.u, self.h_next, weights)
        state = self.state
        if not isinstance(state, LinearSystem):
            state = fit_linear_system(self.z, self.u, state, weights)
        z = self.z if order is None else self.z[order]
        return conjugacy_errors(latent, state, self.h, z, weights)


def _conjugacy_verdicts(
    errors: _Conjugacy, rng: np.random.Generator, *, groups: np.ndarray | None, replicates: int, directions: int
) -> list[Verdict]:
    """`directions` counts those in which the latents vary; with more than the state's, errors have no threshold."""
    rows = len(errors.h)
    dim = errors.z.shape[1]
    found = bootstrap(errors, rows, rng, groups=groups, replicates=replicates, centred=True)
    null = errors(np.ones(rows), rng.permutation(rows))
    verdicts = []
    for name, what, equation in (
        ("conjugacy_a", "autonomous dynamics", "A_h = QAQᵀ"),
        ("conjugacy_b", "response to actions", "B_h = sQB"),
    ):
        verdict = Verdict.judge(
            name,
            found[name],
            direction="lower",
            threshold=CONJUGATE,
            null=null[name],
            good=f"The latents' {what} equals the state's in rotated coordinates: {equation}.",
            bad=f"The latents' {what} differs from the state's in rotated coordinates: not {equation}. Check whether "
            "the latents are a rotation of the state (certify), and whether the rows are exciting.",
        )
        if directions > dim:
            advice = (
                f"Surplus dimensions: the latents vary in {directions} directions and the state in {dim}, so they are "
                f"not a rotation of it and this error does not assess the dynamics. Train with {dim} latents."
            )
            verdict = replace(verdict, threshold=None, passed=None, advice=advice)
        verdicts.append(verdict)
    verdicts.append(
        Verdict.judge(
            "conjugacy_scale",
            found["conjugacy_scale"],
            direction="higher",
            null=null["conjugacy_scale"],
            good="Scale of the latents relative to the state. Where it is 1, a cost that weighs latents against "
            "actions has the same meaning as in the state.",
        )
    )
    return verdicts
