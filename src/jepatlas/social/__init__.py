"""Agents on images that never met: their latents of the same states, and what one can teach the other."""

from jepatlas.social.agents import Seeing, collapse_verdict, judge_latents, load_agent
from jepatlas.social.latents import encode_images, latents_of

__all__ = ["Seeing", "collapse_verdict", "encode_images", "judge_latents", "latents_of", "load_agent"]
