"""`jepatlas atlas`: built, joined, shown, used; and what was damaged on its way is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.calls import Captured, answer, files, one_array, refused
from gaussian_worlds import rotation
from training.small import call
from workflows.align.models import FORMATS, write
from workflows.energy.tiny import saved

from jepatlas.alignment import LinearProbe, load_atlas, probe_for, save_atlas
from jepatlas.core.arrays import read_arrays
from jepatlas.core.files import write_json
from jepatlas.core.records import Estimate, Verdict
from jepatlas.workflows.energy import energy_for, save_energy
from jepatlas.workflows.energy.fitted_energy import all_pairs

STATES = np.random.default_rng(0).standard_normal((120, 3))
IDS = np.arange(120)
ORDER = np.random.default_rng(1).permutation(120)


def latents(seed: int) -> np.ndarray:
    return STATES @ rotation(3, seed) * (1 + seed) + seed


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with three models' latents; the rows of Ben are in another order."""
    monkeypatch.chdir(tmp_path)
    write("ada.npz", h=latents(1), ids=IDS)
    write("ben.npz", h=latents(2)[ORDER], ids=IDS[ORDER])
    write("cleo.npz", h=latents(3), ids=IDS)
    return tmp_path


@pytest.fixture
def atlas(capsys: Captured) -> Path:
    assert call("atlas", "build", "ada.npz", "ben.npz", "--out", "atlas") == 0
    capsys.readouterr()
    return Path("atlas")


def test_build_show_translate(capsys: Captured):
    built = answer(capsys, "atlas", "build", "ada.npz", "ben.npz", "cleo.npz", "--out", "atlas")
    assert [chart["name"] for chart in built["charts"]] == ["ada", "ben", "cleo"] and built["width"] == 3
    verdicts = {verdict["name"]: verdict for verdict in built["verdicts"]}
    assert verdicts["translation.ada.ben"]["low"] > 0.99 and verdicts["ada.tied"]["value"] == 3
    assert call("atlas", "show", "atlas", "--seal", built["seal"]) == 0
    out = capsys.readouterr().out
    assert "6 translations" in out and " kB" in out and built["seal"] in out
    assert call("atlas", "show", "atlas") == 0
    assert f"(seal {built['seal']})" in capsys.readouterr().out
    Path("atlas/charts/note.txt").write_text("from nobody")
    assert call("atlas", "show", "atlas") == 0
    assert "Not part of the atlas, and not checked: charts/note.txt" in capsys.readouterr().out
    Path("atlas/charts/note.txt").unlink()
    shown = answer(capsys, "atlas", "show", "atlas")
    assert shown == built  # all that was said of it travels with it
    told = answer(capsys, "atlas", "translate", "atlas", "ada", "ben", "ada.npz")
    said = told.pop("judged")
    assert told == {"out": "translated.npz", "rows": 120, "directions": 3, "passed": True}
    assert said.startswith("Held-out R² of ben from ada: 1.000 [1.000, 1.000], shuffled ")
    arrays = read_arrays("translated.npz")
    np.testing.assert_allclose(arrays["h"], latents(2), atol=1e-8)
    np.testing.assert_array_equal(arrays["ids"], IDS)


@pytest.mark.parametrize("kind", FORMATS)
def test_translations_in_every_format(kind: str, atlas: Path, capsys: Captured):
    given = {"h": latents(1)} | ({} if kind == "npy" else {"ids": IDS})
    source = write(f"new.{kind}", **given)
    assert call("atlas", "translate", atlas, "ada", "ben", source, "--out", f"told/as_ben.{kind}") == 0
    assert "120 rows from ada to ben, through 3 directions" in capsys.readouterr().out
    arrays = read_arrays(f"told/as_ben.{kind}")
    np.testing.assert_allclose(arrays["h"], latents(2), atol=1e-8)
    assert ("ids" in arrays) == (kind != "npy")


def test_adding_a_chart_leaves_the_others_unchanged(atlas: Path, capsys: Captured):
    before = files()
    found = answer(capsys, "atlas", "add", atlas, "cleo.npz", "--out", "larger")
    assert {path: data for path, data in files().items() if not path.startswith("larger")} == before
    verdicts = {verdict["name"]: verdict for verdict in found["verdicts"]}
    assert verdicts["joins.cleo"]["low"] > 0.99
    for name in ("ada", "ben"):
        file = f"charts/{name}.safetensors"
        assert Path("larger", file).read_bytes() == (atlas / file).read_bytes()
    assert call("atlas", "add", atlas, "cleo.npz") == 0  # in place
    assert load_atlas(atlas).names == ["ada", "ben", "cleo"]


