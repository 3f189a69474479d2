"""Are the latents of a run the world's own coordinates?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from jepatlas.runs import certify_run
from jepatlas.verbs.options import console_for, emit, parse, say, verdict_table


@dataclass(frozen=True)
class Certify:
    """Hold a run's latents against the true states of its world, on fresh samples.

    Example: jepatlas certify runs/spiral-lejepa-s0 --samples 20000
    """

    run: tyro.conf.Positional[Path]
    """A run folder."""
    samples: int = 40_000
    """Fresh pairs; half of them to fit maps, half to score them."""
    seed: int = 0
    """Which samples are drawn, split and resampled."""
    out: Path | None = None
    """Where to keep the record; by default in the run folder."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Certify, "certify", words)
    console = console_for(options.json)
    record = certify_run(options.run, samples=options.samples, seed=options.seed, out=options.out)
    console.print(verdict_table(record.title, record.verdicts))
    say(console, record.summary)
    emit(options.json, {"run": str(options.run)} | record.to_json())
    return 0
