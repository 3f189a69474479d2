"""Which rows of two files of latents belong together: options of every verb that pairs them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jepatlas.core.errors import InputError

__all__ = ["Pairing"]


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """How rows of A and of B are paired."""

    ids: tuple[Path, ...] = ()
    """Two files with the ids of the rows of A and of B, which then need not be in the same order: any of these
    formats, or txt with one id a line."""
    intersect: bool = False
    """Pair the states that both have, by ids, and leave out the rest: how many is said. Without it, a state that only
    one of them has is refused."""

    @property
    def id_files(self) -> tuple[Path | None, Path | None]:
        """The two files, or none for either."""
        if len(self.ids) not in (0, 2):
            raise InputError(f"--ids takes two files, of A and of B, but {len(self.ids)} was given.")
        return (self.ids[0], self.ids[1]) if self.ids else (None, None)
