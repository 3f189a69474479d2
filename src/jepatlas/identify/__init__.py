"""Are these latents the world's own coordinates? Takes plain arrays, so it judges anyone's model."""

from jepatlas.identify.certificate.certificate import certify
from jepatlas.identify.certificate.diagnosis import Diagnosis, diagnose
from jepatlas.identify.dimension.captured import Captured, captured
from jepatlas.identify.dimension.minimal import minimal_recovery
from jepatlas.identify.dimension.own_ladder import OwnLadder, own_ladder
from jepatlas.identify.dimension.rank import linear_rank
from jepatlas.identify.dimension.redundancy import Redundancy, redundancy
from jepatlas.identify.dimension.state_directions import name_direction
from jepatlas.identify.dimension.verdicts import dimension_verdicts
from jepatlas.identify.isotropy.dose_response import DoseResponse, dose_response, dosed_encoder, state_recovery
from jepatlas.identify.isotropy.isotropise import (
    Isotropised,
    Isotropy,
    fit_isotropy,
    isotropic_resample,
    isotropic_weights,
)
from jepatlas.identify.preconditions.audit import audit
from jepatlas.identify.spectral.held_out import held_out_rates
from jepatlas.identify.spectral.ladder import Ladder, read_ladder
from jepatlas.identify.spectral.rho import nonlinear_rho, rho_of_spectrum
from jepatlas.identify.spectral.sfa import linear_sfa, quadratic_sfa
from jepatlas.identify.spectral.solver import SpectrumSettings
from jepatlas.identify.spectral.spectral_encoder import SpectralEncoder
from jepatlas.identify.spectral.spectrum import Spectrum, fit_spectral_encoder, spectrum, spectrum_of_chunks
from jepatlas.identify.theory.action_verdicts import certify_dynamics
from jepatlas.identify.theory.bound import bound, bound_terms, epsilon_null
from jepatlas.identify.theory.conjugacy import conjugacy_errors
from jepatlas.identify.theory.dynamics import latent_dynamics
from jepatlas.identify.theory.geometry import dirichlet_floor, jacobian_geometry, jacobians, singular_values
from jepatlas.identify.theory.hermite import HermiteFit, degree_variances, hermite_basis, largest_degree, multi_indices
from jepatlas.identify.theory.mehler import decays, loss_decomposition, mehler_ladder, mehler_verdicts
from jepatlas.identify.time_blocks import time_blocks
from jepatlas.identify.truth.recovery import adjusted, recovery, recovery_null
from jepatlas.identify.truth.response import linear_response
from jepatlas.identify.warps.monotone import Monotone, fit_monotone
from jepatlas.identify.warps.sides import WarpSides, fit_sides
from jepatlas.identify.warps.sturm_liouville import SturmLiouville, sturm_liouville, sturm_liouville_generalised_normal
from jepatlas.identify.warps.warp import LatentWarpFit, WarpFit, fit_latent_warp, fit_warp
from jepatlas.identify.warps.warp_recovery import warp_band, warp_recovery

__all__ = [
    "Captured",
    "Diagnosis",
    "DoseResponse",
    "HermiteFit",
    "Isotropised",
    "Isotropy",
    "Ladder",
    "LatentWarpFit",
    "Monotone",
    "OwnLadder",
    "Redundancy",
    "SpectralEncoder",
    "Spectrum",
    "SpectrumSettings",
    "SturmLiouville",
    "WarpFit",
    "WarpSides",
    "adjusted",
    "audit",
    "bound",
    "bound_terms",
    "captured",
    "certify",
    "certify_dynamics",
    "conjugacy_errors",
    "decays",
    "degree_variances",
    "diagnose",
    "dimension_verdicts",
    "dirichlet_floor",
    "dose_response",
    "dosed_encoder",
    "epsilon_null",
    "fit_isotropy",
    "fit_latent_warp",
    "fit_monotone",
    "fit_sides",
    "fit_spectral_encoder",
    "fit_warp",
    "held_out_rates",
    "hermite_basis",
    "isotropic_resample",
    "isotropic_weights",
    "jacobian_geometry",
    "jacobians",
    "largest_degree",
    "latent_dynamics",
    "linear_rank",
    "linear_response",
    "linear_sfa",
    "loss_decomposition",
    "mehler_ladder",
    "mehler_verdicts",
    "minimal_recovery",
    "multi_indices",
    "name_direction",
    "nonlinear_rho",
    "own_ladder",
    "quadratic_sfa",
    "read_ladder",
    "recovery",
    "recovery_null",
    "redundancy",
    "rho_of_spectrum",
    "singular_values",
    "spectrum",
    "spectrum_of_chunks",
    "state_recovery",
    "sturm_liouville",
    "sturm_liouville_generalised_normal",
    "time_blocks",
    "warp_band",
    "warp_recovery",
]
