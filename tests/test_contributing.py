"""Conventions of the code base: CONTRIBUTING.md points to what exists, and no export shadows a module."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "jepatlas"
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
TABLE = [line.split("|")[1:-1] for line in TEXT.splitlines() if line.startswith("| a")]
PATH = re.compile(r"`([\w/]+(?:\.\w+)?)`")


def existing(base: Path, path: str) -> list[Path]:
    """Files that a path stands for; NAME and AREA stand for any name."""
    return sorted(base.glob(re.sub(r"NAME|AREA", "*", path)))


@pytest.mark.parametrize("path", sorted({path for path in PATH.findall(TEXT) if "/" in path or path.endswith(".py")}))
def test_paths_exist(path: str):
    assert any(existing(base, path) for base in (SOURCE, ROOT, ROOT / "tests"))


def test_every_row_names_a_source_file_a_registration_and_a_test():
    assert len(TABLE) >= 15
    for _, file, registration, test in TABLE:
        assert any(existing(SOURCE, path) for path in PATH.findall(file)), file
        assert re.search(r"`\w+` in `[\w/]+\.py`", registration), registration
        assert any(existing(ROOT / "tests", path) for path in PATH.findall(test)), test


@pytest.mark.parametrize(("name", "path"), re.findall(r"`(\w+)` in `([\w/]+\.py)`", TEXT))
def test_registrations_are_defined_where_the_guide_says(name: str, path: str):
    defined = rf"^(class |def )?{name}\b"
    assert any(re.search(defined, file.read_text(), re.MULTILINE) for file in existing(SOURCE, path))


def test_the_layout_lists_all_packages_and_the_diagram_those_of_the_import_rules():
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    listed = set(re.findall(r"^  (\w+)/ ", TEXT, re.MULTILINE))
    assert listed == packages
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(rule["layers"] for rule in rules if rule["containers"] == ["jepatlas"])
    diagram = re.findall(r"\b[a-z]+\b", TEXT.split("```")[3].replace("(no torch)", ""))
    drawn = [package for layer in layers[1:] for package in layer.split(" | ")]
    assert diagram == drawn


@pytest.mark.parametrize(
    "package", sorted(path.parent for path in SOURCE.rglob("__init__.py")), ids=lambda path: path.name
)
def test_no_package_exports_a_name_of_one_of_its_modules(package: Path):
    """Otherwise `import package.name as module` would return a function."""
    modules = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    text = (package / "__init__.py").read_text()
    listed = re.search(r"__all__ = \[(.*?)\]", text, re.DOTALL)
    exported = set(re.findall(r"\w+", listed.group(1) if listed else ""))
    exported -= set(
        re.findall(rf"^    from [\w.]*{package.name} import (\w+) as \1$", text, re.MULTILINE)
    )  # a module itself
    assert not modules & exported
