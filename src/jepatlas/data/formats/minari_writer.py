"""Writes episodes as a Minari dataset, by the package minari, so that `minari.load_dataset` reads it.

Observations are those that an agent sees: `pixels`, `observation`, or a dictionary of both. States are infos, or the
observations if there are no others.
Images are stored without loss. The environment is recorded, so that `recover_environment` makes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Dict, Space

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import write_folder
from jepatlas.data.episode_arrays import EpisodeArrays
from jepatlas.data.episodes import Column, EpisodeFile
from jepatlas.worlds.gym_registration import environment_of

__all__ = ["write_minari"]

OBSERVED = ("pixels", "observation")
STATE = "state"
BOOKKEEPING = ("action", "reward", "terminated", "truncated", "ep_idx", "step_idx", "step")


def write_minari(episodes: EpisodeFile | EpisodeArrays, folder: Path | str) -> Path:
    """Write the dataset to a new folder, whose name becomes its id; returns the folder.

    With the parent of the folder as MINARI_DATASETS_PATH, `minari.load_dataset(folder.name)` opens it.
    """
    folder = Path(folder)
    if folder.exists():
        raise InputError(f"{folder} exists already. Delete it or choose another folder.")
    library = require("minari", "interop", "Writing a Minari dataset")
    storage = require("minari.dataset.minari_storage", "interop", "Writing a Minari dataset")
    missing = [name for name in ("action", "reward", "terminated", "truncated") if name not in episodes.columns]
    observed = [name for name in OBSERVED if name in episodes.columns] or [STATE]
    missing += [name for name in observed if name not in episodes.columns]
    if missing:
        known = ", ".join(episodes.columns)
        raise InputError(f"A Minari dataset needs the column '{missing[0]}', but the episodes have only {known}.")
    about = episodes.about
    with write_folder(folder) as made:
        target = storage.MinariStorage.new(
            (made / "data").resolve(),  # relative paths fail in minari 0.5.4
            observation_space=_joined_space(episodes.columns, observed),
            action_space=_space(episodes.columns["action"], 1.0),
            env_spec=_env_spec(about),
            jpeg_encoding=False,
        )
        policy = about.get("policy")
        named = {"algorithm_name": policy["kind"]} if isinstance(policy, Mapping) and "kind" in policy else {}
        target.update_metadata(
            {"dataset_id": folder.name, "minari_version": library.__version__, "jepatlas": about} | named
        )
        target.update_episodes(_buffers(episodes, observed))
    return folder


def _buffers(episodes: EpisodeFile | EpisodeArrays, observed: list[str]) -> Iterator[Any]:
    buffer = require("minari.data_collector.episode_buffer", "interop", "Writing a Minari dataset")
    for number in range(len(episodes)):
        rows = episodes.episode(number)
        seen = {name: rows.pop(name) for name in observed}
        yield buffer.EpisodeBuffer(
            id=number,
            observations=seen if len(seen) > 1 else seen[observed[0]],
            actions=rows["action"][:-1],
            rewards=rows["reward"][1:],
            terminations=rows["terminated"][1:],
            truncations=rows["truncated"][1:],
            infos={name: values for name, values in rows.items() if name not in BOOKKEEPING} or None,
        )


def _joined_space(columns: Mapping[str, Column], names: list[str]) -> Space[Any]:
    spaces: dict[str, Space[Any]] = {name: _space(columns[name], np.inf) for name in names}
    return Dict(spaces) if len(spaces) > 1 else spaces[names[0]]


def _space(column: Column, limit: float) -> Box:
    """Bytes are in 0 … 255, other numbers within ± limit."""
    if column.dtype == np.uint8:
        return Box(0, 255, column.shape, np.uint8)
    return Box(-limit, limit, column.shape, column.dtype.type)


def _env_spec(about: Mapping[str, Any]) -> EnvSpec | None:
    """The environment of the episodes, if they name one that is registered."""
    if isinstance(about.get("world"), Mapping):
        return environment_of(about["world"])
    try:
        return gymnasium.spec(str(about["environment"]))
    except (KeyError, ImportError, gymnasium.error.Error):
        return None
