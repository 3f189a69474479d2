"""The guided tour: chapters that train two agents, map between them, and learn an energy.

To add a chapter, write a file with a `Chapter` and list it in `CHAPTERS`.
"""

from jepatlas.tour.agents_chapter import AGENTS, CERTIFICATES
from jepatlas.tour.atlas_chapter import ATLAS
from jepatlas.tour.energy_chapter import ENERGY
from jepatlas.tour.map_chapter import TRANSITION
from jepatlas.tour.probe_chapter import PROBE
from jepatlas.tour.stage import Chapter, Stage

__all__ = ["CHAPTERS", "Chapter", "Stage"]

CHAPTERS: tuple[Chapter, ...] = (AGENTS, CERTIFICATES, TRANSITION, PROBE, ATLAS, ENERGY)
