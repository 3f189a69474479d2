"""The command line. A verb's module is imported only when that verb is called, so `jepatlas --help` answers at once."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jepatlas import __version__
from jepatlas.core.errors import InputError, did_you_mean

__all__ = ["main"]

BROKEN_PIPE = 128 + 13  # as a shell reports a process that SIGPIPE ended

VERBS = {
    "tour": "a guided run: two agents, one world, the map between them (three minutes)",
    "train": "train an agent, a world model, or an agent on images; or resume one",
    "collect": "episodes of a world, or of any gymnasium environment, in one file",
    "encode": "the latents of an agent on images, as align and migrate take them",
    "certify": "are the latents of a run the world's own coordinates?",
    "align": "can one model's latents be translated into another's?",
    "migrate": "carry a probe, an energy or a planner to another model; teach an agent, or two each other",
    "atlas": "many models in one frame: build, add, show, translate",
    "federate": "one atlas with agents of others who show no data, through a folder between you",
    "energy": "how far is it, and can one get back? fit, audit, exact",
    "plan": "what to do now: an agent drives to goals, and how often it gets there",
    "report": "one page that shows what was run and what came out",
    "sweep": "train and certify many recipes at once",
    "reproduce": "a claim of a paper, tested: what was claimed, what comes out here",
    "doctor": "versions, devices, extras, and a five-second self-test",
}

HELP = f"""jepatlas {__version__}: trust, translate and plan with joint-embedding predictive world models

usage: jepatlas VERB [options]     (jepatlas VERB --help explains a verb and gives an example)

{chr(10).join(f"  {verb:9} {line}" for verb, line in VERBS.items())}

Every verb takes --json PATH (- for standard output, where nothing else is printed then) and --debug (show the traceback
of an error); those that write files --out, those that draw by chance --seed. Exit codes: 0 done, 1 a run or check
failed, 2 bad input, 130 interrupted, 141 whoever read the output has seen enough and left.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if not words or words[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0
    if words[0] in ("-V", "--version"):
        print(__version__)
        return 0
    try:
        code = _run(words[0], words[1:])
        sys.stdout.flush()  # here, where a closed pipe has its own exit code
        return code
    except BrokenPipeError:  # the reader, such as `head`, has seen enough: no failed check
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the last flush would fail as well
        return BROKEN_PIPE
    except (InputError, OSError) as error:
        if debug:
            traceback.print_exc()
        if os.environ.get("RANK", "0") == "0":  # under torchrun every process fails alike: one of them speaks
            print(f"jepatlas {words[0]}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"jepatlas {words[0]}: interrupted.", file=sys.stderr)
        return 130


def _run(verb: str, words: list[str]) -> int:
    if verb not in VERBS:
        raise InputError(f"there is no such verb. {did_you_mean(verb, VERBS)}")
    with _ctrl_c_waits():
        module = importlib.import_module(f"jepatlas.cli.{verb}")
    return module.main(words)


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Until all is imported: libraries that are interrupted while they load fail in ways of their own."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
