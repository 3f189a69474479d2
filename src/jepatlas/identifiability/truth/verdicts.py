"""Recovery, judged: from which numbers on latents count as the world's own coordinates."""

from __future__ import annotations

from collections.abc import Mapping

from jepatlas.core.records import Estimate, Verdict

__all__ = ["ORTHOGONALITY", "R2", "STRETCH", "recovery_verdicts"]

R2 = 0.98
"""Held-out R² from which latents count as linearly recovered."""
ORTHOGONALITY = 0.1
"""Relative distance from an orthogonal map up to which one counts as a rotation."""
STRETCH = 0.3
"""How far a direction's variance may lie from the mean, relative to it, before a linear map counts as a shear.

Trained agents that recover the state (R² above .98) had .004 to .007; the shear (z₀ + .8 z₁, z₁) has .65.
"""


def recovery_verdicts(found: Mapping[str, Estimate], null: Mapping[str, float]) -> list[Verdict]:
    """Verdicts on the estimates of `recovery`, beside what unrelated states give."""
    return [
        Verdict.judge(
            "r2",
            found["r2"],
            direction="higher",
            threshold=R2,
            null=null["r2"],
            good="The true state is a linear function of the latents.",
            bad="The latents do not determine the state linearly: train longer, or check the world's "
            "assumptions (Gaussian, one rate, enough latent dimensions).",
        ),
        Verdict.judge(
            "r2_inverse",
            found["r2_inverse"],
            direction="higher",
            threshold=R2,
            null=null["r2_inverse"],
            good="The latents carry nothing but the state, linearly.",
            bad="The latents carry more than a linear function of the state: nonlinear terms, or too many dimensions.",
        ),
        Verdict.judge(
            "orthogonality",
            found["orthogonality"],
            direction="lower",
            threshold=ORTHOGONALITY,
            null=null["orthogonality"],
            good="In whitened coordinates the map from state to latent is a rotation.",
            bad="Even in whitened coordinates the map from state to latent is no rotation.",
        ),
        Verdict.judge(
            "stretch",
            found["stretch"],
            direction="lower",
            threshold=STRETCH,
            null=0.0,
            good="The linear map from state to latent stretches all directions alike.",
            bad="The linear map from state to latent stretches some directions more than others, as a shear "
            "does: whitening the latents undoes that.",
        ),
        Verdict.judge(
            "orthogonality_raw",
            found["orthogonality_raw"],
            direction="lower",
            null=null["orthogonality_raw"],
            good="The same without whitening: it shows how far the training was from Cov h = I.",
        ),
        Verdict.judge(
            "r2_adjusted",
            found["r2_adjusted"],
            direction="higher",
            null=null["r2_adjusted"],
            good="R² of the best linear map: without the price of fitting one from so many rows.",
        ),
        Verdict.judge(
            "mcc",
            found["mcc"],
            direction="higher",
            null=null["mcc"],
            good="Mean correlation of states with latents matched one to one; a rotation, which is allowed, lowers it.",
        ),
        Verdict.judge(
            "mcc_linear",
            found["mcc_linear"],
            direction="higher",
            null=null["mcc_linear"],
            good="The same after the best linear map: what a rotation does not lower.",
        ),
        Verdict.judge(
            "procrustes",
            found["procrustes"],
            direction="lower",
            null=null["procrustes"],
            good="E‖h − Qz‖² for the best rotation Q: what the bound speaks of.",
        ),
        Verdict.judge(
            "procrustes_whitened",
            found["procrustes_whitened"],
            direction="lower",
            good="The same after whitening the latents.",
        ),
    ]
