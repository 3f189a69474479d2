"""From world models to what they do: tasks driven in worlds, success beside chance, films, planners that are ported."""

from jepatlas.planning.agents import PlanningAgent, agent_of, euclidean, ported
from jepatlas.planning.driving import Drive, DrivingConfig, Tasks, draw_tasks, drive, drive_at_random
from jepatlas.planning.film_files import check_film, write_film
from jepatlas.planning.films import driven_films, imagined_films
from jepatlas.planning.identified import certify_world_model
from jepatlas.planning.models import LatentEpisodes, TrainedModel, latent_episodes, load_world_model
from jepatlas.planning.porting import fit_port, port_planner, same_world, shared_latents
from jepatlas.planning.record import planning_record, success_table

__all__ = [
    "Drive",
    "DrivingConfig",
    "LatentEpisodes",
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
    "fit_port",
    "imagined_films",
    "latent_episodes",
    "load_world_model",
    "planning_record",
    "port_planner",
    "ported",
    "same_world",
    "shared_latents",
    "success_table",
    "write_film",
]
