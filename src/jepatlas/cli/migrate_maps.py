"""`jepatlas migrate probe|energy|planner`: move a head or a planner to another model through a linear map."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from jepatlas.cli.options import Pairing, parse, parse_choices
from jepatlas.cli.output import console_for, defer_interrupts, emit, say, say_advice, show_table, verdict_table
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.workflows.align import MapKind, Through
from jepatlas.workflows.plan import DrivingConfig

if TYPE_CHECKING:
    from rich.console import Console

    from jepatlas.alignment import PairedLatents
    from jepatlas.core.records import Record

__all__ = ["energy", "planner", "probe"]


@dataclass(frozen=True)
class Probe(Pairing):
    """Convert a linear probe of A's latents into a probe of B's, through a map between them; no training on B.

    Example: jepatlas migrate probe ada.npz ben.npz --labels labels.npy

    Example: jepatlas migrate probe --probe colour.safetensors --map runs/align/map.safetensors

    With paired latents and labels, accuracies on held-out rows are reported: of the probe on A, of the unconverted
    probe on B, of the converted probe, of a probe distilled from A's logits, and of a probe trained on B. Without a
    saved probe and map, the probe is trained on one half of the rows that are not held out, and the map is fitted on
    the other half. A saved probe or map may have been fitted on any rows; it is then scored on all rows, and the report
    says so. No probe is written if the map predicts B no better than shuffled pairs, or if the converted probe is no
    better than the most frequent class. Without latents, the probe is converted through a saved map and not scored.
    """

    most_used: ClassVar[str] = "labels probe map ids groups blocks fit share seed out"

    latents: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Paired latents of A and B, with ids if the order of their rows differs. In csv and parquet, h is all numeric
    columns except ids, groups and labels, or h.0, h.1, …"""
    labels: Path | None = None
    """File (also txt) with a label for each row of A, if neither file has labels."""
    groups: Path | None = None
    """File with a group for each row of A (an object, an episode). Groups are not split."""
    blocks: int | None = None
    """Rows are a time series: split it into blocks of this many rows."""
    probe: Path | None = None
    """A saved probe on A's latents. By default one is trained."""
    map: Path | None = None
    """A saved map A → B. By default one is fitted."""
    fit: MapKind = "ridge"
    """How the map is fitted."""
    through: Through | None = None
    """How B's latents are mapped to A's: backwards, by a map B → A fitted on the same rows, or inverse, by the inverse
    of the map A → B, which amplifies the directions that the map shrinks. By default backwards, or inverse for a saved
    --map."""
    limit: float = CONDITION_LIMIT
    """Condition number of an inverse: singular values below 1/limit of the largest are dropped."""
    share: float | None = None
    """Share of held-out rows (groups, time blocks). By default the rows that the files mark as held out, or half."""
    seed: int = 0
    """Seed of the choice of held-out rows."""
    out: Path = Path("runs/migrate")
    """Folder for probe.safetensors (for B), source_probe.safetensors (of A), map.safetensors (A → B), back.safetensors
    (B → A, if fitted), the record and report.html."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


@dataclass(frozen=True)
class Energy(Pairing):
    """Apply an energy on A's latents to B's, through a map B → A.

    Example: jepatlas migrate energy ada.npz ben.npz --energy runs/energy/energy.safetensors

    On held-out rows both energies are compared, and the migrated energy is audited. It is a quasimetric wherever the
    original is one.
    """

    latents: tyro.conf.Positional[tuple[Path, ...]]
    """Paired latents of A and B, with ids if the order of their rows differs. In csv and parquet, h is all numeric
    columns except ids, groups and labels, or h.0, h.1, …"""
    energy: Path
    """A saved energy on A's latents, such as energy.safetensors in a run folder of 'jepatlas energy fit'."""
    groups: Path | None = None
    """File with a group for each row of A (an object, an episode). Groups are not split."""
    blocks: int | None = None
    """Rows are a time series: split it into blocks of this many rows."""
    fit: MapKind = "ridge"
    """How the map is fitted."""
    share: float = 0.5
    """Share of held-out rows (groups, time blocks)."""
    states: int = 256
    """Maximal number of held-out rows that are compared, in all pairs."""
    seed: int = 0
    """Seed of the choice of held-out rows."""
    out: Path = Path("runs/migrate-energy")
    """Folder for energy.safetensors, map.safetensors, the record and report.html."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


@dataclass(frozen=True)
class Planner:
    """Drive with B's camera by A's planner, dynamics and energy, through a map B → A; no training.

    Example: jepatlas migrate planner runs/day runs/night --states 500

    The map is fitted on states that both models have seen, and scored on others. On the same tasks, the migrated
    planner is compared with B's own, with a map between shuffled pairs, and with random actions.

    Each kind has its own options: --planner mppi --help shows those of that planner.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Two run folders of 'jepatlas train world-model': A, whose planner is used, and B, whose camera is used. Their
    worlds must be equal except for the camera."""
    driving: Annotated[DrivingConfig, tyro.conf.arg(name="")] = field(default_factory=DrivingConfig)
    fit: MapKind = "ridge"
    """How the map is fitted."""
    states: int = 1000
    """Number of states that both models see, for the map."""
    tasks: int = 50
    """Number of tasks: starts and goals, drawn uniformly from the world."""
    seed: int = 0
    """Seed of the states, the tasks and the planner."""
    out: Path = Path("runs/migrate-planner")
    """Folder for map.safetensors, the record and report.html."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def probe(args: list[str]) -> int:
    options = parse(Probe, "migrate probe", args)
    if not options.latents:
        return _convert_probe(options)
    with defer_interrupts():
        from jepatlas.alignment import LinearProbe
        from jepatlas.workflows.align import migrate_between

    found = migrate_between(
        _read_pair(options.latents, options, options.groups, options.labels),
        options.fit,
        limit=options.limit,
        seed=options.seed,
        through=options.through,
        blocks=options.blocks,
        share=options.share,
        probe=None if options.probe is None else LinearProbe.load(options.probe),
        fitted=None if options.map is None else LinearMap.load(options.map),
    )
    record = found.record
    if found.failure:
        emit(options.json, {"probe": None, "source_probe": None, "report": None} | record.to_json())
        print(f"jepatlas migrate probe: {record.summary} No probe is written. {found.remedy}", file=sys.stderr)
        return 1
    place = options.out / "probe.safetensors"
    source = options.out / "source_probe.safetensors"
    back = options.out / "back.safetensors"
    found.probe.save(place)
    found.source.save(source)
    back.unlink(missing_ok=True)  # of an earlier probe
    if found.back is not None:
        found.back.save(back)
    page = _save(record, found.map, options.out, options.seed)
    emit(options.json, {"probe": str(place), "source_probe": str(source), "report": str(page)} | record.to_json())
    console = console_for(options.json)
    _show(console, record)
    say(console, f"Probe for B: {place}\nSource probe, of A: {source}\nReport: {page}")
    return 0


