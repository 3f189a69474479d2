"""The latents of a trained agent on images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Literal

import numpy as np
import tyro

from jepatlas.cli.options import console_for, emit, parse, say
from jepatlas.core.arrays import write_arrays
from jepatlas.workflows.vision import Seeing, latents_of, load_agent


@dataclass(frozen=True)
class Encode:
    """Write the latents of a trained agent's images, with states, groups, labels and small raw images beside them.

    Example: jepatlas encode runs/left --out left.npz

    By default those of the states that no agent has learned from. Two such files are what 'jepatlas align' and
    'jepatlas migrate probe' take: rows are paired by state, and splits keep groups whole. Controls are the
    principal components of the raw images and the latents of the same network before its first step ('untrained').
    """

    run: tyro.conf.Positional[Path]
    """A run of 'jepatlas train vision'."""
    part: Literal["held", "learnt", "all"] = "held"
    """Which states: those held out, those learned from, or all."""
    layers: bool = False
    """Also the latents after each block, for layer-wise similarity."""
    pipeline: str | None = None
    """Augment each image once by this pipeline (A, B, mild, plain): the views of agents that see the same images."""
    seed: int = 0
    """What the pipeline draws."""
    out: Path | None = None
    """The file (npz, safetensors); by default latents.npz in the run folder."""
    json: str | None = None
    """Write what was done as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Encode, "encode", words)
    console = console_for(options.json)
    agent = load_agent(options.run)
    arrays = latents_of(
        agent, options.part, layers=options.layers, pipeline=options.pipeline, seed=options.seed, untrained=True
    )
    place = options.out or options.run / "latents.npz"
    write_arrays(place, arrays)
    count, width = arrays["h"].shape
    notes = _notes(agent, arrays)
    answer = {"run": str(options.run), "out": str(place), "rows": count, "width": width, "notes": notes}
    emit(options.json, answer)
    for note in notes:
        say(console, note)
    say(console, f"{count} latents of width {width}: {place}.")
    say(console, f"Next, with those of another agent: jepatlas align {quote(str(place))} OTHER")
    return 0


def _notes(agent: Seeing, arrays: dict[str, np.ndarray]) -> list[str]:
    """What is not in the file, though the images have it."""
    columns = {"labels": "label", "groups": "group"}
    absent = [
        f"No {name} are written: the column '{column}' is empty for some of these states."
        for name, column in columns.items()
        if column in agent.seen.table.columns and name not in arrays
    ]
    return [*([agent.seen.message] if agent.seen.message else []), *absent]
