"""One .npz file per episode, with one array per column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.data.episode_arrays import EpisodeArrays

__all__ = ["join_episodes", "padded", "read_npz_episodes"]


def read_npz_episodes(folder: Path) -> EpisodeArrays:
    """The episodes of a folder, in the order of their names. `action` may be one row shorter than the others."""
    episodes = []
    for path in sorted(folder.glob("*.npz")):
        columns = read_arrays(path)
        longest = max((len(column) for column in columns.values() if column.ndim), default=0)
        columns = {name: padded(column, longest) if name == "action" else column for name, column in columns.items()}
        wrong = next((name for name, column in columns.items() if not column.ndim or len(column) != longest), None)
        if wrong is not None:
            raise InputError(
                f"'{wrong}' of {path} has the shape {columns[wrong].shape}, but needs {longest} rows, one for each "
                "time step. Only 'action' may have one row less."
            )
        episodes.append(columns)
    return join_episodes(episodes, str(folder))


def padded(actions: np.ndarray, rows: int) -> np.ndarray:
    """Actions in floats, with NaN after the last step."""
    if actions.ndim and len(actions) == rows - 1:
        blank = np.full((1, *actions.shape[1:]), np.nan, np.float32)
        return np.concatenate([actions.astype(np.float32), blank])
    return actions


def join_episodes(episodes: Sequence[Mapping[str, np.ndarray]], where: str) -> EpisodeArrays:
    """Episodes with the same columns, one after the other."""
    if not episodes:
        raise InputError(f"{where} holds no episodes.")
    names = list(episodes[0])
    for number, columns in enumerate(episodes):
        other = set(columns) ^ set(names)
        if other:
            raise InputError(f"Episode {number} of {where} differs from the first in the column '{min(other)}'.")
        for name in names:
            if columns[name].shape[1:] != episodes[0][name].shape[1:]:
                raise InputError(
                    f"'{name}' has rows of shape {columns[name].shape[1:]} in episode {number} of {where}, but "
                    f"{episodes[0][name].shape[1:]} in the first."
                )
    joined = {name: np.concatenate([columns[name] for columns in episodes]) for name in names}
    return EpisodeArrays(joined, np.array([len(columns[names[0]]) for columns in episodes]))
