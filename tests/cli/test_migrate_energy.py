"""`jepatlas migrate energy`: from paired latents and an energy of the first to one of the second."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli.calls import Captured, answer, one_array, refused
from training.small import call
from workflows.align.models import FORMATS, Models, write
from workflows.energy.tiny import saved

from jepatlas.core.linear_map import LinearMap
from jepatlas.workflows.energy import load_energy_file, save_energy
from jepatlas.workflows.energy.fitted_energy import all_pairs

MODELS = Models.draw(rows=96, noise=0.02)
IDS = np.arange(96)
ORDER = np.random.default_rng(1).permutation(96)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with two models' latents, and an energy on the first's."""
    monkeypatch.chdir(tmp_path)
    write("ada.npy", h=MODELS.a)
    write("ben.npy", h=MODELS.b)
    save_energy(saved(4), Path("door.safetensors"))
    return tmp_path


def value(found: dict, name: str) -> float:
    return next(verdict["value"] for verdict in found["verdicts"] if verdict["name"] == name)


def test_an_energy_is_migrated_audited_and_compared(capsys: Captured):
    assert call("migrate", "energy", "ada.npy", "ben.npy", "--energy", "door.safetensors", "--out", "out") == 0
    out = capsys.readouterr().out
    assert out.startswith("On ben the energy learned on ada is a quasimetric. Spearman correlation between both: 0.9")
    assert "agreement" in out and "Energy: out/energy.safetensors" in out
    moved, to_ada = load_energy_file(Path("out/energy.safetensors")), LinearMap.load("out/map.safetensors")
    here = all_pairs(saved(4).model(), to_ada.apply(MODELS.b))
    np.testing.assert_allclose(all_pairs(moved.model(), MODELS.b), here, rtol=1e-3, atol=1e-3)
    assert np.corrcoef(here.ravel(), all_pairs(saved(4).model(), MODELS.a).ravel())[0, 1] > 0.95
    record = json.loads(Path("out/records/migrate.json").read_text())
    assert (record["provenance"]["pairs fitted"], record["provenance"]["pairs held out"]) == (48, 48)
    assert "Energy of ada ported to ben" in Path("out/report.html").read_text()


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_agreement(kind: str, capsys: Captured):
    if kind == "npy":
        write("b.npy", h=MODELS.b[ORDER])
        words = ["ada.npy", "b.npy", "--ids", one_array("a.txt", IDS), one_array("b.txt", IDS[ORDER])]
    else:
        words = [write(f"a.{kind}", h=MODELS.a, ids=IDS), write(f"b.{kind}", h=MODELS.b[ORDER], ids=IDS[ORDER])]
    rest = ["--energy", "door.safetensors", "--states", "16", "--out", "out"]
    found, expected = (answer(capsys, "migrate", "energy", *two, *rest) for two in (words, ["ada.npy", "ben.npy"]))
    assert value(found, "agreement") == pytest.approx(value(expected, "agreement"), abs=1e-6)


def test_views_share_only_some_states(capsys: Captured):
    a, b = write("a.npz", h=MODELS.a[4:], ids=IDS[4:]), write("b.npz", h=MODELS.b, ids=IDS)
    rest = ["--energy", "door.safetensors", "--states", "16", "--out", "out"]
    found = answer(capsys, "migrate", "energy", a, b, *rest, "--intersect")
    assert found["provenance"]["left out of b"] == 4 and found["summary"].endswith("are left out: 0 of a, 4 of b.")


def test_migrated_energies_can_be_migrated_and_audited(capsys: Captured):
    words = ["--energy", "door.safetensors", "--states", "16", "--out", "one"]
    found = answer(capsys, "migrate", "energy", "ada.npy", "ben.npy", *words)
    assert found["energy"] == "one/energy.safetensors" and Path(found["report"]).exists()
    back = ["--energy", found["energy"], "--states", "16", "--out", "two"]
    again = answer(capsys, "migrate", "energy", "ben.npy", "ada.npy", *back)
    assert value(again, "agreement") > 0.9
    audited = answer(capsys, "energy", "audit", "two/energy.safetensors", "--points", "ada.npy", "--states", "16")
    assert "this is a quasimetric" in audited["summary"]


def test_groups_time_blocks_and_a_share(capsys: Captured):
    words = ["migrate", "energy", "ada.npy", "ben.npy", "--energy", "door.safetensors", "--states", "9", "--out", "out"]
    found = answer(capsys, *words, "--groups", one_array("groups.npy", MODELS.group), "--share", "0.25")
    assert (found["provenance"]["pairs fitted"], found["provenance"]["states"]) == (72, 9)
    found = answer(capsys, *words, "--blocks", "12", "--seed", "3", "--fit", "least-squares")
    assert found["provenance"]["seed"] == 3 and found["provenance"]["map"] == "least-squares"


def test_unrelated_models_are_reported(capsys: Captured):
    write("eve.npy", h=np.random.default_rng(9).standard_normal((96, 3)))
    assert call("migrate", "energy", "ada.npy", "eve.npy", "--energy", "door.safetensors", "--out", "out") == 0
    assert "✗ agreement with the source" in capsys.readouterr().out


BAD = [
    (["ada.npy"], "give the latents of both models, A and B, but 1 file was given"),
    (["ada.npy", "ben.npy", "ben.npy"], "but 3 files were given"),
    (["narrow.npy", "ben.npy"], "The energy takes 4 dimensions, but the latents of narrow have 2"),
    (["ada.npy", "short.npy"], "ada has 96 rows and short has 90"),
    (["ada.npy", "nan.npy"], "'nan: h' has 1 NaN"),
    (["ada.npy", "ben.npy", "--ids", "ada.npy"], "--ids takes two files"),
    (["ada.npy", "ben.npy", "--share", "1"], "must be in (0, 1)"),
    (["ada.npy", "ben.npy", "--states", "1"], "at least 2 states"),
    (["ada.npy", "ben.npy", "--energy", "ada.npy"], "ada.npy is not a saved energy"),
    (["ada.npy", "ben.npy", "--energy", "map.safetensors"], "is not a saved energy: its header does not declare one"),
    (["ada.npy", "ben.npy", "--energy", "absent.safetensors"], "absent.safetensors cannot be read"),
    (["ada.npy", "ben.npy", "--out", "ada.npy"], "Could not write ada.npy"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=lambda one: " ".join(one) if isinstance(one, list) else "")
def test_invalid_input_is_rejected(words: list[str], message: str, capsys: Captured):
    write("narrow.npy", h=MODELS.a[:, :2])
    write("short.npy", h=MODELS.b[:90])
    write("nan.npy", h=np.where(np.arange(384).reshape(96, 4) == 7, np.nan, MODELS.b))
    LinearMap(np.eye(2), np.zeros(2), np.zeros(2)).save("map.safetensors")
    words = words if "--energy" in words else [*words, "--energy", "door.safetensors"]
    assert message in refused(capsys, "migrate", "energy", *words)


def test_an_energy_must_be_named(capsys: Captured):
    assert call("migrate", "energy", "ada.npy", "ben.npy") == 2
    assert "--energy" in capsys.readouterr().err
