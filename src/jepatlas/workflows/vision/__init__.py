"""Agents on images that never met: their latents of the same states, and what one can teach the other."""

from jepatlas.workflows.vision.agents import Seeing, groups_of, judge_latents, load_agent, train_and_judge
from jepatlas.workflows.vision.costs import Cost, cost_of, encoding_flops
from jepatlas.workflows.vision.directions import collapse_verdict
from jepatlas.workflows.vision.graduates import agents_of, graduate
from jepatlas.workflows.vision.latents import encode_images, latents_by, latents_of
from jepatlas.workflows.vision.looking import choices_of, load_looking, train_looking
from jepatlas.workflows.vision.milestones import Milestone, first_to, majority_of, milestones, stages
from jepatlas.workflows.vision.teaching import refuse_told_tests, start_taught, teacher_arrays
from jepatlas.workflows.vision.viewpoints import Choice, Sights, chances, choose, decide, look, survey

__all__ = [
    "Choice",
    "Cost",
    "Milestone",
    "Seeing",
    "Sights",
    "agents_of",
    "chances",
    "choices_of",
    "choose",
    "collapse_verdict",
    "cost_of",
    "decide",
    "encode_images",
    "encoding_flops",
    "first_to",
    "graduate",
    "groups_of",
    "judge_latents",
    "latents_by",
    "latents_of",
    "load_agent",
    "load_looking",
    "look",
    "majority_of",
    "milestones",
    "refuse_told_tests",
    "stages",
    "start_taught",
    "survey",
    "teacher_arrays",
    "train_and_judge",
    "train_looking",
]
