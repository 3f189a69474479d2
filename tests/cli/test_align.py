"""`jepatlas align`: from files to a map, a record and a page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli.calls import Captured, answer, one_array, refused
from training.small import call
from workflows.align.models import FORMATS, Models, matched, write

from jepatlas.alignment import Latents, split_rows
from jepatlas.core.linear import r2
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.seeding import numpy_generator
from jepatlas.workflows.align import Study, align, fit_map, match
from jepatlas.workflows.align.align_figures import projections

MODELS = Models.draw(rows=64)
IDS = np.array([f"s{i}" for i in range(64)])
ORDER = np.random.default_rng(1).permutation(64)
QUICK = ["--permutations", "19", "--out", "out"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with two models' latents."""
    monkeypatch.chdir(tmp_path)
    write("ada.npy", h=MODELS.a)
    write("ben.npy", h=MODELS.b)
    return tmp_path


def value(found: dict, name: str) -> float:
    return next(verdict["value"] for verdict in [*found["metrics"], *found["verdicts"]] if verdict["name"] == name)


def test_two_files_give_a_map_a_record_and_a_page(capsys: Captured):
    assert call("align", "ada.npy", "ben.npy", *QUICK) == 0
    out, err = capsys.readouterr()
    assert out.startswith("A linear map predicts ben from ada with held-out R² 0.9")
    assert err == "measuring: 121 rounds\n"  # there is no terminal, so no bar
    assert "shuffled" in out and "↑ linear R² r2" in out and "--full" in out
    assert len(out.splitlines()) <= 25
    assert r2(MODELS.b, LinearMap.load("out/map.safetensors").apply(MODELS.a)) > 0.9
    record = json.loads(Path("out/records/align.json").read_text())
    assert record["title"] == "ada → ben" and record["provenance"]["map"] == "ridge"
    page = Path("out/report.html").read_text()
    assert "ingular values" in page and "ontrols" in page
    assert "mutual_knn" not in out and "mutual_knn" not in page and "orthogonality" not in out
    assert call("align", "ada.npy", "ben.npy", *QUICK, "--full") == 0
    out = capsys.readouterr().out.replace("\n", "")
    assert all(name in out for name in ("mutual_knn", "distance from a rotation", "latent directions", "reflection"))


@pytest.fixture(scope="module")
def expected() -> float:
    """Held-out R² of rows that are in the same order."""
    both = match(Latents("ada", MODELS.a), Latents("ben", MODELS.b))
    split = split_rows(64, numpy_generator(0, "align split"))
    return align(both, "ridge", Study(split, permutations=2)).evidence["r2"].estimate.value


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_numbers(kind: str, capsys: Captured, expected: float):
    """Rows of B are in another order, and its ids say which."""
    ids = np.arange(64)
    if kind == "npy":
        write("b.npy", h=MODELS.b[ORDER])
        words = ["ada.npy", "b.npy", "--ids", one_array("a_ids.txt", IDS), one_array("b_ids.npy", IDS[ORDER])]
    else:
        words = [write(f"a.{kind}", h=MODELS.a, ids=ids), write(f"b.{kind}", h=MODELS.b[ORDER], ids=ids[ORDER])]
    found = answer(capsys, "align", *words, *QUICK)
    assert value(found, "r2") == pytest.approx(expected, abs=1e-12)
    assert found["map"] == "out/map.safetensors" and Path(found["report"]).exists()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["ids", "groups", "labels"])
def test_columns_that_describe_rows_are_not_latents(kind: str, name: str, capsys: Captured):
    """Strangers who share nothing but the numbers of their rows."""
    rng = np.random.default_rng(4)
    about = np.arange(64) if name == "ids" else np.arange(64) // 8
    paths = [Path(f"{one}.{kind}") for one in ("x", "y")]
    for path in paths:
        write(path, **{name: about}, **{f"d{i}": column for i, column in enumerate(rng.standard_normal((3, 64)))})
    found = answer(capsys, "align", *paths, *QUICK)
    assert found["summary"].startswith("Nothing is aligned")


