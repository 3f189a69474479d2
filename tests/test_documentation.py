"""README and docs run as they are written: Python blocks and lines with `$ jepatlas`, from top to bottom."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import pickle
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.benchmark_page import benchmarks_page
from docutils import nodes
from forked import forked_script

import jepatlas as ja
from jepatlas.core.files import read_json
from jepatlas.core.verdict_names import plain_name

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\w+\.py)\n")  # a block that the reader saves under this name
LINK = re.compile(r"\]\(([^)#\s]+)")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each block of code."""
    return BLOCK.findall(page.read_text())


def commands(block: str) -> list[str]:
    lines = block.replace(" \\\n", " ").splitlines()
    return [line.removeprefix("$ jepatlas ") for line in lines if line.startswith("$ jepatlas ")]


def script_of(page: Path) -> str:
    """What a reader of the page would run, in one process, which loads torch once; empty if there is nothing to run."""
    parts = []
    for language, block in blocks(page):
        file = FILE.match(block)
        if file:
            parts.append(f"__import__('pathlib').Path({file[1]!r}).write_text({block!r})")
        elif language == "python":
            parts.append(block)
        elif language == "console":
            parts += [f"assert main({shlex.split(command)!r}) == 0, {command!r}" for command in commands(block)]
    return "\n".join(["from jepatlas.cli import main", *parts]) if parts else ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != README and script_of(page)], ids=lambda page: page.stem
)
def test_a_page_runs_as_it_is_written(page: Path, tmp_path: Path) -> None:
    process = forked_script(script_of(page), cwd=tmp_path)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, f"{out}\n{err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_in_blocks_that_are_not_run_exist(page: Path) -> None:
    for language, block in blocks(page):
        for imported in ast.walk(ast.parse(block if language == "py" else "")):
            if isinstance(imported, ast.ImportFrom) and str(imported.module).startswith("jepatlas"):
                module = importlib.import_module(str(imported.module))
                assert not [name.name for name in imported.names if not hasattr(module, name.name)]
            if isinstance(imported, ast.Attribute) and getattr(imported.value, "id", "") == "ja":
                assert hasattr(ja, imported.attr)


@pytest.mark.slow
def test_the_documentation_builds_without_warnings(tmp_path: Path) -> None:
    """Everything is read and resolved, and nothing is written."""
    words = ("-b", "dummy", "--fail-on-warning", "--quiet", "--doctree-dir", tmp_path / "trees", DOCS, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    reference = pickle.loads((tmp_path / "trees" / "reference" / "api.doctree").read_bytes())
    shown = [block.astext() for block in reference.findall(nodes.literal_block)]
    assert any("certificate = ja.certify(" in block for block in shown)  # code in docstrings keeps its lines


def test_the_example_of_the_readme_prints_what_is_shown() -> None:
    (example,) = [block for language, block in blocks(README) if language == "python"]
    (shown,) = [block for language, block in blocks(README) if language == "text"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    assert printed.getvalue() == shown


def test_the_readme_is_short_and_opens_with_the_two_commands() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= 120
    assert "make tour" in text[:1500] and "make test" in text[:1500]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.stem)
def test_links_lead_to_files(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def listed_names() -> set[str]:
    page = (DOCS / "reference" / "verdicts.md").read_text()
    return {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`([^`]+)`", line)}


def produced_names() -> Iterator[str]:
    rng = np.random.default_rng(0)
    z, step, noise = rng.standard_normal((3, 400, 2))
    z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * step
    yield from (verdict.name for verdict in ja.certify(z, z_next, z, rho=0.9).verdicts)
    yield from (verdict.name for verdict in ja.align(z, z + noise, raw=(z, noise), permutations=19).verdicts)
    yield from (verdict.name for verdict in ja.audit(np.abs(z[:30, :1] - z[:30, 0]), z[:30]).verdicts)


def test_the_names_of_verdicts_are_explained() -> None:
    listed = listed_names()
    families = (r"_whitened$", r"_common$", r"_target$", r"^degree_", r"^nos_")
    unknown = []
    for name in produced_names():
        if name not in listed and not any(re.search(family, name) for family in families):
            unknown.append(name)
    assert unknown == []


def test_verdicts_have_plain_names() -> None:
    assert {name for name in produced_names() if plain_name(name) == name} <= {"asymmetry"}


def test_the_findings_state_the_published_outcomes() -> None:
    page = (DOCS / "explanation" / "findings.md").read_text()
    stated = re.findall(r"^\| [^|]+ \| `([\w-]+)[^`|]*` \| ([^|]+) \|$", page, re.MULTILINE)
    assert len(stated) >= 10
    published = {name: json.loads((DOCS / "results" / f"{name}.json").read_text()) for name, _ in stated}
    assert dict(stated) == {name: record["about"]["outcome"] for name, record in published.items()}


def test_the_benchmarks_page_is_what_was_measured() -> None:
    page = DOCS / "benchmarks.md"
    assert page.read_text() == benchmarks_page(read_json(page.with_suffix(".json")))
