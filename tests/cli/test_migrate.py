"""`jepatlas migrate probe`: with latents and labels, or through a saved map alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli.calls import Captured, answer, one_array, refused
from training.small import call
from workflows.align.models import FORMATS, Models, write

from jepatlas.alignment import METRICS, Evidence, LinearProbe, Null, migrate
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate
from jepatlas.workflows.align import fit_map
from jepatlas.workflows.align.migrate_probe import map_verdict

MODELS = Models.draw(rows=96)
IDS = np.arange(96)
ORDER = np.random.default_rng(1).permutation(96)
SIDE = (MODELS.label == "right").astype(int)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with two models' latents, labels, a probe of the first and a map to the second."""
    monkeypatch.chdir(tmp_path)
    write("ada.npy", h=MODELS.a)
    write("ben.npy", h=MODELS.b)
    one_array("labels.npy", MODELS.label)
    LinearProbe.fit(MODELS.a, MODELS.label).save("side.safetensors")
    fit_map("least-squares", MODELS.a, MODELS.b).map_.save("map.safetensors")
    return tmp_path


def value(found: dict, name: str) -> float:
    return next(verdict["value"] for verdict in found["verdicts"] if verdict["name"] == name)


def test_a_probe_is_trained_migrated_and_scored(capsys: Captured):
    groups = one_array("groups.npy", MODELS.group)
    words = ["migrate", "probe", "ada.npy", "ben.npy", "--labels", "labels.npy", "--groups", groups, "--out", "out"]
    assert call(*words) == 0
    out = capsys.readouterr().out
    assert (
        "The migrated probe has accuracy" in out
        and "lost against training" in out
        and "accuracy without the map" in out
    )
    probe = LinearProbe.load("out/probe.safetensors")
    assert np.mean(probe.predict(MODELS.b) == MODELS.label) > 0.8
    source = LinearProbe.load("out/source_probe.safetensors")
    assert np.mean(source.predict(MODELS.a) == MODELS.label) > 0.8 and "out/source_probe.safetensors" in out
    through = LinearMap.load("out/map.safetensors")
    back = LinearMap.load("out/back.safetensors")
    np.testing.assert_allclose(source.logits(back.apply(MODELS.b)), probe.logits(MODELS.b))
    assert call(*words, "--through", "inverse") == 0 and not Path("out/back.safetensors").exists()
    inverted = LinearProbe.load("out/probe.safetensors")
    np.testing.assert_allclose(migrate(source, through, limit=100).logits(MODELS.b), inverted.logits(MODELS.b))
    assert LinearMap.load("out/map.safetensors").weight.shape == (4, 4)
    assert json.loads(Path("out/records/migrate.json").read_text())["provenance"]["pairs held out"] == 48
    assert "A probe of ada, migrated to ben" in Path("out/report.html").read_text()


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_accuracies(kind: str, capsys: Captured):
    if kind == "npy":
        write("b.npy", h=MODELS.b[ORDER])
        ids = one_array("a.txt", IDS), one_array("b.txt", IDS[ORDER])
        words = ["ada.npy", "b.npy", "--ids", *ids, "--labels", one_array("side.npy", SIDE)]
    else:
        words = [
            write(f"a.{kind}", h=MODELS.a, ids=IDS, labels=SIDE),
            write(f"b.{kind}", h=MODELS.b[ORDER], ids=IDS[ORDER]),
        ]
    found = answer(capsys, "migrate", "probe", *words, "--out", "out")
    expected = answer(capsys, "migrate", "probe", "ada.npy", "ben.npy", "--labels", "labels.npy", "--out", "other")
    for name in ("probe_source", "probe_migrated", "probe_target", "probe_price"):
        assert value(found, name) == value(expected, name)


def test_views_share_only_some_states(capsys: Captured):
    a, b = write("a.npz", h=MODELS.a, ids=IDS, labels=SIDE), write("b.npz", h=MODELS.b[:90], ids=IDS[:90])
    assert "6 ids of a are missing in b" in refused(capsys, "migrate", "probe", a, b)
    found = answer(capsys, "migrate", "probe", a, b, "--intersect", "--out", "out")
    told = found["provenance"]
    assert told["pairs fitted"] + told["rows the probe was trained on"] + told["pairs held out"] == 90
    assert told["left out of a"] == 6 and found["summary"].endswith("are left out: 6 of a, 0 of b.")


def test_through_a_saved_map_without_latents(capsys: Captured):
    words = ["migrate", "probe", "--probe", "side.safetensors", "--map", "map.safetensors", "--out", "out"]
    found = answer(capsys, *words)
    assert (found["carried"], found["width"], found["probe"]) == (4, 4, "out/probe.safetensors")
    expected = migrate(LinearProbe.load("side.safetensors"), LinearMap.load("map.safetensors"))
    np.testing.assert_allclose(LinearProbe.load("out/probe.safetensors").logits(MODELS.b), expected.logits(MODELS.b))
    assert call(*words) == 0
    assert "The map carries 4 of 4 directions" in capsys.readouterr().out