def test_id_columns_pair_the_rows(capsys: Captured, expected: float):
    for path, rows, h in (("a.csv", np.arange(64), MODELS.a), ("b.csv", ORDER, MODELS.b)):
        write(path, ids=rows, **{f"d{i}": column for i, column in enumerate(h[rows].T)})
    found = answer(capsys, "align", "a.csv", "b.csv", *QUICK)
    assert value(found, "r2") == pytest.approx(expected, abs=1e-9)


def test_groups_labels_layers_and_raw_inputs(capsys: Captured):
    layers = {"layer0": MODELS.a[:, :2], "layer1": MODELS.a}
    write("a.npz", **layers)
    write("b.npz", h=MODELS.b, **layers)
    groups, labels = one_array("groups.csv", MODELS.group), one_array("labels.parquet", MODELS.label)
    raw = one_array("raw.npy", MODELS.raw)
    words = ["--groups", groups, "--labels", labels, "--raw-a", raw, "--raw-b", raw]
    assert call("align", "a.npz", "b.npz", *words, *QUICK) == 0
    out = capsys.readouterr().out
    assert "PCA of raw input" in out and "random network" in out and "swapped groups" in out
    record = json.loads(Path("out/records/align.json").read_text())
    kinds = [figure["kind"] for figure in record["figures"]]
    assert kinds == ["images", "scatter", "curves", "curves", "heatmap"], (
        "raw inputs of 6 × 5 numbers are shown as images"
    )
    assert record["figures"][1]["panels"][0]["color"] == "label"
    names = {verdict["name"] for verdict in record["verdicts"]}
    assert {"r2_beyond_pca", "r2_beyond_untrained"} <= names
    assert record["provenance"]["pairs fitted"] == 32  # four of eight groups


