"""`jepatlas atlas`: many models in one frame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, defer_interrupts, emit, say, say_advice, verdict_table
from jepatlas.core.errors import InputError
from jepatlas.core.locks import writer_lock

if TYPE_CHECKING:
    from jepatlas.alignment import Atlas, Chart


@dataclass(frozen=True)
class Build:
    """Fit one map per model into a common frame, by generalised Procrustes analysis.

    Example: jepatlas atlas build ada.npz ben.npz cleo.npz --out atlas

    Any two models can then be translated into each other through the frame. A file holds latents h and the ids of their
    states; without ids, all files must have the same states in the same order. The charts are named after the files. In
    csv and parquet, latents are the numeric columns except ids, groups and labels. The atlas includes its scores on
    held-out states.
    """

    charts: tyro.conf.Positional[tuple[Path, ...]]
    """Files of latents, one per model: npy, npz, safetensors, csv or parquet."""
    certificates: tuple[Path, ...] = ()
    """Certificates of the charts (jepatlas certify … --json FILE), in the order of the charts."""
    ids: tuple[Path, ...] = ()
    """Files with the ids of the states (npy, csv, …, or txt with one per line), in the order of the charts."""
    groups: tuple[Path, ...] = ()
    """Files with a group for each row (an object, an episode), in the order of the charts. Groups are not split."""
    anchors: int = 1024
    """Number of states whose frame coordinates are saved with the atlas, so that models can be added later."""
    seed: int = 0
    """Seed of the choice of held-out states."""
    out: Path = Path("runs/atlas")
    """The folder to write. It is self-contained."""
    json: str | None = None
    """Write a description of the atlas as JSON to this file (- for standard output)."""


@dataclass(frozen=True)
class Add:
    """Add models, probes or energies to an atlas, without changing its other models.

    Example: jepatlas atlas add runs/atlas dora.npz

    Example: jepatlas atlas add runs/atlas --probes ada=colour.safetensors --energies ada=runs/e/energy.safetensors

    A model is fitted to the frame on the anchor states that it has seen.
    """

    atlas: tyro.conf.Positional[Path]
    """The atlas. It is replaced atomically."""
    chart: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Files of latents h of new models, with the ids of their states."""
    certificate: tuple[Path, ...] = ()
    """Certificates of the new models, in the order of the charts."""
    ids: tuple[Path, ...] = ()
    """Files with the ids of the states (npy, csv, …, or txt with one per line), in the order of the charts."""
    groups: tuple[Path, ...] = ()
    """Files with a group for each row (an object, an episode), in the order of the charts. Groups are not split."""
    probes: tuple[str, ...] = ()
    """Probes on charts of the atlas, as CHART=FILE; they are named after their files."""
    energies: tuple[str, ...] = ()
    """Energies on charts of the atlas, as CHART=FILE; they are named after their files."""
    seed: int = 0
    """Seed of the choice of held-out anchors."""
    out: Path | None = None
    """Write another folder; by default the atlas itself."""
    json: str | None = None
    """Write a description of the atlas as JSON to this file (- for standard output)."""


@dataclass(frozen=True)
class Show:
    """Check every file of an atlas against its hash, and show its contents and its scores on held-out states.

    Example: jepatlas atlas show runs/atlas
    """

    atlas: tyro.conf.Positional[Path]
    """The folder of an atlas."""
    seal: str | None = None
    """The seal as the sender states it; an atlas with another seal is refused."""
    json: str | None = None
    """Write a description of the atlas as JSON to this file (- for standard output)."""


@dataclass(frozen=True)
class Translate:
    """Translate latents from one chart of an atlas to another, and show how well this works on held-out states.

    Example: jepatlas atlas translate runs/atlas ada ben new_states.npy --out as_ben.npy
    """

    atlas: tyro.conf.Positional[Path]
    """The folder of an atlas."""
    source: tyro.conf.Positional[str]
    """The chart of the latents."""
    target: tyro.conf.Positional[str]
    """The chart to translate to."""
    latents: tyro.conf.Positional[Path]
    """File of latents h. Ids in it are kept."""
    out: Path = Path("translated.npz")
    """The file to write; its suffix gives the format."""
    json: str | None = None
    """Write a summary as JSON to this file (- for standard output)."""


def build(args: list[str]) -> int:
    options = parse(Build, "atlas build", args)
    if len(options.charts) < 2:
        raise InputError(f"An atlas needs at least 2 files of latents, but {len(options.charts)} was given.")
    with defer_interrupts():
        from jepatlas.alignment import Atlas, save_atlas
        from jepatlas.workflows.align import build_verdicts, read_charts

    charts = read_charts(options.charts, options.certificates, ids=options.ids, groups=options.groups)
    verdicts = build_verdicts(charts, seed=options.seed)
    atlas = Atlas.build(charts, anchors=options.anchors).judge(verdicts)
    seal = save_atlas(atlas, options.out)
    _present(atlas, options.out, json=options.json, seal=seal)
    return 0