def test_probes_travel_with_the_atlas(atlas: Path, capsys: Captured):
    labels = (STATES[:, 0] > 0).astype(int)
    probe = LinearProbe.fit(latents(1), labels)
    probe.save("side.safetensors")
    assert call("atlas", "add", atlas, "--probes", "ada=side.safetensors") == 0
    assert "probe side" in capsys.readouterr().out
    moved = probe_for(load_atlas(atlas), "ben", "side", source="ada")
    np.testing.assert_array_equal(moved.predict(latents(2)), probe.predict(latents(1)))
    assert "--probes takes CHART=FILE" in refused(capsys, "atlas", "add", atlas, "--probes", "side.safetensors")
    assert "no chart 'eve'" in refused(capsys, "atlas", "add", atlas, "--probes", "eve=side.safetensors")
    assert "not a saved LinearProbe" in refused(capsys, "atlas", "add", atlas, "--probes", "ada=ada.npz")


def test_energies_travel_with_the_atlas(atlas: Path, capsys: Captured):
    save_energy(saved(3), Path("door.safetensors"))
    save_energy(saved(2), Path("narrow.safetensors"))
    added = answer(capsys, "atlas", "add", atlas, "--energies", "ada=door.safetensors")
    assert [(one["kind"], one["name"]) for one in added["charts"][0]["carries"]] == [("energy", "door")]
    assert call("atlas", "show", atlas) == 0
    assert "energy door" in capsys.readouterr().out
    moved = energy_for(load_atlas(atlas), "ben", "door", source="ada")
    np.testing.assert_allclose(
        all_pairs(moved.model(), latents(2)), all_pairs(saved(3).model(), latents(1)), rtol=1e-3, atol=1e-4
    )
    words = ["atlas", "add", atlas, "--energies"]
    assert "--energies takes CHART=FILE" in refused(capsys, *words, "door.safetensors")
    assert "no chart 'eve'" in refused(capsys, *words, "eve=door.safetensors")
    assert "'ada' has 3" in refused(capsys, *words, "ada=narrow.safetensors")
    assert "ada.npz is not a saved energy" in refused(capsys, *words, "ada=ada.npz")
    assert "none.safetensors cannot be read" in refused(capsys, *words, "ada=none.safetensors")


def test_certified_charts(capsys: Captured):
    bound = Verdict.judge("bound_whitened", Estimate(0.01, 0.005, 0.02, 120), direction="lower", threshold=1, good="")
    write_json(Path("c.json"), {"verdicts": [bound.to_json()]})
    words = ["atlas", "build", "ada.npz", "ben.npz", "--certificates", "c.json", "c.json", "--out", "atlas"]
    found = answer(capsys, *words)
    assert [chart["identified"] for chart in found["charts"]] == [True, True]
    error = next(verdict for verdict in found["verdicts"] if verdict["name"] == "certified.error.ada.ben")
    assert error["passed"] and error["value"] < 1e-6
    assert "2 charts, but 1 certificates" in refused(capsys, *words[:6], "--out", "other")


