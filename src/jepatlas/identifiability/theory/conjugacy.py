"""Dynamics of the latent beside those of the state: where h = Qz they are the same in rotated coordinates.

    z' = A z + B u + c    ⇒    h' = QAQᵀ h + QB u + Qc

So A and B that are fitted to (h, u) and h' must be those conjugates; where h = sQz for a common scale s, B is sQB.
Latents that vary in more directions than the state has dimensions are no rotation of it: their A has more to move, and
being far from QAQᵀ is no finding about its dynamics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.linear_moments import PairMoments, procrustes_of
from jepatlas.core.linear_system import LinearSystem, fit_linear_system
from jepatlas.core.records import Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.covariance import WeightedCovariance

__all__ = ["Conjugacy", "conjugacy_errors", "conjugacy_verdicts", "widest_directions"]

CONJUGATE = 0.1
"""Relative error up to which A and B count as those of the state: that of the certificate's rotations."""


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
        "conjugacy_a": _relative(latent.a_dd, turn @ state.a_dd @ turn.T),
        "conjugacy_b": _relative(latent.b_da, similarity @ state.b_da),
        "conjugacy_scale": scale,
    }


def _relative(found: np.ndarray, true: np.ndarray) -> float:
    size = float(np.linalg.norm(true))
    return float(np.linalg.norm(found - true)) / size if size > 0 else float("nan")


def widest_directions(h: np.ndarray, h_next: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Latents without all but their widest directions, in the same coordinates; as they are where these are all."""
    if count >= h.shape[1]:
        return h, h_next
    axes = np.linalg.eigh(WeightedCovariance(h)(np.ones(len(h))))[1][:, -count:]
    mean = h.mean(0)
    return mean + (h - mean) @ axes @ axes.T, mean + (h_next - mean) @ axes @ axes.T


@dataclass(frozen=True)
class Conjugacy:
    """The errors as a statistic of weighted rows. The state's dynamics are known, or fitted to the same rows."""

    h: np.ndarray
    u: np.ndarray
    h_next: np.ndarray
    z: np.ndarray
    state: LinearSystem | np.ndarray  # the dynamics themselves, or the next states

    def __call__(self, weights: np.ndarray, order: np.ndarray | None = None) -> dict[str, float]:
        """`order` deals states to latents otherwise than they came."""
        latent = fit_linear_system(self.h, self.u, self.h_next, weights)
        state = self.state
        if not isinstance(state, LinearSystem):
            state = fit_linear_system(self.z, self.u, state, weights)
        return conjugacy_errors(latent, state, self.h, self.z if order is None else self.z[order], weights)


def conjugacy_verdicts(
    errors: Conjugacy, rng: np.random.Generator, *, groups: np.ndarray | None, replicates: int, directions: int
) -> list[Verdict]:
    """`directions` is in how many of them the latents vary: with more than the state's the errors only inform."""
    rows, dim = len(errors.h), errors.z.shape[1]
    found = bootstrap(errors, rows, rng, groups=groups, replicates=replicates, centred=True)
    null = errors(np.ones(rows), rng.permutation(rows))
    said = {"a": ("moves by itself", "A_h = QAQᵀ"), "b": ("follows actions", "B_h = sQB")}
    judged = [
        Verdict.judge(
            f"conjugacy_{part}",
            found[f"conjugacy_{part}"],
            direction="lower",
            threshold=CONJUGATE,
            null=null[f"conjugacy_{part}"],
            good=f"The latent {how} as the state does, in rotated coordinates: {equation}.",
            bad=f"The latent {how} otherwise than the state does: not {equation}. See whether the latents "
            "are a rotation of the state, and whether the rows are exciting.",
        )
        for part, (how, equation) in said.items()
    ]
    if directions > dim:
        surplus = (
            f"Surplus dimensions: the latents vary in {directions} directions and the state in {dim}, so that they are "
            f"no rotation of it and this error says nothing of its dynamics. Train with {dim} latents to ask for that."
        )
        judged = [replace(verdict, threshold=None, passed=None, advice=surplus) for verdict in judged]
    scale = Verdict.judge(
        "conjugacy_scale",
        found["conjugacy_scale"],
        direction="higher",
        null=null["conjugacy_scale"],
        good="How many times longer latents are than states: a cost that weighs latents against "
        "actions means the same as in the state where it is 1.",
    )
    return [*judged, scale]
