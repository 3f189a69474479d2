"""Open episodes in any known format, which is recognised by the files at their path.

.h5, .hdf5                             our layout, which is that of stable-worldmodel
a folder with meta/info.json           LeRobot, version 3
a folder with data/main_data.hdf5      Minari
a folder NAME.lance                    Lance, as stable-worldmodel writes it
a folder of .npz                       one file per episode
"""

from __future__ import annotations

from pathlib import Path

from jepatlas.core.errors import InputError
from jepatlas.data.episode_arrays import EpisodeArrays
from jepatlas.data.episodes import EpisodeFile
from jepatlas.data.formats.lance_episodes import is_lance, read_lance
from jepatlas.data.formats.lerobot_episodes import is_lerobot, read_lerobot
from jepatlas.data.formats.minari_episodes import is_minari, read_minari
from jepatlas.data.formats.npz_episodes import read_npz_episodes

__all__ = ["is_episodes", "open_episodes"]

FORMATS = "LeRobot, Minari, Lance, or one .npz per episode"


def open_episodes(path: Path | str) -> EpisodeFile | EpisodeArrays:
    """The episodes at a path; raises InputError if its format is not known."""
    place = Path(path)
    if not place.exists():
        raise InputError(f"There are no episodes at {place}.")
    if place.is_file():
        return EpisodeFile(place)
    for matches, read in ((is_lerobot, read_lerobot), (is_minari, read_minari), (is_lance, read_lance)):
        if matches(place):
            return read(place)
    if any(place.glob("*.npz")):
        return read_npz_episodes(place)
    raise InputError(f"{place} is a folder in no known format of episodes ({FORMATS}).")


def is_episodes(path: Path) -> bool:
    """Whether a folder holds episodes in one of these formats."""
    if not path.is_dir() or (path / "recipe.yaml").exists():
        return False
    return is_lerobot(path) or is_minari(path) or is_lance(path) or any(path.glob("*.npz"))
