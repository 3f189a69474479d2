"""Agents on images that never met: their latents of the same states, and what one can teach the other."""

from jepatlas.social.agents import Seeing, collapse_verdict, judge_latents, load_agent
from jepatlas.social.costs import Cost, cost_of, encoding_flops
from jepatlas.social.graduates import agents_of, graduate
from jepatlas.social.latents import encode_images, latents_of
from jepatlas.social.milestones import Milestone, first_to, milestones
from jepatlas.social.teaching import start_taught, teacher_arrays

__all__ = [
    "Cost",
    "Milestone",
    "Seeing",
    "agents_of",
    "collapse_verdict",
    "cost_of",
    "encode_images",
    "encoding_flops",
    "first_to",
    "graduate",
    "judge_latents",
    "latents_of",
    "load_agent",
    "milestones",
    "start_taught",
    "teacher_arrays",
]
