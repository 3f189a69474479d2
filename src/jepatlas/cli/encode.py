"""`jepatlas encode`: write the latents of a trained agent on images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import tyro

from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, defer_interrupts, emit, say
from jepatlas.recipes import Part

if TYPE_CHECKING:
    import numpy as np

    from jepatlas.recipes import ViewImages


@dataclass(frozen=True)
class Encode:
    """Write the latents of a trained agent's images, with states, groups, labels and small raw images.

    Example: jepatlas encode runs/left --out left.npz

    Two such files are the input of 'jepatlas align' and 'jepatlas migrate probe': rows are paired by state, and groups
    are not split. They also hold the input of the controls: small raw images, and the latents of the untrained network.
    """

    run: tyro.conf.Positional[Path]
    """A run of 'jepatlas train vision'."""
    part: Part = "held"
    """Which states: held out, training states (learnt), or all."""
    layers: bool = False
    """Also write the latents after each block, for layer-wise similarity."""
    pipeline: str | None = None
    """Augment each image once by this pipeline (A, B, mild, plain), to give agents different views of one image."""
    seed: int = 0
    """Seed of the augmentations."""
    out: Path | None = None
    """The file (npz, safetensors); by default latents.npz in the run folder."""
    json: str | None = None
    """Write a summary as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Encode, "encode", args)
    with defer_interrupts():
        from jepatlas.core.arrays import write_arrays
        from jepatlas.workflows.vision import latents_of, load_agent

    console = console_for(options.json)
    agent = load_agent(options.run)
    arrays = latents_of(
        agent, options.part, layers=options.layers, pipeline=options.pipeline, seed=options.seed, untrained=True
    )
    place = options.out or options.run / "latents.npz"
    write_arrays(place, arrays)
    count, width = arrays["h"].shape
    notes = _notes(agent.seen, arrays)
    emit(
        options.json,
        {"run": str(options.run), "out": str(place), "rows": count, "width": width, "notes": notes},
    )
    for note in notes:
        say(console, note)
    say(console, f"{count} latents of width {width}: {place}.")
    say(console, f"Next, with those of another agent: jepatlas align {quote(str(place))} OTHER")
    return 0


def _notes(images: ViewImages, arrays: dict[str, np.ndarray]) -> list[str]:
    """Which images and columns of the table are left out of the file."""
    notes = [images.message] if images.message else []
    for name, column in (("labels", "label"), ("groups", "group")):
        if column in images.table.columns and name not in arrays:
            notes.append(f"No {name} are written: the column '{column}' is empty for some of these states.")
    return notes
