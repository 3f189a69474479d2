"""Opens episodes in any format that is known, by what lies at their path."""

from __future__ import annotations

from pathlib import Path

from jepatlas.core.errors import InputError
from jepatlas.data.episode_arrays import Episodes
from jepatlas.data.episodes import EpisodeFile

__all__ = ["open_episodes"]


def open_episodes(path: Path | str) -> Episodes:
    """The episodes at a path; raises InputError if its format is not known."""
    place = Path(path)
    if place.is_file():
        return EpisodeFile(place)
    if not place.exists():
        raise InputError(f"There are no episodes at {place}.")
    raise InputError(f"{place} is a folder in no known format of episodes.")
