"""The certificate: is this latent space the world's own coordinates? From plain arrays, whoever made them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jepatlas.base.arrays import check_finite, check_rows
from jepatlas.base.errors import InputError
from jepatlas.base.linear import Split, hold_out, whitener
from jepatlas.base.records import Estimate, Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.identify.bound import bound, epsilon_null
from jepatlas.identify.recovery import recovery, recovery_null

__all__ = ["certify"]

R2 = 0.98
"""Held-out R² from which latents count as linearly recovered."""
ORTHOGONALITY = 0.1
"""Relative distance from an orthogonal map up to which one counts as a rotation."""
UNEXPLAINED = 0.1
"""Share of the state's variance that a bound may leave open and still certify."""


def certify(
    h: np.ndarray,
    h_next: np.ndarray,
    z: np.ndarray | None = None,
    *,
    rho: float | None = None,
    groups: np.ndarray | None = None,
    seed: int = 0,
    replicates: int = 500,
) -> list[Verdict]:
    """Verdicts on latents `h` and those of the paired views, `h_next`; rows are samples.

    With the true states `z`: held-out recovery. With the pairs' correlation `rho`: the bound of Theorem 3, before and
    after whitening. With both: whether the measured error keeps to the bound. Rows of one group (an episode, an
    object) are split and resampled together.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 4000, 2))
    >>> z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * noise
    >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> verdicts = certify(z @ turn.T, z_next @ turn.T, z, rho=0.9)
    >>> all(verdict.passed is not False for verdict in verdicts)
    True
    """
    _check(h, h_next, z, groups)
    h, h_next = h.astype(np.float64), h_next.astype(np.float64)
    split = hold_out(len(h), numpy_generator(seed, "split"), groups=groups)
    white = whitener(np.concatenate([h[split.fit], h_next[split.fit]]))
    forms = {"": (h, h_next), "_whitened": (white.apply(h), white.apply(h_next))}
    errors, bounds = {}, {}
    for form, (a, b) in forms.items():
        options = {"groups": groups, "replicates": replicates}
        if z is not None:
            errors[form] = recovery(a, z.astype(np.float64), split, numpy_generator(seed, "recovery"), **options)
        if rho is not None:
            held = split.score
            options["groups"] = None if groups is None else groups[held]
            bounds[form] = bound(a[held], b[held], rho, numpy_generator(seed, "bound"), **options)
    null = recovery_null(h, z.astype(np.float64), split, numpy_generator(seed, "null")) if z is not None else {}
    return _recovery_verdicts(errors, null) + _bound_verdicts(bounds, h.shape[1], split) + _theorem(errors, bounds)


def _check(h: np.ndarray, h_next: np.ndarray, z: np.ndarray | None, groups: np.ndarray | None) -> None:
    given = {"h": h, "h_next": h_next, "z": z, "groups": groups}
    arrays = {name: array for name, array in given.items() if array is not None}
    check_rows(arrays)
    for name in arrays.keys() - {"groups"}:
        if arrays[name].ndim != 2:
            raise InputError(f"'{name}' must have rows and columns, but its shape is {arrays[name].shape}.")
        check_finite(name, arrays[name])
    if h.shape != h_next.shape:
        raise InputError(f"'h' and 'h_next' must have the same shape, but {h.shape} and {h_next.shape} were given.")
    widest = max(array.shape[1] for name, array in arrays.items() if name != "groups")
    if len(h) < 2 * (widest + 1):
        raise InputError(
            f"A certificate over {widest} dimensions needs at least {2 * (widest + 1)} rows (half of them to fit, half "
            f"to score), but there are {len(h)}."
        )


def _recovery_verdicts(errors: Mapping[str, dict[str, Estimate]], null: Mapping[str, float]) -> list[Verdict]:
    if not errors:
        return []
    raw, whitened = errors[""], errors["_whitened"]
    return [
        Verdict.judge("r2", raw["r2"], direction="higher", threshold=R2, null=null["r2"],
                      good="The true state is a linear function of the latents.",
                      bad="The latents do not determine the state linearly: train longer, or check the world's "
                          "assumptions (Gaussian, one rate, enough latent dimensions)."),
        Verdict.judge("r2_inverse", raw["r2_inverse"], direction="higher", threshold=R2, null=null["r2_inverse"],
                      good="The latents carry nothing but the state, linearly.",
                      bad="The latents carry more than a linear function of the state: nonlinear terms, or too many "
                          "dimensions."),
        Verdict.judge("orthogonality", raw["orthogonality"], direction="lower", threshold=ORTHOGONALITY,
                      null=null["orthogonality"],
                      good="In whitened coordinates the map from state to latent is a rotation.",
                      bad="Even in whitened coordinates the map from state to latent is no rotation."),
        Verdict.judge("orthogonality_raw", raw["orthogonality_raw"], direction="lower",
                      null=null["orthogonality_raw"],
                      good="The same without whitening: it shows how far the training was from Cov h = I."),
        Verdict.judge("procrustes", raw["procrustes"], direction="lower", null=null["procrustes"],
                      good="E‖h − Qz‖² for the best rotation Q: what the bound speaks of."),
        Verdict.judge("procrustes_whitened", whitened["procrustes"], direction="lower",
                      good="The same after whitening the latents."),
    ]  # fmt: skip


def _bound_verdicts(bounds: Mapping[str, dict[str, Estimate]], dim: int, split: Split) -> list[Verdict]:
    verdicts = []
    for form, terms in bounds.items():
        after = " after whitening" if form else ""
        verdicts += [
            Verdict.judge(f"epsilon{form}", terms["epsilon"], direction="lower",
                          null=epsilon_null(dim, 2 * len(split.score)),
                          good=f"ε: distance of the latents' covariance from the identity{after}."),
            Verdict.judge(f"delta{form}", terms["delta"], direction="lower", null=0.0,
                          good=f"δ: alignment loss above the least that a linear map could have{after}."),
            Verdict.judge(f"gap{form}", terms["gap"], direction="lower", null=0.0,
                          good=f"D = δ/2ρ(1−ρ): bounds the nonlinear share of the latents{after}."),
            Verdict.judge(f"bound{form}", terms["bound"], direction="lower", threshold=UNEXPLAINED * dim,
                          good=f"Theorem 3 certifies the latents{after}, without looking at the truth.",
                          bad=f"The bound is too loose to certify anything{after}"
                              + (": alignment is not good enough yet." if form else "; whitening may tighten it.")),
        ]  # fmt: skip
    return verdicts


def _theorem(errors: Mapping[str, dict[str, Estimate]], bounds: Mapping[str, dict[str, Estimate]]) -> list[Verdict]:
    """Whether the error's lower limit is below the bound's upper one: noise must not refute a theorem."""
    verdicts = []
    for form in errors.keys() & bounds.keys():
        error, limit = errors[form]["procrustes"], bounds[form]["bound"]
        slack = Estimate(error.value / limit.value, error.low / limit.high, error.high / limit.low, error.n)
        verdicts.append(Verdict(
            f"error_to_bound{form}", slack.value, slack.low, slack.high, slack.n, None, 1.0, "lower", slack.low <= 1.0,
            "The measured error keeps to the bound." if slack.low <= 1.0
            else "The measured error exceeds the bound: an assumption of the theorem does not hold here.",
        ))  # fmt: skip
    return sorted(verdicts, key=lambda verdict: verdict.name)
