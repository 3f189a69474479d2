"""Latents of one model in the coordinates of another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from jepatlas.alignment import load_atlas
from jepatlas.cli.options import console_for, emit, parse, say
from jepatlas.core.arrays import write_arrays
from jepatlas.workflows.align import read_latents, translation_note


@dataclass(frozen=True)
class Translate:
    """Take latents from one chart of an atlas to another, and say what held-out states said of that translation.

    Example: jepatlas atlas translate runs/atlas ada ben new_states.npy --out as_ben.npy
    """

    atlas: tyro.conf.Positional[Path]
    """The folder of an atlas."""
    source: tyro.conf.Positional[str]
    """The chart that the latents are of."""
    target: tyro.conf.Positional[str]
    """The chart to take them to."""
    latents: tyro.conf.Positional[Path]
    """File of latents h; ids in it are kept."""
    out: Path = Path("translated.npz")
    """File to write, in the format that its ending names."""
    json: str | None = None
    """Write what was done as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Translate, "atlas translate", words)
    atlas, given = load_atlas(options.atlas), read_latents(options.latents)
    told = atlas.translate(given.h, options.source, options.target)
    keep_ids = given.ids is not None and options.out.suffix != ".npy"
    write_arrays(options.out, {"h": told} | ({"ids": given.ids} if keep_ids and given.ids is not None else {}))
    directions = min(atlas.chart(name).tied for name in (options.source, options.target))
    passed, said = translation_note(options.source, options.target, atlas.judged)
    console = console_for(options.json)
    say(
        console,
        f"{len(told)} rows from {options.source} to {options.target}, through {directions} directions of the "
        f"frame: {options.out}",
    )
    say(console, said)
    emit(
        options.json,
        {"out": str(options.out), "rows": len(told), "directions": directions, "passed": passed, "judged": said},
    )
    return 0