def test_untrained_latents_are_read_and_follow_their_ids(capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    """B's rows lie in another order, and a state of each is missing in the other."""
    monkeypatch.setenv("COLUMNS", "80")
    write("a.npz", h=MODELS.a[1:], ids=IDS[1:], untrained=MODELS.a[1:])
    rows = ORDER[ORDER != 5]
    write("b.npz", h=MODELS.b[rows], ids=IDS[rows], untrained=MODELS.b[rows])
    assert call("align", "a.npz", "b.npz", *QUICK, "--intersect") == 0
    out, err = capsys.readouterr()
    assert "untrained networks" in out and "…" not in out and err == "measuring: 242 rounds\n"
    record = json.loads(Path("out/records/align.json").read_text())
    models, before = record["tables"][1]["rows"]
    assert models[1:] == before[1:], "the rows of both are the same, so that all numbers are"


def test_time_blocks(capsys: Captured):
    found = answer(capsys, "align", "ada.npy", "ben.npy", "--blocks", "8", *QUICK)
    assert value(found, "r2") > 0.9 and found["provenance"]["pairs fitted"] == 32


def test_too_few_permutations_or_shifts_leave_the_result_undecided(capsys: Captured):
    found = answer(capsys, "align", "ada.npy", "ben.npy", "--permutations", "4", "--out", "out")
    assert found["summary"].startswith("Undecided") and found["verdicts"][0]["passed"] is None
    rng = np.random.default_rng(0)
    paths = [write(f"{name}.npy", h=np.cumsum(rng.standard_normal((600, 2)), axis=0)) for name in "xy"]
    assert call("align", *paths, "--blocks", "100", "--rows", "60", "--out", "out") == 0
    out = capsys.readouterr().out
    assert out.startswith("Undecided") and "at least 20" in out and "shifted pairs" in out


def test_a_report_shows_one_alignment(capsys: Captured):
    """An older stress record of other files goes, but not before there is something new."""
    assert call("align", "ada.npy", "ben.npy", *QUICK) == 0
    stale = [Path("out/records/stress.json"), Path("out/records/stress.npz")]
    stale[0].write_text(json.dumps({"title": "What the map of others withstands"}))
    stale[1].write_bytes(b"")
    other = Path("out/records/mine.json")
    other.write_text(json.dumps({"title": "Not written by this verb"}))
    capsys.readouterr()
    refused(capsys, "align", "ada.npy", "absent.npy", *QUICK)  # checks that all files stay
    assert call("align", "ben.npy", "ada.npy", *QUICK) == 0
    assert not any(path.exists() for path in stale) and other.exists()
    page = Path("out/report.html").read_text()
    assert "of others withstands" not in page and "ben → ada" in page


def test_a_share_is_held_out(capsys: Captured):
    found = answer(capsys, "align", "ada.npy", "ben.npy", "--share", "0.25", *QUICK)
    assert (found["provenance"]["pairs fitted"], found["provenance"]["pairs held out"]) == (48, 16)


def test_output_is_not_truncated_at_80_columns(capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert call("align", "ada.npy", "ben.npy", *QUICK, "--full") == 0
    out = capsys.readouterr().out
    assert "…" not in out and "↑ * debiased CKA" in out and "* in the source's coordinates" in out
    lines = out.splitlines()
    count = next(line for line in lines if line.strip().startswith("pairs minus dimensions"))
    assert "28 " in count and "28.0" not in count and " kB): out/map.safetensors" in out


def test_json_in_a_file(capsys: Captured):
    assert call("align", "ada.npy", "ben.npy", *QUICK, "--map", "robust", "--seed", "5", "--json", "kept/a.json") == 0
    assert "↑ linear R²" in capsys.readouterr().out
    kept = json.loads(Path("kept/a.json").read_text())
    assert kept["provenance"]["seed"] == 5 and "distrusted" in {verdict["name"] for verdict in kept["verdicts"]}


def test_unrelated_models_are_a_result_not_an_error(capsys: Captured):
    write("eve.npy", h=np.random.default_rng(9).standard_normal((64, 100)))
    found = answer(capsys, "align", "eve.npy", "ben.npy", *QUICK, "--full")
    assert found["summary"].startswith("Nothing is aligned")
    assert value(found, "pairs_beyond_dimensions") == 32 - 100
    assert value(found, "nos_50") == "nan"  # of 32 held-out rows
    write("flat.npy", h=np.ones((64, 2)))
    assert call("align", "ada.npy", "flat.npy", *QUICK) == 0
    assert "✗ constant target dimensions: " in capsys.readouterr().out


def test_rows_that_the_files_mark_are_held_out(capsys: Captured):
    """Of a row that either model has learned from, nothing is scored."""
    marks, other = np.arange(64) >= 32, np.arange(64) >= 24
    write("ada.npz", h=MODELS.a, held=marks)
    for kind in ("npz", "csv"):
        write(f"ben.{kind}", h=MODELS.b, held=other)
        found = answer(capsys, "align", "ada.npz", f"ben.{kind}", *QUICK)
        assert found["provenance"]["pairs fitted"] == found["provenance"]["pairs held out"] == 32
        through = fit_map("ridge", MODELS.a[~marks], MODELS.b[~marks]).map_
        assert value(found, "r2") == pytest.approx(r2(MODELS.b[marks], through.apply(MODELS.a[marks])))
    found = answer(capsys, "align", "ada.npz", "ben.npz", "--share", "0.25", *QUICK)  # another split is asked for
    assert found["provenance"]["pairs held out"] == 16


MARKS = np.arange(64) % 2 == 0


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"held": np.ones(64, bool)}, "64 of 64 rows"),
        ({"held": np.zeros(64, int)}, "0 of 64 rows"),
        ({"held": MARKS, "groups": np.arange(64) // 2}, "'0'"),
        ({"held": np.where(MARKS, 2, 0)}, "must be true or false (or 1 and 0) in each row, but row 0 has '2'"),
        ({"held": MARKS[:3]}, "there are 64 latents, but 3 rows of held"),
    ],
)
def test_unusable_held_out_marks_are_rejected(capsys: Captured, arrays: dict, message: str):
    write("ada.npz", h=MODELS.a, **arrays)
    assert message in refused(capsys, "align", "ada.npz", "ben.npy", *QUICK)


