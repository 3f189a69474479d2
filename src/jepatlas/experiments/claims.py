"""The claims page: for every experiment what a paper says, what it offers for it, and what came out here.

It is written from the published records alone, so that no number on it was typed by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jepatlas.core.files import read_json
from jepatlas.experiments.reproduce import UNFINISHED, UNKEPT

__all__ = ["SYMBOLS", "claims_page", "read_results"]

SYMBOLS = {"holds": "✓", "holds in part": "◐", "does not hold": "✗", "undecided": "?", "measured": "≈"}

HEAD = """# Claims, and what became of them

What the papers say of joint-embedding predictive models, tested here. This page is made from the records in
`docs/results` by `jepatlas reproduce NAME --publish docs`; nothing in it is written by hand. A claim *holds* when the
rule that its experiment names is met, *holds in part* when some of it is, and *does not hold* otherwise; a question
that a paper leaves open is *measured*. All scores are held out; runs that failed or collapsed are counted and kept.
Brackets after a mean over seeds hold the lowest and the highest seed, and elsewhere a 95% interval.
"""


def read_results(folder: Path) -> list[dict[str, Any]]:
    return [read_json(path) for path in sorted(folder.glob("*.json"))]


def claims_page(records: Sequence[Mapping[str, Any]], order: Sequence[str]) -> str:
    """The page in Markdown, experiments in the given order."""
    known = {record["about"]["name"]: record for record in records}
    chosen = [known[name] for name in order if name in known]
    waiting = [name for name in order if name not in known]
    lines, shown = [HEAD, *_overview(chosen), *_waiting(waiting)], dict[str, str]()
    for record in chosen:
        lines += _section(record, shown)
    return "\n".join(lines)


def _overview(records: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        f"| [{about['name']}](#{about['name']}) | {about['claim']['statement']} "
        f"| {_offered(about['claim'])} | {SYMBOLS[about['outcome']]} {about['outcome']} |"
        for about in (record["about"] for record in records)
    ]
    return ["| experiment | claim | the paper offers | here |", "|---|---|---|---|", *rows, ""]


def _waiting(names: Sequence[str]) -> list[str]:
    return [f"There, but not run at this scale yet: {', '.join(names)}.", ""] if names else []


def _offered(claim: Mapping[str, str]) -> str:
    return ", ".join(kind for kind in ("proven", "assumed", "measured") if claim[kind]) or "stated"


def _section(record: Mapping[str, Any], shown: dict[str, str]) -> list[str]:
    """`shown` says under which experiment a run that did not finish was listed already."""
    about, made = record["about"], record["provenance"]
    claim = about["claim"]
    offers = [f"- {kind.capitalize()}: {claim[kind]}" for kind in ("proven", "assumed", "measured") if claim[kind]]
    failed = f", of which {about['failed']} did not finish" if about["failed"] else ""
    return [
        f"({about['name']})=",
        f"## {record['title']}",
        "",
        f"**Claim.** {claim['statement']} ({claim['source']})",
        "",
        *offers,
        "",
        f"**Here: {about['outcome']}.** {about['sentence']}",
        "",
        *([f"![{record['title']}](results/{about['name']}.png)", ""] if record["figures"] else []),
        *(line for table in record["tables"] for line in _table(table, about["name"], shown)),
        f"`jepatlas reproduce {about['name']} --scale {about['scale']} --seed {made['seed']}`: "
        f"{about['runs']} runs{failed}; {made.get('trials', UNKEPT)}; concluded by jepatlas {made['version']} at "
        f"commit {made['commit'] or 'unknown'}.",
        "",
    ]


def _table(table: Mapping[str, Any], name: str, shown: dict[str, str]) -> list[str]:
    if table["title"] == UNFINISHED:
        return _unfinished(table, name, shown)
    return [f"{table['title']}:", "", *_rows(table["columns"], table["rows"]), ""]


def _unfinished(table: Mapping[str, Any], name: str, shown: dict[str, str]) -> list[str]:
    """Experiments share runs: each that did not finish is listed once on the page."""
    elsewhere = Counter(shown[run] for run, *_ in table["rows"] if run in shown)
    rows = [row for row in table["rows"] if row[0] not in shown]
    shown |= {row[0]: name for row in rows}
    lines = [f"{table['title']}:", "", *_rows(table["columns"], rows), ""] if rows else []
    said = [
        f"{count} runs that did not finish are listed under [{other}](#{other})." for other, count in elsewhere.items()
    ]
    return [*lines, *said, *([""] if said else [])]


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    return ["| " + " | ".join(map(_cell, line)) + " |" for line in (columns, ["---"] * len(columns), *rows)]


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
