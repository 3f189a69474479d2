"""The command line. The module of a command is imported only when the command is called."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from jepatlas import __version__
from jepatlas.core.errors import InputError, did_you_mean

__all__ = ["COMMANDS", "VERBS", "main", "run_command"]

BROKEN_PIPE = 128 + 13  # what a shell reports for a process that SIGPIPE ended


@dataclass(frozen=True)
class Command:
    """A command, and the function `jepatlas.cli.<module>.<function>(args) -> exit code` that runs it."""

    module: str
    function: str
    summary: str


COMMANDS = {
    "tour": Command("tour", "main", "guided run: two agents, one world, the map between them (three minutes)"),
    "train": Command("train", "main", "train an agent on a world with known truth, or resume a run"),
    "train world-model": Command("train_world_model", "main", "train a world model on episodes"),
    "train vision": Command("train_vision", "main", "train an agent on images"),
    "collect": Command("collect", "main", "write episodes of a world or a gymnasium environment to a file"),
    "encode": Command("encode", "main", "write the latents of images, videos, texts or episodes, by any model"),
    "export": Command("export", "main", "write a trained encoder as ONNX or as a torch.export program"),
    "certify": Command("certify", "main", "test whether latents are the world's own coordinates"),
    "align": Command("align", "main", "test whether one model's latents can be translated into another's"),
    "migrate probe": Command(
        "migrate_maps", "probe", "a linear probe, through the map between two models; no training"
    ),
    "migrate energy": Command("migrate_maps", "energy", "an energy on latents, through the map; no training"),
    "migrate planner": Command(
        "migrate_maps", "planner", "the planner of a world model, to another camera; no training"
    ),
    "migrate model": Command("migrate_agents", "model", "train a student with the latents of a teacher"),
    "migrate mutual": Command("migrate_agents", "mutual", "train two agents that teach each other"),
    "atlas build": Command("atlas", "build", "put two or more models into one common frame"),
    "atlas add": Command("atlas", "add", "add a model, probes or energies, without changing the other models"),
    "atlas show": Command("atlas", "show", "check an atlas and list its models, probes and energies"),
    "atlas translate": Command("atlas", "translate", "translate latents of one model into another's coordinates"),
    "federate": Command("federate", "main", "build an atlas with other people's agents, without sharing data"),
    "energy fit": Command("energy", "fit", "learn an energy from steps of a world, of episodes, or on any latents"),
    "energy audit": Command("energy", "audit", "check that an energy is a quasimetric, and compare it with the truth"),
    "energy exact": Command("energy", "exact", "compute the exact energies of a world"),
    "plan": Command("plan", "main", "drive to goals by planning in a world model, and measure the success rate"),
    "report": Command("report", "main", "one HTML page with the results of runs"),
    "sweep": Command("sweep", "main", "train and certify a grid of recipes"),
    "sweep vision": Command("sweep", "vision", "train a grid of agents on images"),
    "reproduce": Command("reproduce", "main", "test published claims, and compare with the published numbers"),
    "completion": Command("completion", "main", "print a script that completes commands and options in a shell"),
    "doctor": Command("doctor", "main", "versions, devices, extras, and a five-second self-test"),
}

TRAINING = ("train", "train world-model", "train vision", "migrate model", "sweep", "sweep vision", "energy fit")
"""Commands whose recipes have an option --threads."""
WIDE = ("encode",)
"""Commands that run large networks, which use all cores unless --threads or OMP_NUM_THREADS limits them."""

GROUPS = {
    "migrate": "move a probe, an energy or a planner to another model, or teach an agent",
    "atlas": "many models in one frame: build, add, show, translate",
    "energy": "energies, the least cost of going from one state to another: fit, audit, exact",
}
"""Verbs that only have sub-commands."""

EXAMPLES = {
    "migrate": "migrate probe ada.npz ben.npz --labels labels.npy",
    "atlas": "atlas build ada.npz ben.npz cleo.npz --out atlas",
    "energy": "energy fit one-way-grid --head iqe --out runs/energy",
}

VERBS = {
    verb: GROUPS.get(verb) or COMMANDS[verb].summary for verb in dict.fromkeys(name.split()[0] for name in COMMANDS)
}

SECTIONS = {
    "Start": ("tour", "doctor", "completion"),
    "Latents of any model": ("encode", "certify", "align", "migrate", "atlas", "federate"),
    "Training": ("train", "sweep", "export"),
    "Energies and planning": ("collect", "energy", "plan"),
    "Results": ("report", "reproduce"),
}
"""The verbs by what they are for, as the help lists them."""


def _verb_list() -> str:
    parts = []
    for title, verbs in SECTIONS.items():
        lines = [f"  {verb:11} {VERBS[verb]}" for verb in verbs]
        parts.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join(parts)


HELP = f"""jepatlas {__version__}: trust, translate and plan with joint-embedding predictive world models

