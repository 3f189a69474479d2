"""Planning with trained world models: drive tasks, record success and films, port planners between models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.workflows.plan.driving import Drive, DrivingConfig, drive, drive_at_random
    from jepatlas.workflows.plan.environment_drive import EnvironmentDrive, drive_environment
    from jepatlas.workflows.plan.episode_films import check_film, driven_films, film_rows, imagined_films, write_film
    from jepatlas.workflows.plan.planner_migration import (
        fit_port,
        port_planner,
        same_world,
        shared_latents,
        shuffled_pairs,
    )
    from jepatlas.workflows.plan.planning_agent import (
        LinearLatent,
        PlanningAgent,
        agent_of,
        euclidean,
        linear_latent,
        ported,
        quadratic_cost,
    )
    from jepatlas.workflows.plan.planning_results import planning_record
    from jepatlas.workflows.plan.planning_tasks import Place, Tasks, check_reachable, draw_tasks, place_of
    from jepatlas.workflows.plan.trained_world_model import (
        LatentEpisodes,
        TrainedModel,
        latent_episodes,
        latent_steps,
        load_world_model,
    )
    from jepatlas.workflows.plan.world_model_certificate import certify_world_model
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "Drive",
    "DrivingConfig",
    "EnvironmentDrive",
    "LatentEpisodes",
    "LinearLatent",
    "Place",
    "PlanningAgent",
    "Tasks",
    "TrainedModel",
    "agent_of",
    "certify_world_model",
    "check_film",
    "check_reachable",
    "draw_tasks",
    "drive",
    "drive_at_random",
    "drive_environment",
    "driven_films",
    "euclidean",
    "film_rows",
    "fit_port",
    "imagined_films",
    "latent_episodes",
    "latent_steps",
    "linear_latent",
    "load_world_model",
    "place_of",
    "planning_record",
    "port_planner",
    "ported",
    "quadratic_cost",
    "same_world",
    "shared_latents",
    "shuffled_pairs",
    "write_film",
]
