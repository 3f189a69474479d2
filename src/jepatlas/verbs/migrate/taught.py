"""What the verbs that train agents in company say at the end, and leave behind."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from jepatlas.base.distributed import leads
from jepatlas.social import graduate, judge_latents
from jepatlas.training import Outcome
from jepatlas.verbs.options import console_for, emit, say
from jepatlas.verbs.train import CODES

__all__ = ["finish"]


def finish(folder: Path, outcome: Outcome, verb: str, json: str | None) -> int:
    """Agents of a finished run become runs of their own; their latents are judged like those of any agent."""
    if not leads():
        return CODES[outcome.status]
    console = console_for(json)
    verdicts = [outcome.verdict] if outcome.verdict else []
    agents: dict[str, Path] = {}
    if outcome.status == "interrupted":
        say(console, f"Saved after step {outcome.step}. Go on with: jepatlas {verb} --resume {quote(str(folder))}")
    elif outcome.verdict is not None:
        console.print(f"[red]{outcome.verdict.advice}", highlight=False)
    else:
        agents = graduate(folder)
        for name, place in agents.items():
            record = judge_latents(place)
            verdicts += record.verdicts
            say(console, f"{name}: {record.summary} Next: jepatlas encode {quote(str(place))}")
    answer = {"run": str(folder), "status": outcome.status, "step": outcome.step}
    answer |= {"agents": {name: str(place) for name, place in agents.items()}}
    emit(json, answer | {"verdicts": [verdict.to_json() for verdict in verdicts]})
    return CODES[outcome.status]
