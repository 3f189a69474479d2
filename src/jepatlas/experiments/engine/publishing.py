"""Publish records to the documentation, and write the claims page from them.

The page is written from the published records alone, so no number on it is typed by hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, write_bytes, write_json
from jepatlas.core.records import Estimate, Record
from jepatlas.experiments.engine.running import UNKNOWN_CODE, public_record
from jepatlas.experiments.engine.scene_images import IMAGE_FOLDER_VARIABLE
from jepatlas.experiments.engine.seed_tables import cell

__all__ = [
    "SYMBOLS",
    "check_publishable",
    "claims_page",
    "last_record",
    "publish",
    "read_results",
    "shipped_results",
]

SYMBOLS = {"holds": "✓", "holds in part": "◐", "does not hold": "✗", "undecided": "?", "measured": "≈"}
PAPERS = {  # part of a paper's title: short name
    "Social-JEPA": "Social-JEPA",
    "Intrinsic-Energy": "Intrinsic-energy JEPA",
    "LeJEPA Learn": "LeJEPA world model",
    "Goal-Reaching": "Quasimetric RL",
    "Value-Guided Action": "Value-guided planning",
}

HEAD = """# Claims and outcomes

Claims of papers on joint-embedding predictive models, each tested by an experiment. This page is generated from the
records in `docs/results` by `jepatlas reproduce NAME --publish docs`.

A claim *holds* if all criteria of its experiment are met, *holds in part* if some are, and *does not hold* otherwise.
It is *undecided* if the trials cannot tell. An open question of a paper is *measured*. All scores are held out. Runs
that failed or collapsed are counted. The full records contain the criteria, all tables and the confidence intervals.
"""


def publish(record: Record, out: Path, docs: Path) -> None:
    """Copy a record without its arrays, and its figure, to DOCS/results."""
    check_publishable(record.about["scale"], record.about.get("left out", ()))
    name = record.about["name"]
    public = public_record(record)
    write_json(docs / "results" / f"{name}.json", public.to_json())
    if public.figures:
        drawn = out / record.about["scale"] / "figures" / f"{name}.png"
        write_bytes(docs / "results" / f"{name}.png", drawn.read_bytes())


def check_publishable(scale: str, without: Sequence[str] = ()) -> None:
    """Raise InputError for a tiny run and for a run that left out scenes."""
    if scale == "tiny":
        raise InputError("--publish: tiny runs do not test the claim. Use --scale small or paper.")
    if without:
        raise InputError(
            f"--publish: a record is published only if all scenes were run, but images are missing for "
            f"{', '.join(without)}. Set {IMAGE_FOLDER_VARIABLE} to a folder that contains them, or omit --publish."
        )


def shipped_results() -> Path:
    """The published records: inside an installed package, or in the docs of a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "results"
    return inside if inside.is_dir() else package.parents[2] / "docs" / "results"


def read_results(folder: Path) -> list[dict[str, Any]]:
    return [read_json(path) for path in sorted(folder.glob("*.json"))]


def last_record(name: str, out: Path) -> dict[str, Any] | None:
    """The user's own record of an experiment at the largest scale; if there is none, the published one.

    Records of which no trial finished (for example because data were missing) are skipped.
    """
    own = [out / scale / "records" / f"{name}.json" for scale in ("paper", "small")]
    for path in [*own, shipped_results() / f"{name}.json"]:
        if not path.is_file():
            continue
        record = read_json(path)
        if record["about"]["failed"] < record["about"]["runs"]:
            return record
    return None


def claims_page(records: Sequence[Mapping[str, Any]], order: Sequence[str]) -> str:
    """The claims page in Markdown, experiments in the given order."""
    known = {record["about"]["name"]: record for record in records}
    chosen = [known[name] for name in order if name in known]
    waiting = [name for name in order if name not in known]
    lines = [HEAD, *_overview(chosen)]
    if waiting:
        lines += [f"Not run yet: {', '.join(waiting)}.", ""]
    for record in chosen:
        lines += _section(record)
    return "\n".join(lines)


def _overview(records: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["| claim | paper | outcome | main number |", "|---|---|---|---|"]
    for record in records:
        about = record["about"]
        cells = [
            f"[{about['name']}](#{about['name']}): {record['title']}",
            _paper(about["claim"]["source"]),
            f"{SYMBOLS[about['outcome']]} {about['outcome']}",
            main_number(record),
        ]
        escaped = [one.replace("|", "\\|") for one in cells]
        lines.append("| " + " | ".join(escaped) + " |")
    return [*lines, ""]


def _paper(source: str) -> str:
    """Short name of the paper that a source names first."""
    found = {
        source.index(part): name for part, name in PAPERS.items() if part.lower() in source.lower() and part in source
    }
    return found[min(found)] if found else source.split(",", maxsplit=1)[0]


def main_number(record: Mapping[str, Any]) -> str:
    """The short sentence of a record; if it has none, its first verdict."""
    about = record["about"]
    if about.get("short"):
        return about["short"]
    if not record["verdicts"]:
        return about["outcome"]
    first = record["verdicts"][0]
    found = Estimate(float(first["value"]), float(first["low"]), float(first["high"]), first["n"])
    return f"{first['name'].replace('_', ' ')}: {cell(found)}"


def _section(record: Mapping[str, Any]) -> list[str]:
    about = record["about"]
    made = record["provenance"]
    claim = about["claim"]
    name = about["name"]
    lines = [f"({name})=", f"## {record['title']}", ""]
    lines += [f"**Claim.** {claim['statement']} *({claim['source']})*", ""]
    if claim["measured"]:
        lines += [f"**Published.** {_capitalised(claim['measured'])}.", ""]
    failed = f", {about['failed']} of which did not finish" if about["failed"] else ""
    result = f"{SYMBOLS[about['outcome']]} {_capitalised(about['outcome'])}: {main_number(record).rstrip('.')}."
    lines += [f"**Result.** {result} {about['runs']} runs{failed}.", ""]
    if record["figures"]:
        lines += [f"![{record['title']}](results/{name}.png)", ""]
    command = f"`jepatlas reproduce {name} --scale {about['scale']} --seed {made['seed']}`"
    lines += [f"[Full record](results/{name}.json), by {command}; {made.get('trials', UNKNOWN_CODE)}.", ""]
    return lines


def _capitalised(text: str) -> str:
    """The text with its first letter in upper case and without a full stop at its end."""
    return re.sub(r"^[a-z]", lambda first: first[0].upper(), text.rstrip("."))
