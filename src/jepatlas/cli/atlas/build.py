"""Put two or more models into one common frame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from jepatlas.alignment import Atlas, save_atlas
from jepatlas.cli.atlas.show import present
from jepatlas.cli.options import parse
from jepatlas.core.errors import InputError
from jepatlas.workflows.align import build_verdicts, read_charts


@dataclass(frozen=True)
class Build:
    """Fit one map per model into a common frame, by generalised Procrustes; any two translate through it.

    Example: jepatlas atlas build ada.npz ben.npz cleo.npz --out atlas

    A file holds latents h and the ids of their states; without ids, all files must show the same states in the same
    order. The charts take the names of their files. In csv and parquet, latents are the numeric columns, except for
    those called ids, groups or labels. What held-out states say of the atlas is sealed in with it.
    """

    charts: tyro.conf.Positional[tuple[Path, ...]]
    """Files of latents, one for each model: npy, npz, safetensors, csv or parquet."""
    certificates: tuple[Path, ...] = ()
    """Certificates of the charts, in the same order (jepatlas certify … --json FILE); for certified maps."""
    ids: tuple[Path, ...] = ()
    """Files with the ids of their states (npy, csv, …, or txt with one a line), in the order of the charts."""
    groups: tuple[Path, ...] = ()
    """Files with a group for each row (an object, an episode), in the order of the charts: held out together."""
    anchors: int = 1024
    """States whose frame coordinates travel with the atlas, so that a model can join later."""
    seed: int = 0
    """Which states are held out to score translations."""
    out: Path = Path("runs/atlas")
    """The folder to write, whole; it can be mailed."""
    json: str | None = None
    """Write what the atlas holds as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Build, "atlas build", words)
    if len(options.charts) < 2:
        raise InputError(f"An atlas is built from at least 2 files of latents, but {len(options.charts)} was given.")
    charts = read_charts(options.charts, options.certificates, ids=options.ids, groups=options.groups)
    judged = build_verdicts(charts, seed=options.seed)
    atlas = Atlas.build(charts, anchors=options.anchors).judge(judged)
    seal = save_atlas(atlas, options.out)
    present(atlas, options.out, json=options.json, seal=seal)
    return 0