def test_views_are_aligned_on_their_shared_states(capsys: Captured):
    """Raw inputs, groups and ids of all rows are given; those of shared states are used."""
    files = [
        write("a.npz", h=MODELS.a[:60], ids=IDS[:60], groups=MODELS.group[:60]),
        write("b.npz", h=MODELS.b[ORDER[2:]], ids=IDS[ORDER[2:]]),
    ]
    kept = np.setdiff1d(np.arange(60), ORDER[:2])
    assert "--intersect" in refused(capsys, "align", *files)
    assert call("align", *files, *QUICK, "--intersect") == 0
    said = f"{60 - len(kept)} of a, {62 - len(kept)} of b."
    assert said in capsys.readouterr().out
    record = json.loads(Path("out/records/align.json").read_text())
    told = record["provenance"]
    assert said in record["summary"] and (told["left out of a"], told["left out of b"]) == (
        60 - len(kept),
        62 - len(kept),
    )
    assert told["pairs fitted"] + told["pairs held out"] == len(kept)
    assert "share 4 of their 60 and 4 states" in refused(
        capsys, "align", files[0], write("few.npz", h=MODELS.b[:4], ids=IDS[:4]), "--intersect"
    )


def test_measures_that_could_not_be_computed_have_a_reason(capsys: Captured):
    for name, h in (("a", MODELS.a), ("b", MODELS.b)):
        write(f"{name}.npy", h=h[:36])
    assert call("align", "a.npy", "b.npy", *QUICK) == 0
    out = capsys.readouterr().out
    assert "· nos_10_target: " in out and "at least 22 rows" in out


