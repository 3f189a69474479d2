"""Identifiability: are these latents the world's own coordinates? Works on plain arrays, so on any model."""

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.identifiability.bad_rows import BadRows, find_bad_rows
    from jepatlas.identifiability.certificate import certify
    from jepatlas.identifiability.covariance import linear_response
    from jepatlas.identifiability.diagnosis import Diagnosis, diagnose
    from jepatlas.identifiability.dimension.captured import Captured, captured, name_direction
    from jepatlas.identifiability.dimension.mismatch import dimension_verdicts
    from jepatlas.identifiability.dimension.redundancy import Redundancy, minimal_recovery, redundancy
    from jepatlas.identifiability.dose_curve import DoseResponse, dose_response
    from jepatlas.identifiability.isotropisation import (
        Isotropised,
        Isotropy,
        fit_isotropy,
        isotropic_resample,
        isotropic_weights,
    )
    from jepatlas.identifiability.linear_recovery import adjusted, recovery, recovery_null
    from jepatlas.identifiability.preconditions.audit import audit
    from jepatlas.identifiability.spectral.ladder import Ladder, read_ladder
    from jepatlas.identifiability.spectral.pair_ladder import PairLadder, fit_pair_ladder
    from jepatlas.identifiability.spectral.sfa import linear_sfa
    from jepatlas.identifiability.spectral.solver import SpectrumSettings
    from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder
    from jepatlas.identifiability.spectral.spectrum import Spectrum, fit_spectral_encoder, nonlinear_rho, spectrum
    from jepatlas.identifiability.theory.action_dynamics import certify_dynamics
    from jepatlas.identifiability.theory.bound import bound, bound_terms
    from jepatlas.identifiability.theory.hermite import degree_variances
    from jepatlas.identifiability.theory.mehler import loss_decomposition, mehler_ladder, mehler_verdicts
    from jepatlas.identifiability.trajectories import find_trajectories
    from jepatlas.identifiability.warps.sturm_liouville import (
        SturmLiouville,
        sturm_liouville,
        sturm_liouville_generalised_normal,
    )
    from jepatlas.identifiability.warps.warp import WarpSides, fit_latent_warp, fit_sides, fit_warp
    from jepatlas.identifiability.warps.warp_recovery import warp_recovery
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "BadRows",
    "Captured",
    "Diagnosis",
    "DoseResponse",
    "Isotropised",
    "Isotropy",
    "Ladder",
    "PairLadder",
    "Redundancy",
    "SpectralEncoder",
    "Spectrum",
    "SpectrumSettings",
    "SturmLiouville",
    "WarpSides",
    "adjusted",
    "audit",
    "bound",
    "bound_terms",
    "captured",
    "certify",
    "certify_dynamics",
    "degree_variances",
    "diagnose",
    "dimension_verdicts",
    "dose_response",
    "find_bad_rows",
    "find_trajectories",
    "fit_isotropy",
    "fit_latent_warp",
    "fit_pair_ladder",
    "fit_sides",
    "fit_spectral_encoder",
    "fit_warp",
    "isotropic_resample",
    "isotropic_weights",
    "linear_response",
    "linear_sfa",
    "loss_decomposition",
    "mehler_ladder",
    "mehler_verdicts",
    "minimal_recovery",
    "name_direction",
    "nonlinear_rho",
    "read_ladder",
    "recovery",
    "recovery_null",
    "redundancy",
    "spectrum",
    "sturm_liouville",
    "sturm_liouville_generalised_normal",
    "warp_recovery",
]
