"""Plain names of verdicts, for tables and pages. Files and Python use the short codes, such as `nos_10_common`."""

from __future__ import annotations

import re

__all__ = ["plain_name"]

NAMES = {
    # certificates
    "diagnosis": "affected share",
    "r2": "linear R²",
    "r2_inverse": "linear R² of the latents",
    "r2_adjusted": "adjusted linear R²",
    "r2_nonlinear": "nonlinear R²",
    "r2_parts": "linear R² by tenths",
    "r2_varying": "R² of varying directions",
    "r2_trusted": "R² on trusted pairs",
    "r2_unweighted": "R² unweighted",
    "predicted_directions": "predicted directions",
    "rank_a": "effective rank of A",
    "rank_b": "effective rank of B",
    "r2_unwarped": "R² after undoing a warp",
    "r2_unwarped_states": "R² after unwarping states",
    "r2_unwarped_latents": "R² after unwarping latents",
    "orthogonality": "distance from a rotation",
    "stretch": "unequal scaling",
    "stretch_unwarped": "unequal scaling unwarped",
    "effective_rank": "latent directions",
    "coverage": "state directions found",
    "mcc": "mean correlation",
    "mcc_linear": "mean mapped correlation",
    "procrustes": "error of the best rotation",
    "varying_coordinates": "coordinates that vary",
    "repeated_coordinates": "repeated coordinates",
    "share_linear": "variance: linear",
    "share_warp": "variance: warped axes",
    "share_shear": "variance: sums of curves",
    "share_bend": "variance: other functions",
    "share_noise": "variance: noise",
    "share_rounding": "variance: rounding",
    "worst_nonlinear": "nonlinear part at worst",
    "worst_noise": "noise at worst",
    "degree_beyond": "variance of higher degree",
    "epsilon": "covariance error ε",
    "delta": "excess alignment loss δ",
    "gap": "nonlinear variance at most",
    "bound": "error bound",
    "bound_rates": "error bound by rates",
    "error_to_bound": "error relative to bound",
    "sigreg": "SIGReg statistic",
    "paired": "views are correlated",
    "rho": "correlation ρ",
    "dimension": "independent directions",
    "slowest_quadratic": "slowest quadratic function",
    "stationarity": "difference of views",
    "gaussianity": "distance from Gaussian",
    "coordinate_gaussianity": "worst coordinate",
    "rate_window": "window of rates",
    "isotropy": "ratio of decay rates",
    "additive_noise": "state-dependent noise",
    "independence": "dependent coordinates",
    "reversibility": "irreversibility",
    # world models
    "linear_dynamics": "R² of linear dynamics",
    "action_share": "share due to actions",
    "persistent_excitation": "variety of actions",
    "conjugacy_a": "error of A",
    "conjugacy_b": "error of B",
    "conjugacy_scale": "scale of latents",
    # alignment
    "mse_sum": "squared error",
    "mse_per_dim": "MSE per dimension",
    "procrustes_error": "error of the best rotation",
    "cka": "CKA",
    "cka_debiased": "debiased CKA",
    "svcca": "SVCCA",
    "pwcca": "PWCCA",
    "dsc": "rank of distances",
    "mutual_knn": "shared neighbours",
    "r2_beyond_pca": "R² beyond PCA",
    "r2_beyond_untrained": "R² beyond untrained",
    "condition": "condition number",
    "source_rank": "rank of the source",
    "map_rank": "rank of the map",
    "constant_source": "constant source dimensions",
    "constant_target": "constant target dimensions",
    "pairs_beyond_dimensions": "pairs minus dimensions",
    "determinant_sign": "reflection (−1)",
    "certified.error": "error of a rotation",
    "certified.limit": "limit from both bounds",
    "certified.least_squares": "error of least squares",
    "certified.orthogonality": "distance from a rotation",
    "certified.pairs": "pairs for the rotation",
    # probes
    "map_r2": "R² of the map",
    "probe": "accuracy of the probe",
    "probe_source": "accuracy on its own model",
    "probe_untranslated": "accuracy without the map",
    "probe_distilled": "distilled accuracy",
    "probe_migrated": "migrated accuracy",
    "probe_inverse": "accuracy through inverse",
    "probe_target": "accuracy if trained there",
    "probe_loss": "lost by migrating",
    "probe_price": "lost against training",
    "probe_unread": "logits not returned",
    "probe_condition": "condition of the map",
    # atlases
    "cycle.atlas": "error around all charts",
    "cycle.pairwise": "error around pairs",
    "tied": "determined directions",
    # energies
    "nonnegativity": "smallest energy",
    "identity": "energy of staying",
    "indiscernibles": "distinct pairs at 0",
    "triangle": "triangle violation",
    "midpoints": "violation at midpoints",
    "floor": "energy per distance",
    "asymmetry": "asymmetry",
    "reachability_auc": "AUC of reachable pairs",
    "one_way_auc": "AUC of one-way pairs",
    "one_way_order": "one-way pairs in order",
    "spearman": "rank correlation",
    "spearman_source": "source's rank correlation",
    "spearman_lost": "rank correlation lost",
    "calibration_error": "calibration error",
    "median_ratio": "median energy / truth",
    "agreement": "agreement with the source",
    "step_scale": "energy of a step / cost",
    "ways_missed": "ways missed",
    "cells": "cells",
    "cell_radius": "radius of a cell / step",
    "divided_cells": "cells that may join wrongly",
    "evidence_level": "least evidence for an edge",
    "ways_cheap": "held-out ways that are cheap",
    "reversed_cheap": "cheap backwards",
    "least_action_success": "goals by least action",
}
SUFFIXES = {
    "_whitened": " (whitened)",
    "_common": " (in source)",
    "_target": " (in target)",
    "_raw": " (raw)",
}
FAMILIES = {
    re.compile(r"nos_(\d+)"): r"\1 neighbours lost",
    re.compile(r"degree_(\d+)"): r"variance of degree \1",
    re.compile(r"ratio_(\d+)"): r"energy / truth at \1%",
    re.compile(r"translation\.(.+)\.(.+)"): r"R² from \1 to \2",
    re.compile(r"joins\.(.+)"): r"R² of \1 in the frame",
}


def plain_name(code: str) -> str:
    """What a verdict measures, in a few words; the code itself if it has no plain name.

    >>> plain_name("nos_10_common"), plain_name("ada.bound_whitened"), plain_name("something")
    ('10 neighbours lost (in source)', 'ada: error bound (whitened)', 'something')
    """
    return _known(code) or code


def _known(code: str) -> str:
    """The plain name, or an empty string."""
    if code in NAMES:
        return NAMES[code]
    for pattern, name in FAMILIES.items():
        if pattern.fullmatch(code):
            return pattern.sub(name, code)
    for suffix, name in SUFFIXES.items():
        if code.endswith(suffix) and _known(code.removesuffix(suffix)):
            return _known(code.removesuffix(suffix)) + name
    owner, dot, rest = code.partition(".")
    return f"{owner}: {_known(rest)}" if dot and _known(rest) else ""
