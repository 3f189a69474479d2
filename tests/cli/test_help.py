"""`--help` of every command: exit code 0, nothing slow is imported, and options and positionals stand in any order."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import pytest
import tyro
from training.small import ENV

import jepatlas.cli
from jepatlas.cli import COMMANDS, GROUPS, run_command
from jepatlas.cli.align import Align
from jepatlas.cli.encode import Encode
from jepatlas.cli.options import RecipeFile, parse_choices
from jepatlas.cli.plan import Plan
from jepatlas.cli.sweep import Sweep
from jepatlas.cli.train import Train
from jepatlas.core.config import choices
from jepatlas.core.errors import InputError
from jepatlas.nn import MLPConfig
from jepatlas.objectives import VICRegConfig
from jepatlas.recipes import AnyActionWorld, Predictive, TwoFrames, WalkedWorld, WorldModelRecipe, recipe_text
from jepatlas.worlds import JetCurrent, Maze

SLOW = ("torch", "numba", "sklearn", "scipy.stats", "matplotlib", "plotly", "gymnasium")


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPS])
def test_help_imports_nothing_slow(command: str, tmp_path: Path):
    code = (
        "import sys\nfrom jepatlas.cli import main\n"
        "try:\n    code = main(sys.argv[1:])\nexcept SystemExit as error:\n    code = error.code\n"
        f"print(*sorted(set({SLOW}) & set(sys.modules)), file=sys.stderr)\nsys.exit(code)"
    )
    words = [sys.executable, "-c", code, *command.split(), "--help"]
    done = subprocess.run(words, env=ENV, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.split()) == (0, [])
    assert f"Example: jepatlas {command}" in done.stdout
    assert not list(tmp_path.iterdir())


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as done:
        run_command([*command.split(), "--help"])
    assert done.value.code == 0
    return capsys.readouterr().out


def groups_of(text: str) -> dict[str, list[str]]:
    """The options of each group of a help, by its title."""
    groups: dict[str, list[str]] = {}
    for title, body in re.findall(r"^(\w[\w. ]*):\n((?:  .*\n)+)", text, re.MULTILINE):
        groups[title] = re.findall(r"^  --([\w.-]+)", body, re.MULTILINE)
    return groups


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_few_options_and_groups_the_others(command: str, capsys: pytest.CaptureFixture[str]):
    text = help_of(command, capsys)
    groups = groups_of(text)
    assert 1 <= len(groups["options"]) <= 12
    listed = [option for options in groups.values() for option in options]
    assert len(listed) == len(set(listed)) and "json" in listed
    assert "{None}" not in text and "(default: None)" not in text


LONG = [("train", Train), ("sweep", Sweep), ("align", Align), ("encode", Encode), ("plan", Plan)]


@pytest.mark.parametrize(("command", "options"), LONG)
def test_the_most_used_options_come_first(command: str, options: Any, capsys: pytest.CaptureFixture[str]):
    assert groups_of(help_of(command, capsys))["options"] == options.most_used.split()


def test_every_verb_is_in_one_section_of_the_help():
    assert sorted(itertools.chain(*jepatlas.cli.SECTIONS.values())) == sorted(jepatlas.cli.VERBS)


@pytest.mark.parametrize("path", sorted(Path(jepatlas.cli.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_imports_inside_functions_exist(path: Path):
    """They are carried out only when a command runs."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("jepatlas"):
            module = importlib.import_module(str(node.module))
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@dataclass(frozen=True)
class Options(RecipeFile):
    subject: tyro.conf.Positional[str | None] = None
    recipe: Annotated[WorldModelRecipe, tyro.conf.arg(name="")] = field(default_factory=WorldModelRecipe)
    out: str = "here"


def with_world(word: str, options: Options) -> Options:
    worlds = choices(AnyActionWorld)
    if word not in worlds:
        raise InputError(f"no world {word}")
    return replace(options, recipe=replace(options.recipe, source=WalkedWorld(worlds[word]())))


def parsed(*args: str) -> Options:
    return parse_choices(Options(), "test", args, with_world)


def test_options_and_positionals_come_in_any_order():
    groups = [
        ["maze"],
        ["--current", "jet"],
        ["--source.world.current.speed=0.5"],
        ["--energy", "energy"],
        ["--head", "mrn"],
        ["--out", "rooms"],  # the value of an option, although it names a world
    ]
    orders = [groups[start:] + groups[:start] for start in range(len(groups))] + [groups[::-1]]
    options, *others = [parsed(*itertools.chain(*order)) for order in orders]
    assert all(other == options for other in others)
    assert (options.subject, options.out) == ("maze", "rooms")
    source, model = options.recipe.source, options.recipe.model
    assert isinstance(source, WalkedWorld) and isinstance(model, Predictive) and model.energy is not None
    assert isinstance(source.world, Maze) and isinstance(source.world.current, JetCurrent)
    assert source.world.current.speed == 0.5 and model.energy.head.kind == "mrn"


def test_options_change_a_given_recipe(tmp_path: Path):
    saved = WorldModelRecipe(seed=3, model=TwoFrames(VICRegConfig(covariance=2.0)), encoder=MLPConfig(7))
    (tmp_path / "recipe.yaml").write_text(recipe_text(saved))
    words = ("--recipe", str(tmp_path / "recipe.yaml"))
    assert parsed(*words).recipe == parsed(*words, "--objective", "vicreg").recipe == saved
    assert parsed("--latent-dim", "5", *words).recipe == replace(saved, latent_dim=5)
    assert parsed("--objective", "lejepa", *words).recipe == replace(saved, model=TwoFrames())


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["moze"], "moze"),
        (["--current", "jett"], "'jet'"),
        (["--curent", "jet"], "--current"),
        (["maze", "--source.world.cell", "4"], "--source.world.cells"),
        (["maze", "--source.world.reach", "far"], "--source.world.reach"),
        (["--out"], "--out"),
    ],
)
def test_mistakes_are_named(args: list[str], named: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises((InputError, SystemExit)) as refusal:
        parsed(*args)
    text = str(refusal.value) if isinstance(refusal.value, InputError) else capsys.readouterr().err
    assert named in text
