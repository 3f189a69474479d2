"""The guided run, chapter by chapter. A new chapter is a file with a `Chapter` in it, and a line here."""

from jepatlas.tour.agents import AGENTS
from jepatlas.tour.atlas import ATLAS
from jepatlas.tour.certificates import CERTIFICATES
from jepatlas.tour.chapter import Chapter, Stage
from jepatlas.tour.energy import ENERGY
from jepatlas.tour.probe import PROBE
from jepatlas.tour.transition import TRANSITION

__all__ = ["CHAPTERS", "Chapter", "Stage"]

CHAPTERS: tuple[Chapter, ...] = (AGENTS, CERTIFICATES, TRANSITION, PROBE, ATLAS, ENERGY)