def add(args: list[str]) -> int:
    options = parse(Add, "atlas add", args)
    if not options.chart and not options.probes and not options.energies:
        raise InputError("name a file of latents to add, or probes or energies with --probes or --energies CHART=FILE.")
    with defer_interrupts():
        from jepatlas.alignment import LinearProbe, attach_probe, load_atlas, save_atlas
        from jepatlas.workflows.align import add_verdicts, read_charts
        from jepatlas.workflows.energy import attach_energy, load_energy_file

    place = options.out or options.atlas
    with writer_lock(place):  # from reading to writing, so that nothing is lost that another process adds
        atlas = load_atlas(options.atlas)
        for chart in read_charts(options.chart, options.certificate, ids=options.ids, groups=options.groups):
            verdicts = add_verdicts(atlas, chart, seed=options.seed)
            atlas = atlas.add(chart)
            if verdicts:
                atlas = atlas.judge(verdicts)
        for name, path in _chart_files(options.probes, "--probes"):
            atlas = attach_probe(atlas, name, path.stem, LinearProbe.load(path))
        for name, path in _chart_files(options.energies, "--energies"):
            atlas = attach_energy(atlas, name, path.stem, load_energy_file(path))
        seal = save_atlas(atlas, place)
    _present(atlas, place, json=options.json, seal=seal)
    return 0


def show(args: list[str]) -> int:
    options = parse(Show, "atlas show", args)
    with defer_interrupts():
        from jepatlas.alignment import load_atlas
        from jepatlas.core.files import read_json

    atlas = load_atlas(options.atlas, seal=options.seal)
    index = read_json(options.atlas / "atlas.json")
    _present(atlas, options.atlas, json=options.json, seal=index["seal"])
    files = {one.relative_to(options.atlas).as_posix() for one in options.atlas.rglob("*") if not one.is_dir()}
    foreign = sorted(files - {"atlas.json", *index["files"]})
    if foreign:
        say(console_for(options.json), f"Not part of the atlas, and not checked: {', '.join(foreign)}")
    return 0


def translate(args: list[str]) -> int:
    options = parse(Translate, "atlas translate", args)
    with defer_interrupts():
        from jepatlas.alignment import load_atlas
        from jepatlas.core.arrays import write_arrays
        from jepatlas.workflows.align import read_latents, translation_note

    atlas = load_atlas(options.atlas)
    given = read_latents(options.latents)
    translated = {"h": atlas.translate(given.h, options.source, options.target)}
    rows = len(translated["h"])
    if given.ids is not None and options.out.suffix != ".npy":
        translated["ids"] = given.ids
    write_arrays(options.out, translated)
    directions = min(atlas.chart(name).tied for name in (options.source, options.target))
    passed, judged = translation_note(options.source, options.target, atlas.judged)
    console = console_for(options.json)
    say(
        console,
        f"{rows} rows from {options.source} to {options.target}, through {directions} directions of the frame: "
        f"{options.out}",
    )
    say(console, judged)
    emit(
        options.json,
        {"out": str(options.out), "rows": rows, "directions": directions, "passed": passed, "judged": judged},
    )
    return 0


def _chart_files(texts: tuple[str, ...], option: str) -> list[tuple[str, Path]]:
    """Chart and file of each CHART=FILE."""
    found = []
    for text in texts:
        name, separator, path = text.partition("=")
        if not separator:
            raise InputError(f"{option} takes CHART=FILE, but '{text}' was given.")
        found.append((name, Path(path)))
    return found


def _present(atlas: Atlas, place: Path, *, json: str | None, seal: str) -> None:
    """Print and write the summary, the charts, the verdicts and the size of an atlas."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table

    from jepatlas.alignment import exchanged
    from jepatlas.workflows.align import not_identified_note, translations_summary

    console = console_for(json)
    sizes = exchanged(atlas)
    summary = translations_summary(atlas.names, atlas.judged)
    certificates = not_identified_note(atlas.charts)
    verdicts = [*(atlas.judged or ()), *atlas.verdicts()]
    emit(
        json,
        {
            "atlas": str(place),
            "seal": seal,
            "summary": summary,
            "width": atlas.width,
            "bytes": sizes,
            "charts": [_chart_json(chart) for chart in atlas.charts],
            "certificates": certificates,
            "verdicts": [verdict.to_json() for verdict in verdicts],
        },
    )
    say(console, f"{summary} {certificates}".strip())
    title = f"{len(atlas.charts)} charts in a frame of {atlas.width} dimensions"
    names = ("chart", "width", "tied", "states", "identified", "bound", "carries", "kB")
    columns = [Column(name, overflow="fold") for name in names]
    table = Table(*columns, box=SIMPLE_HEAD, title=title, title_justify="left")
    for chart in atlas.charts:
        table.add_row(*_chart_cells(chart), f"{sizes[chart.name] / 1e3:.1f}")
    console.print(table)
    console.print(verdict_table("Verdicts on the atlas", verdicts, console.width))
    say_advice(console, verdicts)
    maps = len(atlas.charts)
    total = sum(sizes.values()) / 1e3
    say(console, f"{maps} maps give {maps * (maps - 1)} translations. Exchanged: {total:.1f} kB in total.")
    say(console, f"Atlas: {place} (seal {seal})")


def _chart_cells(chart: Chart) -> list[str]:
    identified, bound = "not certified", ""
    if chart.certificate:
        identified = {True: "yes", False: "no", None: "undecided"}[chart.certificate.identified]
        bound = f"{chart.certificate.bound.value:.3g} ≤ {chart.certificate.bound.high:.3g}"
    carries = ", ".join(f"{one.kind} {one.name}" for one in chart.attachments)
    return [chart.name, str(chart.width), str(chart.tied), str(chart.states), identified, bound, carries]


def _chart_json(chart: Chart) -> dict[str, Any]:
    certificate = chart.certificate
    return {
        "name": chart.name,
        "width": chart.width,
        "tied": chart.tied,
        "states": chart.states,
        "certified": certificate is not None,
        "identified": certificate.identified if certificate else None,
        "bound": certificate.bound.value if certificate else None,
        "carries": [{"kind": one.kind, "name": one.name, "sha256": one.sha256} for one in chart.attachments],
    }