BAD = [
    (["ada.npy", "short.npy"], "ada has 64 rows and short has 60"),
    (["ada.npy", "nan.npy"], "row 3"),
    (["ada.npy", "absent.npy"], "There is no file absent.npy"),
    (["ada.npy", "ben.txt"], "'.txt'"),
    (["ada.npy", "broken.npz"], "broken.npz could not be read"),
    (["ada.npy", "pickled.npy"], "pickled.npy holds Python objects"),
    (["ada.npy", "ben.npy", "--ids", "ids.npy"], "--ids takes two files, of A and of B, but 1 was given"),
    (["ada.npy", "ben.npy", "--ids", "ids.npy", "other.npy"], "1 id of a is missing in b: s0"),
    (["ada.npy", "ben.npy", "--ids", "ids.npy", "twice.npy"], "1 id occurs more than once in b: s1"),
    (["ada.npy", "ben.npy", "--ids", "ids.npy", "few.npy"], "there are 64 latents, but 60 rows of ids"),
    (["ada.npy", "with_ids.npz"], "with_ids has ids, but ada has none"),
    (["misspelt.csv", "misspelt.csv"], "'ids'"),
    (["ada.npy", "ben.npy", "--groups", "few.npy"], "there are 64 latents, but 60 rows of groups"),
    (["ada.npy", "ben.npy", "--groups", "ids.npy", "--blocks", "4"], "by groups or by time blocks, not by both"),
    (["ada.npy", "ben.npy", "--groups", "same.npy"], "at least 2 groups"),
    (["ada.npy", "ben.npy", "--blocks", "0"], "at least 1 row, but 0 was given"),
    (["ada.npy", "ben.npy", "--blocks", "100"], "at least 2 groups of samples, but there is only 1"),
    (["ada.npy", "ben.npy", "--blocks", "31"], "too few"),
    (["ada.npy", "ben.npy", "--raw-a", "ids.npy"], "give --raw-a and --raw-b"),
    (["ada.npy", "ben.npy", "--raw-a", "ben.npy", "--raw-b", "short.npy"], "64 latents, but 60 rows of raw"),
    (["ada.npy", "ben.npy", "--raw-a", "ben.npy", "--raw-b", "nan.npy"], "'raw'"),
    (["ada.npy", "ben.npy", "--permutations", "1"], "at least 2, but 1 was given"),
    (["ada.npy", "ben.npy", "--share", "1"], "but 1.0 was given"),
    (["ada.npy", "ben.npy", "--rows", "6"], "6 held-out rows in 6 groups are too few"),
    (["tiny.npy", "tiny.npy"], "3 held-out rows in 3 groups are too few"),
    (["ada.npy", "ben.npy", "--map", "cubic"], "--map"),
    (["ada.npy", "ben.npy", "--out", "ids.npy"], "Could not write ids.npy"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=lambda one: " ".join(one) if isinstance(one, list) else "")
def test_invalid_input_is_rejected(words: list[str], message: str, capsys: Captured):
    broken = MODELS.b.copy()
    broken[3, 1] = np.nan
    write("nan.npy", h=broken)
    write("short.npy", h=MODELS.b[:60])
    write("tiny.npy", h=MODELS.a[:6])
    write("with_ids.npz", h=MODELS.b, ids=IDS)
    write("misspelt.csv", ID=np.arange(64), d0=MODELS.a[:, 0])
    other = np.array(["new", *IDS[1:]])
    for name, ids in {"ids": IDS, "other": other, "few": IDS[:60], "same": np.ones(64), "twice": other}.items():
        one_array(f"{name}.npy", np.where(ids == "new", "s1", ids) if name == "twice" else ids)
    Path("broken.npz").write_bytes(b"PK\x03\x04 and no more")
    np.save("pickled.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    quick = QUICK[:2] if {"--out", "--permutations"} & set(words) else QUICK
    words = [*quick, *words] if "--permutations" not in words else words
    assert message in refused(capsys, "align", *words)


@pytest.mark.slow
def test_independent_gaussians_are_not_aligned(capsys: Captured):
    rng = np.random.default_rng(0)
    paths = [write(f"{name}.npy", h=rng.standard_normal((500, 384))) for name in "xy"]
    found = answer(capsys, "align", *paths, "--permutations", "19", "--out", "out")
    assert found["summary"].startswith("Nothing is aligned: a linear map predicts y from x no better")


@pytest.mark.slow
def test_stress_tests_are_a_chapter_of_the_page(capsys: Captured):
    groups = one_array("groups.npy", MODELS.group)
    assert call("align", "ada.npy", "ben.npy", "--stress", "--groups", groups, *QUICK) == 0
    capsys.readouterr()
    page = Path("out/report.html").read_text()
    assert "Stress curves of the map" in page and "(UMAP)" not in page
    stress = json.loads(Path("out/records/stress.json").read_text())
    assert {figure["x_label"] for figure in stress["figures"]} and len(stress["tables"]) == 8  # no labels, so no probe


@pytest.mark.slow
def test_umap_shows_target_and_prediction_in_one_plane(capsys: Captured):
    """On the page, then by its definition: in one test, for in each process the library compiles for half a minute."""
    assert call("align", "ada.npy", "ben.npy", "--umap", *QUICK) == 0
    capsys.readouterr()
    assert "(UMAP)" in Path("out/report.html").read_text()
    few = Models.draw(rows=40)
    both = matched(few.a, few.b)
    figures, arrays = projections(both, few.b, umap=True, seed=0)
    assert [figure.title.split("(")[1] for figure in figures] == ["PCA)", "UMAP)"]
    assert arrays["umap_a"].shape == arrays["umap_mapped"].shape == (40, 2)
    near = np.linalg.norm(arrays["umap_mapped"] - arrays["umap_b"], axis=1)
    far = np.linalg.norm(arrays["umap_mapped"] - arrays["umap_b"][::-1], axis=1)
    assert np.median(near) < 0.5 * np.median(far)
    np.testing.assert_array_equal(projections(both, few.b, umap=True, seed=0)[1]["umap_mapped"], arrays["umap_mapped"])


@pytest.mark.slow
def test_impossible_stress_tests_write_nothing(capsys: Captured):
    """So few pairs can be aligned, but there are no smaller budgets of them."""
    write("a.npy", h=MODELS.a[:18])
    write("b.npy", h=MODELS.b[:18])
    assert "'budgets'" in refused(capsys, "align", "a.npy", "b.npy", "--stress", *QUICK)


def test_half_precision_is_aligned_in_single_precision(capsys: Captured):
    for name, h in (("ada", MODELS.a), ("ben", MODELS.b)):
        write(f"{name}16.npy", h=h.astype(np.float16))
        write(f"{name}32.npy", h=h.astype(np.float16).astype(np.float32))
    half = answer(capsys, "align", "ada16.npy", "ben16.npy", *QUICK)
    single = answer(capsys, "align", "ada32.npy", "ben32.npy", *QUICK)
    assert half["metrics"] == single["metrics"] and Path("out/report.html").is_file()


def test_the_output_is_short(capsys: Captured):
    assert call("align", "ada.npy", "ben.npy", *QUICK) == 0
    assert len(capsys.readouterr().out.splitlines()) <= 25
