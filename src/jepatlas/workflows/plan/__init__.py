"""From world models to what they do: tasks driven in worlds, success beside chance, films, planners that are ported."""

from jepatlas.workflows.plan.agents import PlanningAgent, agent_of, euclidean, ported
from jepatlas.workflows.plan.driving import Drive, DrivingConfig, drive, drive_at_random
from jepatlas.workflows.plan.film_files import check_film, write_film
from jepatlas.workflows.plan.films import driven_films, film_rows, imagined_films
from jepatlas.workflows.plan.identified import certify_world_model
from jepatlas.workflows.plan.linear_latents import LinearLatent, linear_latent, quadratic_cost
from jepatlas.workflows.plan.models import LatentEpisodes, TrainedModel, latent_episodes, load_world_model
from jepatlas.workflows.plan.porting import fit_port, port_planner, same_world, shared_latents
from jepatlas.workflows.plan.record import planning_record
from jepatlas.workflows.plan.success import success_table
from jepatlas.workflows.plan.tasks import Tasks, draw_tasks
from jepatlas.workflows.plan.where import Place, place_of, refuse_out_of_reach

__all__ = [
    "Drive",
    "DrivingConfig",
    "LatentEpisodes",
    "LinearLatent",
    "Place",
    "PlanningAgent",
    "Tasks",
    "TrainedModel",
    "agent_of",
    "certify_world_model",
    "check_film",
    "draw_tasks",
    "drive",
    "drive_at_random",
    "driven_films",
    "euclidean",
    "film_rows",
    "fit_port",
    "imagined_films",
    "latent_episodes",
    "linear_latent",
    "load_world_model",
    "place_of",
    "planning_record",
    "port_planner",
    "ported",
    "quadratic_cost",
    "refuse_out_of_reach",
    "same_world",
    "shared_latents",
    "success_table",
    "write_film",
]
