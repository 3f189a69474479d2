"""Are these latents the world's own coordinates? Takes plain arrays, so it judges anyone's model."""

from jepatlas.identify.bound import bound, bound_terms, epsilon_null
from jepatlas.identify.certificate import certify
from jepatlas.identify.dynamics import latent_dynamics
from jepatlas.identify.geometry import dirichlet_floor, jacobian_geometry, jacobians, singular_values
from jepatlas.identify.held_out import held_out_rates
from jepatlas.identify.hermite import HermiteFit, degree_variances, hermite_basis, largest_degree, multi_indices
from jepatlas.identify.ladder import Ladder, read_ladder
from jepatlas.identify.mehler import decays, loss_decomposition, mehler_ladder, mehler_verdicts
from jepatlas.identify.monotone import Monotone, fit_monotone
from jepatlas.identify.preconditions import audit
from jepatlas.identify.recovery import linear_response, recovery, recovery_null, rotation_error
from jepatlas.identify.rho import nonlinear_rho
from jepatlas.identify.sfa import linear_sfa, quadratic_sfa
from jepatlas.identify.solver import SpectrumSettings
from jepatlas.identify.spectral_encoder import SpectralEncoder
from jepatlas.identify.spectrum import Spectrum, fit_spectral_encoder, spectrum, spectrum_of_chunks
from jepatlas.identify.sturm_liouville import SturmLiouville, sturm_liouville, sturm_liouville_generalised_normal
from jepatlas.identify.warp import WarpFit, fit_warp, warp_band, warp_recovery

__all__ = [
    "HermiteFit",
    "Ladder",
    "Monotone",
    "SpectralEncoder",
    "Spectrum",
    "SpectrumSettings",
    "SturmLiouville",
    "WarpFit",
    "audit",
    "bound",
    "bound_terms",
    "certify",
    "decays",
    "degree_variances",
    "dirichlet_floor",
    "epsilon_null",
    "fit_monotone",
    "fit_spectral_encoder",
    "fit_warp",
    "held_out_rates",
    "hermite_basis",
    "jacobian_geometry",
    "jacobians",
    "largest_degree",
    "latent_dynamics",
    "linear_response",
    "linear_sfa",
    "loss_decomposition",
    "mehler_ladder",
    "mehler_verdicts",
    "multi_indices",
    "nonlinear_rho",
    "quadratic_sfa",
    "read_ladder",
    "recovery",
    "recovery_null",
    "rotation_error",
    "singular_values",
    "spectrum",
    "spectrum_of_chunks",
    "sturm_liouville",
    "sturm_liouville_generalised_normal",
    "warp_band",
    "warp_recovery",
]