def test_ids_and_groups_from_separate_files(capsys: Captured):
    plain = [write("p.npy", h=latents(1)), write("q.npy", h=latents(2)[ORDER]), write("r.npy", h=latents(3)[ORDER])]
    ids = [one_array("p.txt", IDS), one_array("q.txt", IDS[ORDER]), one_array("r.txt", IDS[ORDER])]
    groups = [one_array("pg.npy", IDS // 10), one_array("qg.npy", IDS[ORDER] // 10)]
    built = answer(capsys, "atlas", "build", *plain[:2], "--ids", *ids[:2], "--groups", *groups, "--out", "atlas")
    verdicts = {verdict["name"]: verdict for verdict in built["verdicts"]}
    assert verdicts["translation.p.q"]["low"] > 0.99
    found = answer(capsys, "atlas", "add", "atlas", plain[2], "--ids", ids[2], "--groups", groups[1])
    assert {verdict["name"]: verdict for verdict in found["verdicts"]}["joins.r"]["low"] > 0.99
    words = ["atlas", "build", *plain[:2], "--ids", ids[0], "--out", "other"]
    assert "2 charts, but 1 files of ids" in refused(capsys, *words)


def test_unrelated_charts_are_reported_first(capsys: Captured):
    write("eve.npz", h=np.random.default_rng(9).standard_normal((120, 3)), ids=IDS)
    assert call("atlas", "build", "ada.npz", "eve.npz", "--out", "apart") == 0
    assert capsys.readouterr().out.startswith("No charts translate")
    assert call("atlas", "build", "ada.npz", "ben.npz", "--out", "together") == 0
    assert capsys.readouterr().out.startswith("All 2 charts translate into each other.")


def test_a_shared_atlas_reports_unrelated_charts(capsys: Captured):
    rng = np.random.default_rng(9)
    for name in ("x", "y"):
        write(f"{name}.npz", h=rng.standard_normal((200, 8)), ids=np.arange(200))
    assert call("atlas", "build", "x.npz", "y.npz", "--out", "apart") == 0
    capsys.readouterr()
    assert call("atlas", "show", "apart") == 0
    out = capsys.readouterr().out
    assert out.startswith("No charts translate") and "✗ R² from x to y" in out
    assert "✓" not in out  # that noise ties all directions is no merit
    tied = next(one for one in answer(capsys, "atlas", "show", "apart")["verdicts"] if one["name"] == "x.tied")
    assert tied["passed"] is None and tied["value"] == tied["null"] == 8
    assert call("atlas", "translate", "apart", "x", "y", "x.npz") == 0
    out = capsys.readouterr().out
    assert "Warning: 'x' does not predict 'y'" in out and "Held-out R² of y from x: -" in out and "share:" not in out


def test_the_direction_removed_by_layer_normalisation_fails_no_check(capsys: Captured):
    """As with every vision transformer: Σ h is constant."""
    inner = np.random.default_rng(3).standard_normal((400, 8))
    for name, seed in (("x", 1), ("y", 2)):
        h = inner @ rotation(8, seed)
        write(f"{name}.npz", h=(h - h.mean(1, keepdims=True)).astype(np.float32), ids=np.arange(400))
    assert call("atlas", "build", "x.npz", "y.npz", "--out", "normed") == 0
    assert "✗ x: determined directions" not in capsys.readouterr().out
    tied = [one for one in answer(capsys, "atlas", "show", "normed")["verdicts"] if one["name"].endswith(".tied")]
    assert [(one["value"], one["null"], one["passed"]) for one in tied] == [(7, 7, None)] * 2
    assert all("final layer normalisation" in one["advice"] for one in tied)


def test_added_charts_and_verdicts_are_saved_with_the_atlas(atlas: Path, capsys: Captured):
    write("eve.npz", h=np.random.default_rng(9).standard_normal((120, 3)), ids=IDS)
    added = answer(capsys, "atlas", "add", atlas, "cleo.npz", "eve.npz")
    assert answer(capsys, "atlas", "show", atlas) == added
    names = {verdict["name"] for verdict in added["verdicts"]}
    assert {"translation.ada.ben", "joins.cleo", "joins.eve"} <= names
    assert added["summary"].startswith("All 2 charts translate into each other. cleo joined later and agrees with")
    assert "eve joined later and does not agree with its anchors (R² " in added["summary"]
    told = answer(capsys, "atlas", "translate", atlas, "cleo", "ben", "cleo.npz")
    assert told["passed"] is None and "cleo joined the frame with R² 0.999" in told["judged"]
    told = answer(capsys, "atlas", "translate", atlas, "ben", "eve", "ben.npz")
    assert told["passed"] is False and told["judged"].startswith("Warning: ")


def test_an_atlas_without_verdicts_is_not_judged(atlas: Path, capsys: Captured):
    save_atlas(replace(load_atlas(atlas), judged=None), "plain")
    reseal(atlas, lambda meta: meta.pop("verdicts"))  # as it was before they were kept
    for place in ("plain", atlas):
        assert call("atlas", "show", place) == 0
        assert capsys.readouterr().out.startswith("Not judged: this atlas has no verdicts")
        told = answer(capsys, "atlas", "translate", place, "ada", "ben", "ada.npz")
        assert told["passed"] is None and told["judged"].startswith("Not judged")


def test_a_certificate_may_be_undecided(capsys: Captured):
    bound = Verdict.judge("bound", Estimate(0.9, 0.8, 1.1, 120), direction="lower", threshold=1, good="")
    for name, passed in (("open", None), ("failed", False)):
        write_json(Path(f"{name}.json"), {"verdicts": [replace(bound, passed=passed).to_json()]})
    words = ["atlas", "build", "ada.npz", "ben.npz", "--certificates", "open.json", "failed.json", "--out", "atlas"]
    assert [chart["identified"] for chart in answer(capsys, *words)["charts"]] == [None, False]
    assert call("atlas", "show", "atlas") == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "undecided" in rows["ada"] and " no " in rows["ben"]


def test_a_chart_with_a_failed_certificate_is_not_identified(capsys: Captured):
    bound = Verdict.judge("bound", Estimate(0.01, 0.005, 0.02, 120), direction="lower", threshold=1, good="")
    for name, said in (("passed", {"passed": True}), ("open", {"passed": None}), ("failed", {"passed": False})):
        write_json(Path(f"{name}.json"), {"verdicts": [bound.to_json()], "provenance": {"latent_dim": 3}} | said)
    words = ["atlas", "build", "ada.npz", "ben.npz", "cleo.npz", "--out", "atlas", "--certificates"]
    found = answer(capsys, *words, "passed.json", "open.json", "failed.json")
    assert [chart["identified"] for chart in found["charts"]] == [True, None, False]
    assert not any(verdict["name"].startswith("certified") for verdict in found["verdicts"])
    assert call("atlas", "show", "atlas") == 0
    out = capsys.readouterr().out
    assert found["certificates"] in out and "ben (its certificate, or the bound in it, is undecided" in out
    assert "cleo (its certificate, or the bound in it, does not pass)" in out and "ada (" not in out
    write_json(Path("wide.json"), {"verdicts": [bound.to_json()], "provenance": {"latent_dim": 4}, "passed": True})
    said = refused(capsys, *words, "wide.json", "passed.json", "passed.json")
    assert "4 dimensions, but ada has 3" in said


def test_ids_among_the_columns_of_a_table(capsys: Captured):
    for name, seed, rows in (("a", 1, IDS), ("b", 2, ORDER)):
        write(f"{name}.csv", ids=rows, **{f"d{i}": column for i, column in enumerate(latents(seed)[rows].T)})
    built = answer(capsys, "atlas", "build", "a.csv", "b.csv", "--out", "atlas")
    assert built["width"] == 3 and built["summary"].startswith("All 2 charts")


def test_groups_and_a_few_states_are_enough(capsys: Captured):
    """Fewer states than dimensions are a verdict."""
    for name, seed in (("few", 1), ("small", 2)):
        write(f"{name}.npz", h=latents(seed)[:3], ids=IDS[:3])
    found = answer(capsys, "atlas", "build", "few.npz", "small.npz", "--out", "few")
    tied = next(verdict for verdict in found["verdicts"] if verdict["name"] == "few.tied")
    assert tied["passed"] is False and "share more than 3" in tied["advice"]
    for name, seed in (("a", 1), ("b", 2)):
        write(f"{name}.npz", h=latents(seed), ids=IDS, groups=IDS // 10)
    assert call("atlas", "build", "a.npz", "b.npz", "--out", "grouped") == 0


BAD = [
    (["build", "ada.npz"], "at least 2 files of latents, but 1 was given"),
    (["build", "ada.npz", "ada.npz"], "ada was given twice"),
    (["build", "ada.npz", "short.npy"], "ada has 120 rows, short has 50 rows, and not all have ids"),
    (["build", "ada.npz", "plain.npy"], "ada has ids, but plain has none: give ids for both, or for neither"),
    (["build", "ada.npz", "texts.npz"], "Some ids are numbers"),
    (
        ["build", "ada.npz", "apart.npz"],
        "No common frame: charts of (ada) and charts of (apart)",
    ),
    (["build", "ada.npz", "twice.npz"], "name 1 state more than once: 0"),
    (["build", "ada.npz", "nan.npz"], "'nan: h'"),
    (["build", "ada.npz", "lone.npz"], "at least 2 states, but 'lone' has 1"),
    (["build", "ada.npz", "ben.npz", "--anchors", "1"], "'anchors' must be at least 2, but 1 was given"),
    (["build", "ada.npz", "ben.npz", "--out", "ada.npz"], "Could not write ada.npz"),
    (["build", "ada.npz", "ben.npz", "--out", "."], "is not an atlas"),
    (["build", "ada.npz", "ben.npz", "--certificates", "ada.npz", "ben.npz"], "is not valid JSON"),
    (["add", "atlas"], "name a file of latents to add, or probes"),
    (["add", "nowhere", "cleo.npz"], "There is no folder nowhere"),
    (["add", "atlas", "ada.npz"], "ada was given twice"),
    (["add", "atlas", "apart.npz"], "'apart' has 0 of the 120 anchors"),
    (["add", "atlas", "texts.npz"], "Some ids are numbers"),
    (["show", "atlas", "--seal", "abc"], "but abc was expected"),
    (["show", "ada.npz"], "There is no folder ada.npz"),
    (["show", "."], "There is no file atlas.json"),
    (["translate", "atlas", "ada", "bne", "ada.npz"], "no chart 'bne'. Did you mean 'ben'?"),
    (["translate", "atlas", "ada", "ben", "narrow.npy"], "'ada' must have shape (n, 3), but have (120, 2)"),
    (["translate", "atlas", "ada", "ben", "ada.npz", "--out", "told.txt"], "'.txt'"),
    (["translate", "atlas", "ada", "ben", "ada.npz", "--out", "ada.npz/told.npz"], "Could not write"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=lambda one: " ".join(one) if isinstance(one, list) else "")
def test_invalid_input_is_rejected(words: list[str], message: str, atlas: Path, capsys: Captured):
    broken = latents(1)
    broken[5, 0] = np.inf
    write("nan.npz", h=broken, ids=IDS)
    write("short.npy", h=latents(1)[:50])
    write("plain.npy", h=latents(1))
    write("narrow.npy", h=latents(1)[:, :2])
    write("texts.npz", h=latents(1), ids=IDS.astype(str))
    write("apart.npz", h=latents(1), ids=IDS + 1000)
    write("twice.npz", h=latents(1), ids=np.maximum(IDS - 1, 0))
    write("lone.npz", h=latents(1)[:1], ids=IDS[:1])
    assert message in refused(capsys, "atlas", *words)


def reseal(atlas: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what the JSON says, as one would who also makes its seal anew."""
    meta = json.loads((atlas / "atlas.json").read_text())
    meta.pop("seal")
    change(meta)
    seal = hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()
    write_json(atlas / "atlas.json", meta | {"seal": seal})


def swap_bytes(atlas: Path) -> None:
    file = atlas / "charts" / "ada.safetensors"
    file.write_bytes(file.read_bytes()[:-8] + b"\1" * 8)


def point_outside(atlas: Path) -> None:
    data = Path("ada.npz").read_bytes()
    entry = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    reseal(atlas, lambda meta: meta["files"].update({"../ada.npz": entry}))


def link_outside(atlas: Path) -> None:
    file = atlas / "charts" / "ada.safetensors"
    file.rename("elsewhere.safetensors")
    file.symlink_to(Path("elsewhere.safetensors").absolute())


TAMPERED = {
    "is damaged or was changed": swap_bytes,
    "is missing, but atlas.json lists it": lambda atlas: (atlas / "anchors.safetensors").unlink(),
    "its seal does not match": lambda atlas: (atlas / "atlas.json").write_text(
        (atlas / "atlas.json").read_text().replace('"tied": 3', '"tied": 2')
    ),
    "is not valid JSON": lambda atlas: (atlas / "atlas.json").write_text("{"),
    "names the file '../ada.npz', which is not inside the folder": point_outside,
    "is a symbolic link, which is not followed": link_outside,
    "has format version 9": lambda atlas: reseal(atlas, lambda meta: meta.update(version=9)),
    "the to_frame has the shapes [(3, 3), (3,), (3,), (3,), (3,)], but [(4, 3)": lambda atlas: reseal(
        atlas, lambda meta: meta.update(width=4)
    ),
    "is not a verdict": lambda atlas: reseal(atlas, lambda meta: meta["verdicts"][0].update(passed="yes")),
    "not a saved verdict": lambda atlas: reseal(atlas, lambda meta: meta["verdicts"][0].pop("low")),
    "does not describe an atlas": lambda atlas: reseal(atlas, lambda meta: meta.pop("charts")),
}


@pytest.mark.parametrize("message", TAMPERED)
def test_damaged_or_modified_atlases_are_rejected(message: str, atlas: Path, capsys: Captured):
    TAMPERED[message](atlas)
    seen = [refused(capsys, "atlas", "show", atlas), refused(capsys, "atlas", "add", atlas, "cleo.npz")]
    seen.append(refused(capsys, "atlas", "translate", atlas, "ada", "ben", "ada.npz"))
    assert all(message in one for one in seen)
