"""Before agents on images are trained, or go on: their images are decoded, and what cannot be read is said."""

from __future__ import annotations

from rich.console import Console
from rich.progress import Progress

from jepatlas.cli.options import say
from jepatlas.core.distributed import is_main_process
from jepatlas.recipes import ViewImages, VisionRecipe, read_images

__all__ = ["look"]


def look(console: Console, *agents: VisionRecipe) -> list[ViewImages]:
    """Decode the images of each agent where that was not done before, and say what is wrong with them before an hour of
    training. One process does so for all: to others there is nothing to see."""
    seen = [_seen(console, agent) for agent in agents] if is_main_process() else []
    for images in seen:
        if images.message:
            say(console, images.message)
    return seen


def _seen(console: Console, agent: VisionRecipe) -> ViewImages:
    if not console.is_interactive:  # where a bar would leave an empty line
        return read_images(agent)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("decoding images", total=None)
        return read_images(agent, lambda done, total: progress.update(task, completed=done, total=total))
