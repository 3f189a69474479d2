"""`jepatlas energy`: learn, audit and compute energies, the least cost of going from one state to another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from jepatlas.cli.options import RecipeFile, mentions, parse, parse_choices
from jepatlas.cli.output import console_for, defer_interrupts, emit, say, show_verdicts
from jepatlas.cli.training_runs import Answer, RunOptions, resume, say_default, train_and_report
from jepatlas.core.config import choices
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.energy.energy_configs import LeastActionConfig
from jepatlas.recipes import EnergyRecipe, EnergyWorld, StepFile
from jepatlas.worlds import CurrentWorld, GymTable, OneWayGrid

if TYPE_CHECKING:
    from rich.console import Console

    from jepatlas.core.records import Record
    from jepatlas.training import Outcome

WORLDS = choices(EnergyWorld)


@dataclass(frozen=True)
class Fit(RecipeFile, RunOptions):
    """Learn the cost of going from one state to another, and compare it with the truth if it is known.

    Example: jepatlas energy fit one-way-grid --head iqe --out runs/energy

    Example: jepatlas energy fit steps.npz --head iqe

    Example: jepatlas energy fit steps.npz --kind least-action

    With --kind least-action nothing is trained: the energy is the cost of the cheapest way along observed steps, and
    +∞ where no way was observed.

    A file has x, x_next and cost for each step, or x, episode and cost for each state; x may be any latents. It may
    also hold `points` and, for each pair of them, the `truth`. Of episodes, the column 'state' or 'observation' is
    used (--source.column), and a step costs 1 unless there is a column 'cost'.

    Each kind has its own options: --head mrn --help shows those of that head.
    """

    most_used: ClassVar[str] = "source kind head learning steps batch-size lr seed out full resume"

    subject: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="SOURCE")] = None
    """A world (one-way-grid, gym, current), a file of steps (npz, safetensors, csv or parquet), or episodes (HDF5,
    LeRobot, Minari, Lance). By default the world 'one-way-grid'."""
    recipe: Annotated[EnergyRecipe, tyro.conf.arg(name="")] = field(default_factory=EnergyRecipe)
    kind: Literal["learned", "least-action"] = "learned"
    """Train a head, or compute least action: the same as --learning least-action, which has further options."""
    out: Path | None = None
    """The run folder; by default runs/SOURCE-HEAD-sSEED."""
    full: bool = False
    """Show all metrics, not only those with a threshold."""


@dataclass(frozen=True)
class Audit:
    """Audit an energy: that of a run, a matrix of energies in a file, or a saved energy at given points.

    Example: jepatlas energy audit runs/energy

    Example: jepatlas energy audit distances.npy --repair repaired.npy

    Example: jepatlas energy audit runs/energy/energy.safetensors --points latents.npz

    The audit tests whether the energy is a quasimetric, whether it is calibrated, and whether it detects one-way pairs.

    A file holds a square matrix, E from row to column, as `energies` or as its only array, and optionally the `points`
    of its rows and the exact `truth`. Unreachable pairs are inf.
    """

    subject: tyro.conf.Positional[Path]
    """A run folder of 'jepatlas energy fit', or a file: npy, npz, safetensors, csv or parquet."""
    points: Path | None = None
    """File with the states at which a saved energy is audited, as `points`, `h` or its only array, and optionally the
    exact `truth`. For a matrix, the states of its rows."""
    states: int = 256
    """Maximal number of states for statistics with intervals, and of points at which a saved energy is audited. The
    axioms of a matrix are checked on all states; above 2,000, the triangle inequality on drawn pairs with all middle
    states. A run has its own states."""
    tolerance: float | None = None
    """Relative rounding error that is accepted, for energies of a solver with few digits. By default it follows from
    the precision of the numbers (their type, or their decimals), and is at most 0.02."""
    repair: Path | None = None
    """Write the closure of the matrix, the largest quasimetric below it, to this file. In .npz and .safetensors, the
    other arrays of the matrix's file are kept."""
    require: bool = False
    """Exit with code 1 if a check fails."""
    full: bool = False
    """Show all metrics, not only those with a threshold."""
    seed: int = 0
    """Seed of the choice of states and triples."""
    out: Path | None = None
    """Where to save the record; by default in the run folder, and not at all for a file."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


@dataclass(frozen=True)
class Exact:
    """Compute the exact energies between all states of a world. Unreachable pairs are inf.

    Example: jepatlas energy exact one-way-grid

    Example: jepatlas energy exact current --current constant --world.current.along 0.9 --goal 0.5 0

    Grids and tables are solved by Dijkstra's algorithm, currents by an asymmetric eikonal solver, which is compared
    with a closed form or with shooting where there is one.
    """

    subject: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="WORLD")] = None
    """one-way-grid, gym (a deterministic gymnasium environment with finitely many states) or current."""
    world: EnergyWorld = field(default_factory=OneWayGrid)
    goal: tuple[float, ...] | None = None
    """A cell (row and column), the number of a state, or a point of the plane. By default an informative one."""
    resolution: int = 201
    """Nodes along each side of the box, for currents."""
    full: bool = False
    """Show all metrics, not only those with a threshold."""
    seed: int = 0
    """Seed of the choice of states that are audited and compared."""
    out: Path | None = None
    """The folder for the record, energies.npz and a picture; by default runs/exact-WORLD, for a current
    runs/exact-current-CURRENT, for gym runs/exact-gym-ENV."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def fit(args: list[str]) -> int:
    code = resume("energy fit", args, partial(_report, full=mentions(args, "full")))
    if code is not None:
        return code
    options = parse_choices(Fit(), "energy fit", args, _with_source)
    report = partial(_report, full=options.full)
    return train_and_report("energy fit", options, lambda console: _start(options, console), report)