def _convert_probe(options: Probe) -> int:
    """Convert a saved probe through a saved map. Without latents it cannot be scored."""
    if options.probe is None or options.map is None:
        raise InputError("give paired latents of two models, or a saved --probe and a saved --map.")
    if options.through == "backwards":
        raise InputError(
            "--through backwards needs latents to fit a map B → A: give paired latents and no --map, or leave it out."
        )
    with defer_interrupts():
        from jepatlas.alignment import LinearProbe, migrate, support

    source = LinearProbe.load(options.probe)
    fitted = LinearMap.load(options.map)
    carried = support(source, fitted, limit=options.limit)
    place = options.out / "probe.safetensors"
    migrate(source, fitted, limit=options.limit).save(place)
    say(
        console_for(options.json),
        f"The map carries {carried.carried} of {carried.width} directions (κ = {carried.condition:.3g}); "
        f"{carried.lost:.1%} of what the probe reads is lost. To measure its accuracy, give latents and labels.\n"
        f"Probe: {place}",
    )
    emit(
        options.json,
        {
            "probe": str(place),
            "condition": carried.condition,
            "carried": carried.carried,
            "width": carried.width,
            "lost": carried.lost,
        },
    )
    return 0


def energy(args: list[str]) -> int:
    options = parse(Energy, "migrate energy", args)
    with defer_interrupts():
        from jepatlas.workflows.energy import load_energy_file, migrate_energy, save_energy

    found = migrate_energy(
        _read_pair(options.latents, options, options.groups),
        load_energy_file(options.energy),
        options.fit,
        seed=options.seed,
        blocks=options.blocks,
        share=options.share,
        states=options.states,
    )
    place = options.out / "energy.safetensors"
    save_energy(found.saved, place)
    page = _save(found.record, found.map, options.out, options.seed)
    console = console_for(options.json)
    _show(console, found.record)
    say(console, f"Energy: {place}\nReport: {page}")
    emit(options.json, {"energy": str(place), "report": str(page)} | found.record.to_json())
    return 0


def planner(args: list[str]) -> int:
    options = parse_choices(Planner(), "migrate planner", args)
    if len(options.runs) != 2:
        raise InputError(f"give the run folders of both models, A and B, but {len(options.runs)} given.")
    with defer_interrupts():
        from jepatlas.workflows.plan import load_world_model, port_planner

    a, b = (load_world_model(run) for run in options.runs)
    fitted, record = port_planner(
        a,
        b,
        kind=options.fit,
        states=options.states,
        tasks=options.tasks,
        driving=options.driving,
        names=(options.runs[0].name, options.runs[1].name),
        seed=options.seed,
    )
    page = _save(record, fitted, options.out, options.seed)
    place = options.out / "map.safetensors"
    console = console_for(options.json)
    say(console, record.summary)
    show_table(console, record.tables[0])
    score = next(verdict for verdict in record.verdicts if verdict.name == "map_r2")
    say(console, f"R² of the map on states that it was not fitted on: {score.value:.3f}")
    say(console, f"Map: {place}\nReport: {page}")
    emit(options.json, {"map": str(place), "report": str(page)} | record.to_json())
    return 0


def _read_pair(
    latents: tuple[Path, ...], pairing: Pairing, groups: Path | None, labels: Path | None = None
) -> PairedLatents:
    """The rows that A and B share. Groups and labels are those of A's rows."""
    from jepatlas.workflows.align import read_pair

    if len(latents) != 2:
        given = "1 file was" if len(latents) == 1 else f"{len(latents)} files were"
        raise InputError(f"give the latents of both models, A and B, but {given} given.")
    return read_pair(*latents, ids=pairing.id_files, groups=groups, labels=labels, intersect=pairing.intersect)


def _save(record: Record, fitted: LinearMap, folder: Path, seed: int) -> Path:
    """Save the map, the record and the report; returns the path of the report."""
    from jepatlas.reporting import write_report

    fitted.save(folder / "map.safetensors")
    record.save(folder, "migrate")
    return write_report([folder], folder / "report.html", title=record.title, seed=seed)


def _show(console: Console, record: Record) -> None:
    say(console, record.summary)
    console.print(verdict_table(record.title, record.verdicts, console.width))
    say_advice(console, record.verdicts)
