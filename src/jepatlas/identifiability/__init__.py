"""Are these latents the world's own coordinates? Takes plain arrays, so it judges anyone's model."""

from jepatlas.identifiability.certificate.certificate import certify
from jepatlas.identifiability.certificate.diagnosis import Diagnosis, diagnose
from jepatlas.identifiability.dimension.captured import Captured, captured
from jepatlas.identifiability.dimension.minimal import minimal_recovery
from jepatlas.identifiability.dimension.own_ladder import OwnLadder, own_ladder
from jepatlas.identifiability.dimension.rank import linear_rank
from jepatlas.identifiability.dimension.redundancy import Redundancy, redundancy
from jepatlas.identifiability.dimension.state_directions import name_direction
from jepatlas.identifiability.dimension.verdicts import dimension_verdicts
from jepatlas.identifiability.isotropy.dose_response import DoseResponse, dose_response, dosed_encoder, state_recovery
from jepatlas.identifiability.isotropy.isotropise import (
    Isotropised,
    Isotropy,
    fit_isotropy,
    isotropic_resample,
    isotropic_weights,
)
from jepatlas.identifiability.preconditions.audit import audit
from jepatlas.identifiability.spectral.held_out import held_out_rates
from jepatlas.identifiability.spectral.ladder import Ladder, read_ladder
from jepatlas.identifiability.spectral.rho import nonlinear_rho, rho_of_spectrum
from jepatlas.identifiability.spectral.sfa import linear_sfa, quadratic_sfa
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder
from jepatlas.identifiability.spectral.spectrum import Spectrum, fit_spectral_encoder, spectrum, spectrum_of_chunks
from jepatlas.identifiability.theory.action_verdicts import certify_dynamics
from jepatlas.identifiability.theory.bound import bound, bound_terms, epsilon_null
from jepatlas.identifiability.theory.conjugacy import conjugacy_errors
from jepatlas.identifiability.theory.dynamics import latent_dynamics
from jepatlas.identifiability.theory.geometry import dirichlet_floor, jacobian_geometry, jacobians, singular_values
from jepatlas.identifiability.theory.hermite import (
    HermiteFit,
    degree_variances,
    hermite_basis,
    largest_degree,
    multi_indices,
)
from jepatlas.identifiability.theory.mehler import decays, loss_decomposition, mehler_ladder, mehler_verdicts
from jepatlas.identifiability.time_blocks import time_blocks
from jepatlas.identifiability.truth.recovery import adjusted, recovery, recovery_null
from jepatlas.identifiability.truth.response import linear_response
from jepatlas.identifiability.warps.monotone import Monotone, fit_monotone
from jepatlas.identifiability.warps.sides import WarpSides, fit_sides
from jepatlas.identifiability.warps.sturm_liouville import (
    SturmLiouville,
    sturm_liouville,
    sturm_liouville_generalised_normal,
)
from jepatlas.identifiability.warps.warp import LatentWarpFit, WarpFit, fit_latent_warp, fit_warp
from jepatlas.identifiability.warps.warp_recovery import warp_band, warp_recovery

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
