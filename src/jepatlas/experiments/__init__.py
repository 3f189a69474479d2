"""One file per claim of the papers: what is claimed, how it is tested, what came out.

A new experiment is a file with an `Experiment` in it, and a line here.
"""

from jepatlas.experiments import (
    alignment_nulls,
    anisotropic,
    bound_check,
    dimension_mismatch,
    directed_effort,
    energy_calibration,
    energy_coverage,
    energy_heads,
    generalised_normal,
    gl_symmetry,
    greedy_sfa,
    hermite_degrees,
    identify_2d,
    image_controls,
    intrinsic_energy,
    isotropisation,
    lambda_rho,
    linear_state_model,
    one_way_doors,
    one_way_reachability,
    optimal_planning,
    order_embedding,
    orthogonal_maps,
    pair_budget,
    pair_noise,
    planning_cost,
    ported_energy,
    ported_planner,
    prediction_energy,
    reacher_collapse,
    reacher_exploration,
    reacher_isotropisation,
    reacher_rates,
    registration_energies,
    sample_complexity,
    scaling,
    social,
    spectral_solver,
    straight_plans,
    value_guided,
)
from jepatlas.experiments.claims import claims_page, read_results
from jepatlas.experiments.experiment import SCALES, Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.reproduce import check_publishable, last_record, publish, reproduce, shipped_results

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Claim",
    "Experiment",
    "Finding",
    "Result",
    "Scale",
    "Trial",
    "check_publishable",
    "claims_page",
    "last_record",
    "publish",
    "read_results",
    "reproduce",
    "shipped_results",
]

_IDENTIFY = (
    identify_2d,
    scaling,
    generalised_normal,
    lambda_rho,
    bound_check,
    hermite_degrees,
    anisotropic,
    greedy_sfa,
    dimension_mismatch,
    isotropisation,
    sample_complexity,
    spectral_solver,
)
_ALIGN = (
    orthogonal_maps,
    linear_state_model,
    gl_symmetry,
    pair_budget,
    pair_noise,
    alignment_nulls,
    image_controls,
)
_ENERGY = (
    intrinsic_energy,
    directed_effort,
    order_embedding,
    registration_energies,
    one_way_reachability,
    energy_calibration,
    energy_coverage,
    energy_heads,
    prediction_energy,
    ported_energy,
)
_PIXELS = (
    reacher_exploration,
    reacher_rates,
    reacher_collapse,
    reacher_isotropisation,
)
_PLAN = (
    optimal_planning,
    planning_cost,
    straight_plans,
    value_guided,
    one_way_doors,
    ported_planner,
)
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (*_IDENTIFY, *_ALIGN, *_ENERGY, *_PIXELS, *_PLAN, *social.CLAIMS)
}
