"""Stable names of trial functions.

A finished run is found again by a hash of its settings and of the name of its function. A function that has moved since
version 0.1 keeps the name that it had then, so that runs finished by 0.1 are not repeated.
"""

from __future__ import annotations

__all__ = ["import_path", "stable_name"]

_PREFIX = "jepatlas.experiments."
_MOVED = {  # present import path, below jepatlas.experiments: name in version 0.1
    "alignment.alignment_nulls:run": "alignment_nulls:run",
    "alignment.gl_symmetry:run": "gl_symmetry_runs:run",
    "alignment.view_alignment:run": "image_control_runs:run",
    "alignment.linear_state_model:run": "linear_state_model:run",
    "alignment.orthogonal_maps:run": "orthogonal_maps:run",
    "alignment.pair_budget:run_agents": "pair_budget:run_agents",
    "alignment.pair_budget:run_linear": "pair_budget:run_linear",
    "alignment.pair_noise:run_agents": "pair_noise:run_agents",
    "alignment.pair_noise:run_linear": "pair_noise:run_linear",
    "energy.directed_effort:run": "directed_effort_runs:run",
    "energy.learned_energies:run": "energy_runs:run",
    "energy.intrinsic_energy:run": "intrinsic_energy_runs:run",
    "energy.order_embedding:run": "order_embedding_runs:run",
    "energy.porting_trial:run": "ported_energy_runs:run",
    "energy.prediction_energy:run": "prediction_energy_runs:run",
    "energy.registration_energies:run": "registration_energies_runs:run",
    "engine.latent_trials:run_briefly": "settings:run_briefly",
    "identifiability.anisotropic:run_spectral": "anisotropic:run_spectral",
    "identifiability.anisotropic:run_trained": "anisotropic:run_trained",
    "identifiability.dimension_mismatch:run": "dimension_mismatch:run",
    "identifiability.sfa_trials:run_lejepa": "greedy_sfa_runs:run_lejepa",
    "identifiability.sfa_trials:run_spectral": "greedy_sfa_runs:run_spectral",
    "identifiability.hermite_degrees:run": "hermite_degrees_runs:run",
    "identifiability.isotropisation_doses:run_corrected": "isotropisation:run_corrected",
    "identifiability.isotropisation_doses:run_weighted": "isotropisation:run_weighted",
    "identifiability.scaling_trials:run_raw": "scaling_runs:run_raw",
    "identifiability.scaling_trials:run_trained": "scaling_runs:run_trained",
    "identifiability.spectral_solver:run_spectral": "spectral_solver:run_spectral",
    "identifiability.spectral_solver:run_trained": "spectral_solver:run_trained",
    "planning.door_trials:run_exact": "one_way_doors_runs:run_exact",
    "planning.door_trials:run_learned": "one_way_doors_runs:run_learned",
    "planning.optimal_planning:run": "optimal_planning_runs:run",
    "planning.closed_loop_costs:run": "planning_cost_runs:run",
    "planning.closed_loop_costs:run_observed": "planning_cost_runs:run_observed",
    "planning.planning_trials:run": "planning_runs:run",
    "planning.ported_planner:run": "ported_planner_runs:run",
    "planning.straight_plans:run": "straight_plans_runs:run",
    "reacher.reacher_encoders:run": "reacher_runs:run",
    "reacher.reacher_isotropisation:run": "reacher_isotropisation_runs:run",
    "social.checkpoint_trials:run_with_checkpoints": "social.predictions_runs:run_watched",
    "social.common_worlds:run_in_half": "social.predictions_runs:run_elsewhere",
    "social.race_trials:run_migration": "social.teaching_runs:run_migration",
    "social.race_trials:run_mutual": "social.teaching_runs:run_mutual",
    "social.trained_agents:run_agent": "social.runs:run",
    "social.viewpoint_trials:run_viewpoints": "social.viewpoints_runs:run",
}
_NAMES = {"jepatlas.workflows.runs:run_job": "jepatlas.runs:run_job"}
_NAMES |= {_PREFIX + path: _PREFIX + name for path, name in _MOVED.items()}
_PATHS = {name: path for path, name in _NAMES.items()}


def stable_name(path: str) -> str:
    """The name that identifies the function at an import path `module:function`.

    >>> stable_name("jepatlas.workflows.runs:run_job")
    'jepatlas.runs:run_job'
    """
    return _NAMES.get(path, path)


def import_path(name: str) -> str:
    """The present import path of the function with a stable name."""
    return _PATHS.get(name, name)
