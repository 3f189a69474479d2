"""Let one more model join an atlas, without changing the others; or give its models probes and energies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from jepatlas.alignment import LinearProbe, attach_probe, load_atlas, save_atlas
from jepatlas.cli.atlas.show import present
from jepatlas.cli.options import parse
from jepatlas.core.errors import InputError
from jepatlas.workflows.align import add_verdicts, read_charts
from jepatlas.workflows.energy import attach_energy, load_energy_file


@dataclass(frozen=True)
class Add:
    """Fit one more model to the frame of an atlas, on the anchor states that it has seen; or give models probes
    and energies.

    Example: jepatlas atlas add runs/atlas dora.npz

    Example: jepatlas atlas add runs/atlas --probes ada=colour.safetensors --energies ada=runs/e/energy.safetensors
    """

    atlas: tyro.conf.Positional[Path]
    """The atlas; it is exchanged for the new one in one step."""
    chart: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Latents h of the new model, with the ids of its states."""
    certificate: tuple[Path, ...] = ()
    """Its certificate, if it has one."""
    ids: tuple[Path, ...] = ()
    """Files with the ids of their states (npy, csv, …, or txt with one a line), in the order of the charts."""
    groups: tuple[Path, ...] = ()
    """Files with a group for each row (an object, an episode), in the order of the charts: held out together."""
    probes: tuple[str, ...] = ()
    """Probes for charts of the atlas, as CHART=FILE; they take the names of their files."""
    energies: tuple[str, ...] = ()
    """Energies on latents of charts of the atlas, as CHART=FILE; they take the names of their files."""
    seed: int = 0
    """Which anchors are held out to score the newcomer."""
    out: Path | None = None
    """Another folder to write; by default the atlas itself."""
    json: str | None = None
    """Write what the atlas holds as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Add, "atlas add", words)
    if not options.chart and not options.probes and not options.energies:
        raise InputError("name a file of latents to add, or probes or energies with --probes or --energies CHART=FILE.")
    atlas = load_atlas(options.atlas)
    for newcomer in read_charts(options.chart, options.certificate, ids=options.ids, groups=options.groups):
        judged = add_verdicts(atlas, newcomer, seed=options.seed)
        atlas = atlas.add(newcomer).judge(judged) if judged else atlas.add(newcomer)
    for chart, path in _named(options.probes, "--probes"):
        atlas = attach_probe(atlas, chart, path.stem, LinearProbe.load(path))
    for chart, path in _named(options.energies, "--energies"):
        atlas = attach_energy(atlas, chart, path.stem, load_energy_file(path))
    seal = save_atlas(atlas, place := options.out or options.atlas)
    present(atlas, place, json=options.json, seal=seal)
    return 0


def _named(texts: tuple[str, ...], option: str) -> list[tuple[str, Path]]:
    """CHART=FILE, apart."""
    for text in texts:
        if "=" not in text:
            raise InputError(f"{option} takes CHART=FILE, but '{text}' was given.")
    return [(name, Path(path)) for name, _, path in (text.partition("=") for text in texts)]
