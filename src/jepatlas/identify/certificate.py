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
from jepatlas.identify.recovery import recovery, recovery_null, rotation_error

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
    _check(h, h_next, z, rho, groups)
    h, h_next = h.astype(np.float64), h_next.astype(np.float64)
    split = hold_out(len(h), numpy_generator(seed, "split"), groups=groups)
    _check_split(split, h.shape[1] if z is None else max(h.shape[1], z.shape[1]))
    white = whitener(np.concatenate([h[split.fit], h_next[split.fit]]))
    forms = {"": (h, h_next), "_whitened": (white.apply(h), white.apply(h_next))}
    errors, bounds, null = {}, {}, {}
    if rho is not None:
        held = split.score
        options = {"groups": None if groups is None else groups[held], "replicates": replicates}
        for form, (a, b) in forms.items():
            bounds[form] = bound(a[held], b[held], rho, numpy_generator(seed, "bound"), **options)
    if z is not None:
        z = z.astype(np.float64)
        for (form, (a, _)), measure in zip(forms.items(), (recovery, rotation_error), strict=True):
            rng = numpy_generator(seed, "recovery")
            errors[form] = measure(a, z, split, rng, groups=groups, replicates=replicates)
        null = recovery_null(h, z, split, numpy_generator(seed, "null"))
    return _recovery_verdicts(errors, null) + _bound_verdicts(bounds, h.shape[1], split, rho) + _theorem(errors, bounds)


def _check(
    h: np.ndarray, h_next: np.ndarray, z: np.ndarray | None, rho: float | None, groups: np.ndarray | None
) -> None:
    given = {"h": h, "h_next": h_next} | ({} if z is None else {"z": z})
    for name, array in given.items():
        if array.ndim != 2 or array.shape[1] == 0:
            raise InputError(f"'{name}' must have rows and columns, but its shape is {array.shape}.")
    check_rows(given | ({} if groups is None else {"groups": groups}))
    for name, array in given.items():
        check_finite(name, array)
    if h.shape != h_next.shape:
        raise InputError(f"'h' and 'h_next' must have the same shape, but {h.shape} and {h_next.shape} were given.")
    if z is None and rho is None:
        raise InputError("There is nothing to hold the latents against: give the true states 'z', or 'rho', or both.")
    if groups is not None and (count := len(np.unique(groups))) < 3:
        raise InputError(f"A certificate needs at least 3 groups (1 to fit, 2 to score), but there are only {count}.")


def _check_split(split: Split, widest: int) -> None:
    if min(len(split.fit), len(split.score)) <= widest:
        raise InputError(
            f"A certificate over {widest} dimensions needs at least {widest + 1} rows to fit and as many to score, "
            f"but there are {len(split.fit)} and {len(split.score)}."
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


def _bound_verdicts(
    bounds: Mapping[str, dict[str, Estimate]], dim: int, split: Split, rho: float | None
) -> list[Verdict]:
    verdicts = []
    for form, terms in bounds.items():
        after = " after whitening" if form else ""
        # The whitening map was estimated on the other half: its noise comes on top.
        pairs = 1 / (1 / len(split.score) + (1 / len(split.fit) if form else 0))
        verdicts += [
            Verdict.judge(f"epsilon{form}", terms["epsilon"], direction="lower",
                          null=epsilon_null(dim, pairs, rho or 0.0),
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
    """The error against the bound: it informs, and fails only where the error's lower limit is above the bound's upper.

    Noise must not refute a theorem.
    """
    verdicts = []
    for form in errors.keys() & bounds.keys():
        error, limit = errors[form]["procrustes"], bounds[form]["bound"]
        value, low, high = (max(number, np.finfo(float).tiny) for number in (limit.value, limit.low, limit.high))
        slack = Estimate(error.value / value, error.low / high, error.high / low, error.n)
        broken = slack.low > 1.0
        verdicts.append(Verdict(
            f"error_to_bound{form}", slack.value, slack.low, slack.high, slack.n, None,
            1.0 if broken else None, "lower", False if broken else None,
            "The measured error exceeds the bound: an assumption of the theorem does not hold here."
            if broken else "The measured error over the bound; nothing speaks against the theorem here.",
        ))  # fmt: skip
    return sorted(verdicts, key=lambda verdict: verdict.name)
