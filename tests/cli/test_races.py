"""Two commands that write one place at once: nothing is lost, and the loser names the winner."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jepatlas.alignment import Atlas, ChartLatents, load_atlas, save_atlas
from jepatlas.core.arrays import write_arrays
from jepatlas.core.files import read_json
from jepatlas.recipes import any_recipe


def race(*commands: list[str]) -> list[tuple[int, str]]:
    """Start the commands together; the exit code and the errors of each."""
    processes = [
        subprocess.Popen([sys.executable, "-m", "jepatlas", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        for words in commands
    ]
    found = []
    for process in processes:
        _, errors = process.communicate()
        found.append((process.returncode, errors.decode()))
    return found


def assert_refused(errors: str) -> None:
    assert re.search(r"process \d+ on|already contains a run", errors), errors
    assert "Traceback" not in errors


@pytest.mark.slow
def test_two_additions_to_an_atlas(tmp_path: Path):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((200, 3))
    for name in ("ada", "ben", "cleo", "dora"):
        write_arrays(tmp_path / f"{name}.npz", {"h": z @ rng.standard_normal((3, 3)), "ids": np.arange(200)})
    charts = [ChartLatents(name, z @ rng.standard_normal((3, 3)), ids=np.arange(200)) for name in ("ada", "ben")]
    save_atlas(Atlas.build(charts), tmp_path / "atlas")
    newcomers = ("cleo", "dora")
    results = race(*(["atlas", "add", str(tmp_path / "atlas"), str(tmp_path / f"{name}.npz")] for name in newcomers))
    added = []
    for name, (code, errors) in zip(newcomers, results, strict=True):
        if code == 0:
            added.append(name)
        else:
            assert code == 2
            assert_refused(errors)
    assert added and set(load_atlas(tmp_path / "atlas").names) == {"ada", "ben", *added}


@pytest.mark.slow
def test_two_trainings_in_one_folder(tmp_path: Path):
    out = tmp_path / "run"
    words = ["train", "--steps", "30", "--batch-size", "32", "--out", str(out)]
    results = race(*([*words, "--seed", str(seed)] for seed in (1, 2)))
    winners = [seed for seed, (code, _) in zip((1, 2), results, strict=True) if code in (0, 1)]
    assert len(winners) == 1
    loser = results[2 - winners[0]]
    assert loser[0] == 2
    assert_refused(loser[1])
    assert any_recipe(out).seed == winners[0]
    assert read_json(out / "records" / "outcome.json")["provenance"]["seed"] == winners[0]