usage: jepatlas VERB [options]     (jepatlas VERB --help explains a verb and gives an example)

{_verb_list()}

Examples:
  jepatlas tour
  jepatlas certify h.npy h_next.npy
  jepatlas align ada.npy ben.npy

All commands take --json PATH (- for standard output, where nothing else is printed then), --debug (show the traceback
of an error), --trust (import the user-defined classes that a recipe names) and --threads N (CPU threads: by default
one, which costs least, or OMP_NUM_THREADS). Commands that write files take --out, and randomised commands take --seed.

Exit codes: 0 success, 1 a run or check failed, 2 invalid input, 130 interrupted, 141 output pipe closed.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0
    if args[0] in ("-V", "--version"):
        print(__version__)
        return 0
    name = args[0]
    debug = False
    try:
        from jepatlas.cli.options import parse_global
        from jepatlas.core.plugins import trusting

        options, args = parse_global(args)
        debug = options.debug
        args = _limit_threads(args)
        name = _named_command(args) or name
        with trusting(options.trust), _long_loops_shown():
            code = run_command(args)
        sys.stdout.flush()  # here, where a closed pipe has its own exit code
        return code
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe; this is not a failed check
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the final flush would fail again
        return BROKEN_PIPE
    except (InputError, OSError) as error:
        if debug:
            traceback.print_exc()
        if os.environ.get("RANK", "0") == "0":  # with torchrun all processes fail alike: only one reports it
            print(f"jepatlas {name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"jepatlas {name}: interrupted.", file=sys.stderr)
        return 130


def _long_loops_shown() -> AbstractContextManager[None]:
    """Progress bars on standard error, if that is a terminal and help is not all that is asked for."""
    if not sys.stderr.isatty() or {"-h", "--help"} & set(sys.argv):
        return nullcontext()
    from rich.console import Console

    from jepatlas.cli.output import loops_shown

    return loops_shown(Console(stderr=True))


def _limit_threads(args: list[str]) -> list[str]:
    """Set the threads of linear algebra, by `--threads` or to one, before numpy and torch are imported.

    Threads of OpenBLAS wait actively, so that on busy cores more of them cost up to 75 times the CPU time of one (see
    `limited_threads`). OMP_NUM_THREADS is respected. Commands that train also pass `--threads` to torch.
    """
    places = [place for place, word in enumerate(args) if word == "--threads" or word.startswith("--threads=")]
    command = _named_command(args)
    given = ""
    if places:
        words = args[places[-1]].partition("=")[2:] if "=" in args[places[-1]] else args[places[-1] + 1 :][:1]
        given = words[0] if words else ""
        if not given.isdecimal() or int(given) < 1:
            raise InputError(f"--threads must be a number of at least 1, but is '{given}'.")
        if command not in TRAINING:
            args = args[: places[-1]] + args[places[-1] + (1 if "=" in args[places[-1]] else 2) :]
        os.environ["JEPATLAS_THREADS"] = given
    if "numpy" in sys.modules or (not given and (command in WIDE or "OMP_NUM_THREADS" in os.environ)):
        return args
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = given or "1"
    return args


def run_command(args: Sequence[str]) -> int:
    """Run the command that the first one or two words name, with the remaining words as its arguments."""
    name = _named_command(args)
    if name in COMMANDS:
        command = COMMANDS[name]
        module = importlib.import_module(f"jepatlas.cli.{command.module}")
        return getattr(module, command.function)(list(args[len(name.split()) :]))
    verb = args[0]
    if verb not in GROUPS:
        raise InputError(f"there is no such verb. {did_you_mean(verb, VERBS)}")
    summaries = {name.split()[1]: one.summary for name, one in COMMANDS.items() if name.startswith(f"{verb} ")}
    if len(args) == 1 or args[1] in ("-h", "--help"):
        print(_group_help(verb, summaries), end="")
        return 0
    raise InputError(f"there is no command '{args[1]}'. {did_you_mean(args[1], summaries)}")


def _named_command(args: Sequence[str]) -> str:
    """The command of one or two words that comes first, or else the first word."""
    longer = " ".join(args[:2])
    return longer if longer in COMMANDS else " ".join(args[:1])


def _group_help(verb: str, summaries: dict[str, str]) -> str:
    lines = "\n".join(f"  {name:10} {summary}" for name, summary in summaries.items())
    return f"""usage: jepatlas {verb} COMMAND [options]     (jepatlas {verb} COMMAND --help explains a command)

{lines}

Example: jepatlas {EXAMPLES[verb]}

All commands take --json PATH (- for standard output). Commands that write files take --out, and randomised commands
take --seed.
"""