def _with_source(word: str, options: Fit) -> Fit:
    """The options for a world or a file of steps."""
    if word in WORLDS:
        return replace(options, recipe=replace(options.recipe, source=WORLDS[word]()))
    if Path(word).is_file() or _is_episodes(Path(word)):
        return replace(options, recipe=replace(options.recipe, source=StepFile(word)))
    raise InputError(f"'{word}' is neither a file nor a world. {did_you_mean(word, WORLDS)}")


def _is_episodes(path: Path) -> bool:
    from jepatlas.data import is_episodes

    return is_episodes(path)


def _start(options: Fit, console: Console) -> tuple[Path, Outcome]:
    with defer_interrupts():
        from jepatlas.recipes import gather_experience
        from jepatlas.workflows.energy import ground_truth_of
        from jepatlas.workflows.runs import start_run

    recipe = options.recipe
    if options.kind == "least-action" and not recipe.computed:
        recipe = replace(recipe, learning=LeastActionConfig())
    default = recipe.source.kind == Fit().recipe.source.kind
    if default and options.subject is None and options.recipe_file is None:
        say_default(console, recipe.source.kind)
    if isinstance(recipe.source, StepFile):
        recipe = replace(recipe, source=recipe.source.sealed())
        # Unusable steps or truths are refused now, not after training.
        gather_experience(recipe)
        ground_truth_of(recipe)
    folder = options.out or Path("runs") / recipe.run_name
    return folder, start_run(recipe, folder, console)


def _report(console: Console, folder: Path, _: int, *, full: bool) -> Answer:
    from jepatlas.workflows.energy import evaluate_run

    record = evaluate_run(folder).record
    _show(console, record, full=full)
    say(console, f"Run: {folder}. See it with: jepatlas report {quote(str(folder))}")
    return record.to_json()


def _show(console: Console, record: Record, *, full: bool) -> None:
    say(console, record.summary)
    show_verdicts(console, record.title, record.verdicts, full=full)


def audit(args: list[str]) -> int:
    options = parse(Audit, "energy audit", args)
    if not options.subject.exists():
        raise InputError(f"There is no run folder and no file {options.subject}.")
    console = console_for(options.json)
    record = _audit_run(options) if options.subject.is_dir() else _audit_file(options)
    _show(console, record, full=options.full)
    if options.repair is not None:
        say(console, f"Repaired: {options.repair}")
    emit(options.json, {"subject": str(options.subject)} | record.to_json())
    return 1 if options.require and any(verdict.passed is False for verdict in record.verdicts) else 0


def _audit_run(options: Audit) -> Record:
    _check_no_repair(options)
    if options.points is not None:
        raise InputError("--points is for files. A run is audited at states of its own source.")
    with defer_interrupts():
        from jepatlas.workflows.energy import evaluate_run

    return evaluate_run(options.subject, seed=options.seed, out=options.out, tolerance=options.tolerance).record


def _audit_file(options: Audit) -> Record:
    with defer_interrupts():
        from jepatlas.workflows.energy import audit_file, audit_saved, is_energy_file

    sample: dict[str, Any] = {"states": options.states, "seed": options.seed, "tolerance": options.tolerance}
    if not is_energy_file(options.subject):
        record = audit_file(options.subject, points=options.points, repaired=options.repair, **sample)
    elif options.points is None:
        raise InputError(f"{options.subject} is a saved energy: give a file with the states to audit it at (--points).")
    else:
        _check_no_repair(options)
        record = audit_saved(options.subject, options.points, **sample)
    if options.out is not None:
        record.save(options.out, "audit")
    return record


def _check_no_repair(options: Audit) -> None:
    if options.repair is not None:
        raise InputError("--repair is for a matrix in a file, and this energy is not a matrix.")


def exact(args: list[str]) -> int:
    options = parse_choices(Exact(), "energy exact", args, _with_world)
    if options.subject is None:
        raise InputError(f"Name the world: {', '.join(WORLDS)}. Example: jepatlas energy exact one-way-grid")
    with defer_interrupts():
        from jepatlas.core.arrays import write_arrays
        from jepatlas.reporting.paper import paper_figure
        from jepatlas.workflows.energy import exact_record

    world = options.world
    record = exact_record(world, goal=options.goal, resolution=options.resolution, seed=options.seed)
    folder = options.out or _exact_folder(world)
    record.save(folder, "exact")
    write_arrays(folder / "energies.npz", record.arrays)
    paper_figure(record.figures, record.arrays, folder / "energies.png", record.title)
    console = console_for(options.json)
    _show(console, record, full=options.full)
    if isinstance(world, OneWayGrid) and world.width <= 40:
        say(console, world.draw())
    say(console, f"Saved in {folder}: energies.npz, energies.png. See it with: jepatlas report {quote(str(folder))}")
    emit(options.json, {"world": world.kind} | record.to_json())
    return 0


def _with_world(word: str, options: Exact) -> Exact:
    if word not in WORLDS:
        raise InputError(f"there is no world '{word}'. {did_you_mean(word, WORLDS)}")
    return replace(options, world=WORLDS[word]())


def _exact_folder(world: EnergyWorld) -> Path:
    """One folder per current and per environment, so that none is overwritten."""
    name = world.kind
    if isinstance(world, CurrentWorld):
        name = f"{world.kind}-{world.current.kind}"
    elif isinstance(world, GymTable):
        name = f"{world.kind}-{world.env.replace('/', '-')}"
    return Path("runs") / f"exact-{name}"