def test_a_saved_probe_and_map_are_scored_on_latents(capsys: Captured):
    words = ["ada.npy", "ben.npy", "--labels", "labels.npy", "--probe", "side.safetensors", "--map", "map.safetensors"]
    found = answer(capsys, "migrate", "probe", *words, "--out", "out")
    assert value(found, "probe_migrated") > 0.8 and found["provenance"]["pairs fitted"] == 0
    assert "may have been fitted on these rows" in found["summary"] and "all 96 rows" in found["summary"]
    assert Path("out/map.safetensors").read_bytes() == Path("map.safetensors").read_bytes()


def test_unrelated_models_write_no_probe(capsys: Captured):
    write("eve.npy", h=np.random.default_rng(9).standard_normal((96, 4)))
    words = ["migrate", "probe", "ada.npy", "eve.npy", "--labels", "labels.npy", "--out", "out", "--json", "-"]
    assert call(*words) == 1
    out, err = capsys.readouterr()
    said = " ".join(err.split())
    assert json.loads(out)["probe"] is None and "Traceback" not in said
    assert "the map predicts eve from ada no better than chance" in said
    assert "No probe is written" in said and not Path("out").exists()


def test_probes_no_better_than_the_majority_class_are_not_written(capsys: Captured):
    """Of a target that does not vary, the migrated probe says one class always."""
    write("flat.npy", h=np.ones((96, 4)))
    assert call("migrate", "probe", "ada.npy", "flat.npy", "--labels", "labels.npy", "--out", "out", "--json", "-") == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["probe"] is None and not Path("out").exists()
    said = " ".join(err.split())
    assert "no better than predicting the majority class" in said and "No probe is written." in said


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_a_map_of_one_group_is_fitted(seed: str, capsys: Captured):
    """Of four groups two are held out, and one is left for the probe and one for the map."""
    groups = one_array("groups.npy", np.arange(96) * 4 // 96)
    words = ["ada.npy", "ben.npy", "--labels", "labels.npy", "--groups", groups, "--seed", seed]
    assert value(answer(capsys, "migrate", "probe", *words), "probe_migrated") > 0.65


def test_a_map_worse_than_the_mean_does_not_pass():
    """Two models that see nothing in common but their scale: shuffled pairs are worse still, and that is no praise."""
    null = Null(-0.2, -1.2, 0.3, 0.01, 3.0, -0.7, 99, "higher")
    for value, passed in ((-0.2, False), (0.2, True)):
        found = map_verdict(Evidence(METRICS["r2"], Estimate(value, value - 1, value + 0.5, 50), null))
        assert found.passed is passed and found.threshold is None and found.name == "map_r2"
        assert ("worse than predicting the target's mean" in found.advice) is not passed


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_that_the_files_mark_score_the_probe(capsys: Captured, grouped: bool):
    """Probe and map share the others; with one of them given, the other has them all."""
    groups, held = np.arange(96) // 8, np.arange(96) // 8 >= 8
    write("ada.npz", h=MODELS.a, labels=MODELS.label, held=held, **({"groups": groups} if grouped else {}))
    found = answer(capsys, "migrate", "probe", "ada.npz", "ben.npy", "--out", "out")["provenance"]
    assert found["pairs held out"] == 32 and found["held out"] == "as the files mark"
    assert found["pairs fitted"] + found["rows the probe was trained on"] == 64
    words = ["--probe", "side.safetensors", "--out", "given"]
    assert answer(capsys, "migrate", "probe", "ada.npz", "ben.npy", *words)["provenance"]["pairs fitted"] == 64


def test_time_blocks_and_a_share(capsys: Captured):
    words = ["ada.npy", "ben.npy", "--labels", "labels.npy", "--blocks", "12", "--share", "0.25", "--out", "out"]
    found = answer(capsys, "migrate", "probe", *words)
    assert (found["provenance"]["pairs fitted"], found["provenance"]["pairs held out"]) == (36, 24)
    assert value(found, "pairs_beyond_dimensions") == 32


@pytest.mark.parametrize("seed", ["0", "1"])
def test_grouped_rows_score_every_class(seed: str, capsys: Captured):
    """Three objects of each class but one: split without a look at the labels, the probe would lack some of them."""
    rng = np.random.default_rng(0)
    groups = np.repeat(
        [f"{kind}{number}" for kind in ("car", "cup", "lamp", "mug") for number in range(3)] + ["tree0"], 8
    )
    labels = np.array([name[:-1] for name in groups])
    h = np.eye(5)[np.unique(labels, return_inverse=True)[1]] + 0.1 * rng.standard_normal((104, 5))
    a = write("a.npz", h=h, labels=labels, groups=groups)
    b = write("b.npz", h=h @ rng.standard_normal((5, 5)))
    found = answer(capsys, "migrate", "probe", a, b, "--seed", seed, "--out", "out")
    assert LinearProbe.load("out/probe.safetensors").classes.tolist() == ["car", "cup", "lamp", "mug", "tree"]
    assert value(found, "probe_migrated") > 0.9
    assert "not scored" not in found["summary"]  # of the one tree there is nothing to hold out


BAD = [
    ([], "give paired latents of two models, or a saved --probe and a saved --map"),
    (["--probe", "side.safetensors"], "or a saved --probe and a saved --map"),
    (["ada.npy"], "give the latents of both models, A and B, but 1 file was given"),
    (["ada.npy", "ben.npy"], "ada has no labels, so no probe can be scored. Give them with --labels"),
    (["ada.npy", "ben.npy", "--labels", "same.npy"], "only one class (left)"),
    (["ada.npy", "ben.npy", "--labels", "few.npy"], "there are 96 latents, but 90 rows of labels"),
    (["ada.npy", "ben.npy", "--labels", "fractions.npy"], "these are fractions"),
    (["ada.npy", "ben.npy", "--labels", "holes.npy"], "labels of the rows to train a probe on are NaN"),
    (["ada.npy", "short.npy", "--labels", "labels.npy"], "ada has 96 rows and short has 90"),
    (["ada.npy", "ben.npy", "--labels", "labels.npy", "--ids", "labels.npy"], "--ids takes two files"),
    (["ada.npy", "ben.npy", "--labels", "labels.npy", "--groups", "same.npy"], "at least 2 groups"),
    (["ada.npy", "ben.npy", "--labels", "labels.npy", "--limit", "1"], "must be above 1, but 1.0 was given"),
    (["ada.npy", "ben.npy", "--labels", "labels.npy", "--probe", "map.safetensors"], "is not a saved LinearProbe"),
    (["ada.npy", "ben.npy", "--labels", "labels.npy", "--map", "side.safetensors"], "is not a saved LinearMap"),
    (["ada.npy", "ben.npy", "--labels", "other.npy", "--probe", "side.safetensors"], "labels ['up']"),
    (["narrow.npy", "ben.npy", "--labels", "labels.npy", "--probe", "side.safetensors"], "reads 4 dimensions, but the"),
    (["wide.npy", "ben.npy", "--labels", "labels.npy", "--map", "map.safetensors"], "The map goes from 4 to 4 dim"),
    (["ada.npy", "flat.npy", "--labels", "labels.npy", "--through", "inverse"], "carries 0 of the 4 directions"),
    (
        ["ada.npy", "ben.npy", "--labels", "labels.npy", "--map", "map.safetensors", "--through", "backwards"],
        "--through backwards",
    ),
    (
        ["--probe", "side.safetensors", "--map", "map.safetensors", "--through", "backwards"],
        "--through backwards",
    ),
    (["ada.npy", "ben.npy", "--labels", "labels.npy", "--out", "ada.npy"], "Could not write ada.npy"),
    (["--probe", "absent.safetensors", "--map", "map.safetensors"], "absent.safetensors is not a saved LinearProbe"),
    (["--probe", "side.safetensors", "--map", "absent.safetensors"], "absent.safetensors"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=lambda one: " ".join(one) if isinstance(one, list) else "")
def test_invalid_input_is_rejected(words: list[str], message: str, capsys: Captured):
    write("short.npy", h=MODELS.b[:90])
    write("narrow.npy", h=MODELS.a[:, :2])
    write("wide.npy", h=np.hstack([MODELS.a, MODELS.a]))
    write("flat.npy", h=np.ones((96, 4)))
    holes = np.where(IDS % 2 == 0, np.nan, SIDE)
    labels = {
        "same": np.full(96, "left"),
        "few": MODELS.label[:90],
        "fractions": MODELS.a[:, 0],
        "holes": holes,
        "other": np.where(IDS == 5, "up", MODELS.label),
    }
    for name, array in labels.items():
        one_array(f"{name}.npy", array)
    assert message in refused(capsys, "migrate", "probe", *words)


def test_the_answer_comes_first_with_its_interval(capsys: Captured):
    one_array("random.npy", np.random.default_rng(3).permutation(SIDE))
    for labels, works in (("labels.npy", True), ("random.npy", False)):
        words = ["migrate", "probe", "ada.npy", "ben.npy", "--labels", labels, "--out", "out", "--json", "-"]
        assert call(*words) in ((0,) if works else (0, 1))
        found = json.loads(capsys.readouterr().out)
        assert found["summary"].startswith("The migrated probe works") == works
        limits = re.search(r"percentage points \[([+-][\d.]+), ([+-][\d.]+)\]", found["summary"])
        assert limits is not None
        low, high = map(float, limits.groups())
        assert (low > 0) == works and low < high
        bars = found["figures"][0]
        assert bars["kind"] == "bars" and "majority class" in bars["names"]
