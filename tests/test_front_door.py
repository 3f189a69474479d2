"""The Python front door: `import jepatlas as ja`."""

from __future__ import annotations

import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas
import pytest
import torch
import yaml
from sklearn.linear_model import LogisticRegression
from training.small import call, recipe
from workflows.energy.tiny import GRID, TRUTH, saved, step_arrays
from workflows.energy.tiny import recipe as energy_recipe
from workflows.plan.small import recipe as world_model_recipe
from workflows.vision.tiny_scenes import SIZE, agent, write_scenes

import jepatlas as ja
from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.config import to_plain
from jepatlas.core.files import finite, read_json
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.verdict_names import plain_name
from jepatlas.planning import MPPIConfig
from jepatlas.recipes import PairsRecipe, WalkConfig
from jepatlas.reporting import read_chapters
from jepatlas.training import TrainingConfig
from jepatlas.workflows.plan import DrivingConfig
from jepatlas.worlds import Rooms

matplotlib.use("Agg")

HEAVY = ("torch", "numba", "sklearn", "scipy.stats", "matplotlib", "plotly", "pandas")
TITLE = "Certificate of latents.npz"
SKEWED = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [np.inf, 1.0, 0.0]])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pairs(n: int = 300, seed: int = 0) -> dict[str, Any]:
    """Latents that are a rotation of a Gaussian state, in 15 groups."""
    rng = np.random.default_rng(seed)
    z, noise = rng.standard_normal((2, n, 2))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    return {"h": z @ turn.T, "h_next": (0.9 * z + np.sqrt(0.19) * noise) @ turn.T, "z": z, "groups": np.arange(n) // 20}


def models(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Latents of two models of the same states, in float32."""
    rng = np.random.default_rng(1)
    a = rng.standard_normal((n, 3))
    b = a @ rng.standard_normal((3, 4)) + 0.1 * rng.standard_normal((n, 4))
    return a.astype(np.float32), b.astype(np.float32)


def answer(result: ja.Result) -> dict[str, Any]:
    """The record as JSON holds it."""
    return json.loads(json.dumps(finite(result.record.to_json())))


def from_command_line(*words: str) -> dict[str, Any]:
    assert call(*words, "--json", "answer.json") == 0
    return read_json(Path("answer.json"))


def same_record(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    return {key: expected[key] for key in found} == found


@pytest.fixture(scope="module")
def certificate() -> ja.Certificate:
    return ja.certify(**pairs(), title="A <b>certificate</b>")


@pytest.fixture(scope="module")
def alignment() -> ja.Alignment:
    return ja.align(*models(), permutations=19)


@pytest.fixture(scope="module")
def world_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a small world model."""
    return ja.train(world_model_recipe(), tmp_path_factory.mktemp("world-model") / "run").folder


# --- names ---


def test_the_import_is_light():
    code = f"import jepatlas as ja, sys; dir(ja); print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_all_names_exist_and_shadow_no_module():
    names = [name for name in dir(ja) if name != "__version__"]
    assert sorted(names) == sorted(ja.__all__)
    assert len(names) <= 30, "the front door is small: other names are imported from their packages"
    modules = {module.name for module in pkgutil.iter_modules(ja.__path__)}
    assert modules & set(names) == {"testing"}
    assert inspect.ismodule(ja.testing)
    assert all(callable(getattr(ja, name)) for name in names if name != "testing")
    assert callable(ja.align)
    with pytest.raises(AttributeError, match="alignn"):
        _ = ja.alignn  # pyright: ignore[reportAttributeAccessIssue]


# --- the same answer as the command line ---


@pytest.mark.parametrize("names", [("h", "h_next", "z", "groups"), ("h", "h_next")])
def test_certify_agrees_with_the_command_line(names: tuple[str, ...]):
    arrays: dict[str, Any] = {name: array for name, array in pairs().items() if name in names}
    write_arrays("latents.npz", arrays)
    expected = from_command_line("certify", "latents.npz", "--seed", "3")
    found = ja.certify(**arrays, seed=3, title=TITLE)
    assert same_record(answer(found), expected)
    assert found.passed is expected["passed"]
    assert (found.diagnosis is None) == ("z" not in names)
    assert answer(ja.certify("latents.npz", seed=3)) == answer(found)


def test_align_agrees_with_the_command_line():
    a, b = models()
    groups = np.arange(len(a)) // 6
    write_arrays("a.npz", {"h": a, "groups": groups})
    write_arrays("b.npz", {"h": b})
    expected = from_command_line("align", "a.npz", "b.npz", "--permutations", "29", "--seed", "3", "--out", "run")
    found = ja.align(a, b, groups=groups, permutations=29, seed=3)
    assert same_record(answer(found), expected)
    assert answer(ja.align("a.npz", Path("b.npz"), permutations=29, seed=3)) == answer(found)
    np.testing.assert_array_equal(found.map.weight, ja.LinearMap.load("run/map.safetensors").weight)
    found.save("saved")
    written = read_json(Path("saved/records/align.json"))
    assert written == read_json(Path("run/records/align.json"))
    np.testing.assert_array_equal(
        read_arrays("saved/records/align.npz")["mapped"], read_arrays("run/records/align.npz")["mapped"]
    )


def test_audit_agrees_with_the_command_line():
    write_arrays("skewed.npz", {"energies": SKEWED})
    expected = from_command_line("energy", "audit", "skewed.npz")
    found = ja.audit(SKEWED, title="skewed.npz")
    assert isinstance(found, ja.EnergyAudit)
    assert same_record(answer(found), expected)
    assert answer(ja.audit("skewed.npz")) == answer(found)
    assert found.passed is False and found["triangle"].passed is False
    assert found.repair().energies[0, 2] == 2.0


def test_fit_energy_agrees_with_the_command_line():
    base = energy_recipe(steps=20)
    Path("recipe.yaml").write_text(yaml.safe_dump(to_plain(base)))
    expected = from_command_line("energy", "fit", "--recipe", "recipe.yaml", "--out", "expected")
    found = ja.fit_energy(GRID, "found", recipe=base)
    assert found["triangle"].to_json() == next(v for v in expected["verdicts"] if v["name"] == "triangle")
    assert found.passed is not None
    loaded: Any = ja.load("found")
    np.testing.assert_array_equal(loaded.matrix(found.ground_truth.x), found.energies)
    again = ja.audit("found")
    assert answer(again) == answer(found)


# --- arguments ---


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list of rows": lambda array: array.tolist(),
    "tensor": torch.from_numpy,
    "tensor with gradient": lambda array: torch.from_numpy(array).requires_grad_(),
    "list of tensors": lambda array: list(torch.from_numpy(array)),
    "frame": pandas.DataFrame,
}


@pytest.mark.parametrize("form", FORMS)
def test_what_people_have_gives_the_same_map(form: str):
    a, b = (array.astype(np.float64) for array in models())
    expected = ja.align(a, b, permutations=19)
    found = ja.align(FORMS[form](a), FORMS[form](b), permutations=19)
    np.testing.assert_allclose(found.map.weight, expected.map.weight)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32])
def test_every_dtype_is_accepted(dtype: torch.dtype):
    a, b = (torch.from_numpy(4 * array).to(dtype) for array in models())
    found = ja.align(a, b, permutations=19)
    assert found.passed is True
    expected = ja.align(a.double(), b.double(), permutations=19)
    assert found["r2"].value == pytest.approx(expected["r2"].value, abs=1e-4)


def test_a_list_of_episodes_gives_groups():
    given = pairs()
    episodes: dict[str, Any] = {name: np.split(given[name], 15) for name in ("h", "h_next", "z")}
    assert answer(ja.certify(**episodes)) == answer(ja.certify(**given))
    a, b = models()
    groups = np.repeat(np.arange(20), 6)
    found = ja.align(np.split(a, 20), np.split(b, 20), permutations=19)
    assert answer(found) == answer(ja.align(a, b, groups=groups, permutations=19))


def test_ids_pair_the_rows():
    a, b = models()
    order = np.random.default_rng(0).permutation(len(a))
    names = np.array([f"state {k}" for k in range(len(a))])
    found = ja.align(a, b[order], ids=(names, names[order].tolist()), permutations=19)
    assert found.passed is True and found["r2"].value > 0.9
    assert ja.align(a, b[order], permutations=19).passed is False


def test_arrays_in_files():
    given = pairs()
    for name in ("h", "h_next", "z"):
        np.save(f"{name}.npy", given[name])
    found = ja.certify("h.npy", "h_next.npy", Path("z.npy"), groups=given["groups"])
    assert answer(found) == answer(ja.certify(**given))


def bad(name: str, value: Any) -> dict[str, Any]:
    return {**pairs(60), name: value}


def with_nan() -> np.ndarray:
    array = pairs(60)["h"].copy()
    array[3, 1] = np.nan
    return array


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (bad("h", np.zeros(60)), "'h'"),
        (bad("h", np.zeros((60, 2, 2))), "'h'"),
        (bad("h", np.zeros((60, 0))), "'h'"),
        (bad("h", with_nan()), "'h'"),
        (bad("h", with_nan().tolist()), "'h'"),
        (bad("h", pairs(60)["h"].astype(str)), "'h'"),
        (bad("h", pairs(60)["h"].astype(object)), "'h'"),
        (bad("h", pairs(60)["h"].astype(complex)), "'h'"),
        (bad("h", [[1.0, 2.0], [3.0]]), "'h'"),
        (bad("h", {"h": 1}), "'h'"),
        (bad("h", None), "'h'"),
        (bad("h", "missing.npy"), "'h'"),
        (bad("h", [np.zeros((30, 2)), np.zeros((30, 3))]), "'h'"),
        (bad("h", [np.zeros((30, 2)), np.full((30, 2), np.nan)]), r"'h\[1\]'"),
        (bad("h_next", pairs(50)["h_next"]), "'h_next'"),
        (bad("h_next", pairs(60)["h_next"][:, :1]), "'h_next'"),
        (bad("h_next", None), "'h_next'"),
        (bad("z", np.zeros((60, 2))), "'z'"),
        (bad("z", "missing.npy"), "'z'"),
        (bad("groups", np.arange(50)), "'groups'"),
        (bad("groups", [None] * 60), "'groups'"),
        (bad("groups", np.zeros(60)), "'groups'"),
        (bad("rho", 1.5), "rho"),
        (bad("rho", "0.9"), "rho"),
        (bad("h", torch.zeros(60, 2, device="meta")), "'h'.*meta"),
        (bad("h", np.ma.masked_greater(pairs(60)["h"], 1)), "'h'.*masked"),
        (bad("h", np.split(pairs(60)["h"], 3)), "'groups'"),
        ({"h": pairs(10)["h"], "h_next": pairs(10)["h_next"]}, "10"),
    ],
)
def test_certify_names_the_bad_argument(arguments: dict[str, Any], name: str):
    with pytest.raises(ja.InputError, match=name):
        ja.certify(**arguments)


A, B = models()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"a": A.ravel(), "b": B}, "'a'"),
        ({"a": A, "b": B.astype(str)}, "'b'"),
        ({"a": A, "b": np.where(B > 2, np.nan, B)}, "'b'"),
        ({"a": A, "b": B[:50]}, "50"),
        ({"a": A, "b": "missing.npy"}, "'b'"),
        ({"a": A[:6], "b": B[:6]}, "too few"),
        ({"a": A, "b": B, "ids": np.arange(120)}, "'ids'"),
        ({"a": A, "b": B, "ids": (np.arange(120), np.arange(50))}, "'ids of b'"),
        ({"a": A, "b": B, "ids": (np.arange(120), None)}, "'ids'"),
        ({"a": A, "b": B, "labels": np.arange(3)}, "'labels of a'"),
        ({"a": A, "b": B, "groups": np.arange(3)}, "'groups'"),
        ({"a": np.split(A, 20), "b": np.split(B, 12)}, "'b'"),
        ({"a": A, "b": B, "raw": (A, None)}, "'raw'"),
        ({"a": A, "b": B, "kind": "rigde"}, "ridge"),
        ({"a": A, "b": B, "permutations": 1}, "permutations"),
        ({"a": A, "b": B, "permutations": "99"}, "permutations"),
        ({"a": A, "b": B, "names": "ab"}, "'names'"),
        ({"a": A, "b": B, "share": 1.5}, "share"),
    ],
)
def test_align_names_the_bad_argument(arguments: dict[str, Any], name: str):
    with pytest.raises(ja.InputError, match=name):
        ja.align(**arguments)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"energies": np.zeros((3, 4))}, "'energies'"),
        ({"energies": np.zeros((3, 3)).astype(str)}, "'energies'"),
        ({"energies": np.where(SKEWED == 5, np.nan, SKEWED)}, "NaN"),
        ({"energies": "missing.npy"}, "'energies'"),
        ({"energies": None}, "'energies'"),
        ({"energies": lambda x, y: x}, "'points'"),
        ({"energies": SKEWED, "points": np.zeros((4, 2))}, "points"),
        ({"energies": SKEWED, "truth": np.zeros((4, 4))}, "true energies"),
        ({"energies": saved(), "points": np.zeros((9, 3))}, "'points'"),
        ({"energies": SKEWED, "states": 1}, "states"),
    ],
)
def test_audit_names_the_bad_argument(arguments: dict[str, Any], name: str):
    with pytest.raises(ja.InputError, match=name):
        ja.audit(**arguments)


STEPS = step_arrays()


@pytest.mark.parametrize(
    ("source", "options", "name"),
    [
        ({"x": STEPS["x"]}, {}, "cost"),
        ({**STEPS, "x": STEPS["x"][:5]}, {}, "5 rows"),
        ({**STEPS, "x_next": np.full_like(STEPS["x_next"], np.nan)}, {}, "'x_next'"),
        ({**STEPS, "cost": "free"}, {}, "'cost'"),
        (STEPS["x"], {}, "'source'"),
        ("missing.npz", {}, "'source'"),
        (STEPS, {"head": "iqee"}, "iqe"),
        (STEPS, {"head": 3}, "'head'"),
        (STEPS, {"steps": 0}, "steps"),
        ({"x": [STEPS["x"][:5], STEPS["x"][5:9]], "cost": [STEPS["cost"][:5]]}, {}, "'cost'"),
    ],
)
def test_fit_energy_names_the_bad_argument(source: Any, options: dict[str, Any], name: str):
    with pytest.raises(ja.InputError, match=name):
        ja.fit_energy(source, "run", **options)
    assert not Path("run").exists()


def test_an_energy_is_learned_from_arrays_of_steps():
    base = energy_recipe(steps=5, walk=WalkConfig())
    found = ja.fit_energy({name: torch.from_numpy(array) for name, array in STEPS.items()}, "run", recipe=base)
    assert found.fitted.between(GRID.observe(GRID.positions[:2]), GRID.observe(GRID.positions[:3])).shape == (2, 3)
    assert found.save("saved") == Path("saved")
    energy: Any = ja.load("saved/energy.safetensors")
    points = GRID.observe(GRID.positions)
    assert ja.audit(energy, points, truth=TRUTH).passed is not None
    with pytest.raises(ja.InputError, match="'out'"):
        ja.fit_energy(STEPS, "run", recipe=base)


@pytest.mark.parametrize(
    "x", [B.astype(str), B.astype(object), B[:, :1], B[0], np.where(B > 2, np.nan, B), [[1.0], [2, 3]]]
)
def test_encode_names_the_bad_argument(x: Any):
    with pytest.raises(ja.InputError, match="'x'"):
        ja.encode(torch.nn.Linear(4, 2), x)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"data": (A, A[:9])}, "'data'"),
        ({"data": (A.astype(str), A)}, "'data'"),
        ({"data": (A.astype(object), A)}, "'data'"),
        ({"data": (A, np.where(A > 2, np.nan, A))}, "'data'"),
        ({"data": (A[:3], A[:3])}, "'data'"),
        ({"data": (torch.zeros(120, 3, device="meta"),) * 2}, "'data'.*meta"),
        ({"data": (A, A), "encoder": 3}, "'encoder'"),
        ({"data": (A, A), "device": "cuda:77"}, "device 'cuda:77'"),
        ({"data": (A, A), "device": "gpu"}, "device 'gpu'"),
    ],
)
def test_train_names_the_bad_argument(options: dict[str, Any], name: str):
    training = TrainingConfig(steps=2, batch_size=16, device=options.pop("device", "cpu"))
    with pytest.raises(ja.InputError, match=name):
        ja.train(PairsRecipe(training=training), "run", **options)
    assert not Path("run").exists()


def test_a_fitted_map_names_bad_latents_and_probes(alignment: ja.Alignment):
    with pytest.raises(ja.InputError, match="'x'"):
        alignment.map.apply(A[:, :2])
    with pytest.raises(ja.InputError, match="linear classifier"):
        alignment.migrate(3)
    labels = A[:, 0] > 0
    probe = alignment.migrate(LogisticRegression().fit(A, labels))
    assert np.mean(probe.predict(B.astype(float)) == labels) > 0.9
    with pytest.raises(ja.InputError, match="'charts'"):
        ja.Atlas.build([A, B])  # pyright: ignore[reportArgumentType]


def test_a_sparse_tensor_is_read():
    a, b = (torch.from_numpy(array) for array in models())
    expected = ja.align(a, b, permutations=19)
    assert answer(ja.align(a.to_sparse(), b, permutations=19)) == answer(expected)


# --- results ---


class TextOf(HTMLParser):
    """The text, the tags and the data images of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name == "src"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_result_shows_its_answer(certificate: ja.Certificate):
    assert "Certificate" in repr(certificate) and str(certificate) == certificate.summary()
    assert certificate["r2"].value > 0.99 and "r2" in certificate and "r3" not in certificate
    with pytest.raises(KeyError, match="r3"):
        _ = certificate["r3"]


def test_the_card_is_escaped_and_self_contained(certificate: ja.Certificate):
    card = TextOf(certificate._repr_html_())
    state = {True: "passed", False: "failed", None: "undecided"}[certificate.passed]
    assert "A <b>certificate</b>" in card.text and state in card.text and certificate.summary() in card.text
    assert set(card.tags) <= {"div", "b", "span", "p", "code", "img", "details", "summary"}
    assert card.sources and all(source.startswith("data:image/png;base64,") for source in card.sources)


def test_the_card_names_failed_checks():
    audit = ja.audit(SKEWED)
    card = TextOf(audit._repr_html_())
    failed = [verdict for verdict in audit.verdicts if verdict.passed is False]
    assert failed and all(verdict.name in card.text and verdict.advice in card.text for verdict in failed)


def test_plot_draws_figures_and_verdicts(certificate: ja.Certificate, alignment: ja.Alignment):
    assert [ax.get_title() for ax in certificate.plot()] == [panel.title for panel in panels(certificate)]
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in certificate.plot())
    (chart,) = certificate.plot("verdicts")
    judged = [plain_name(verdict.name) for verdict in certificate.verdicts if verdict.threshold is not None]
    assert [label.get_text() for label in chart.get_yticklabels()] == judged
    curves = [figure for figure in alignment.record.figures if figure.kind == "curves"]
    assert len(alignment.plot("curves")) == sum(len(figure.resolved_panels()) for figure in curves) >= 1
    with pytest.raises(ja.InputError, match="scatter"):
        certificate.plot("film")
    sheet: Any = alignment.plot()[0].figure
    sheet.savefig("alignment.pdf")
    assert Path("alignment.pdf").read_bytes().startswith(b"%PDF")


def panels(result: ja.Result) -> Any:
    figure: Any = result.record.figures[0]
    return figure.panels


def test_save_and_report(certificate: ja.Certificate):
    assert certificate.save("kept") == Path("kept")
    (chapter,) = read_chapters("kept")
    assert chapter.source == "records/certificate.json" and len(chapter.verdicts) == len(certificate.verdicts)
    loaded = ja.load("kept/records/certificate.json")
    assert isinstance(loaded, ja.Certificate) and answer(loaded) == answer(certificate)
    page = certificate.report("page.html")
    text = TextOf(page.read_text()).text
    assert page == Path("page.html") and "A <b>certificate</b>" in text and certificate.summary() in text
    assert not list(Path().glob("records"))


def test_the_frame_has_a_row_for_each_verdict(certificate: ja.Certificate):
    frame: Any = certificate.to_frame()
    assert list(frame.index) == [verdict.name for verdict in certificate.verdicts]
    assert frame.loc["r2", "value"] == certificate["r2"].value


def test_an_alignment_maps_latents_and_probes(alignment: ja.Alignment):
    a, b = models()
    assert np.corrcoef(alignment.map.apply(a)[:, 0], b[:, 0])[0, 1] > 0.9
    probe = ja.LinearProbe(
        np.array([0, 1]), np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), np.zeros(2), np.zeros(3), np.ones(3)
    )
    moved = alignment.migrate(probe)
    assert np.corrcoef(moved.logits(b)[:, 1], a[:, 0])[0, 1] > 0.9


def test_a_page_of_results_and_runs(certificate: ja.Certificate, alignment: ja.Alignment):
    page = TextOf(ja.report(certificate, certificate, alignment, out="page.html", title="Two models").read_text())
    assert "Two models" in page.text and page.text.count("certificate") >= 2 and alignment.record.title in page.text
    certificate.save("run")
    assert ja.report("run") == Path("run/report.html")
    assert call("report", "run", "--out", "again") == 0
    assert Path("again/report.html").read_text() == Path("run/report.html").read_text()
    assert ja.report(alignment) == Path("report.html")
    for kind, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        assert call("report", "run", "--figures", kind) == 0
        files = sorted(Path("run/figures").glob(f"*.{kind}"))
        assert len(files) == len(certificate.record.figures)
        assert all(file.read_bytes().startswith(start) for file in files)


@pytest.mark.parametrize("runs", [(), (3,), ("missing",), (__file__,)])
def test_report_names_the_bad_argument(runs: tuple[Any, ...], certificate: ja.Certificate):
    with pytest.raises(ja.InputError, match="'runs'"):
        ja.report(*runs)
    with pytest.raises(ja.InputError, match="'figures'"):
        ja.report(certificate, figures="bmp")


@pytest.mark.parametrize(
    ("passed", "expected"),
    [([], None), ([True, True], True), ([True, None], None), ([None, False], False)],
)
def test_three_states(passed: list[bool | None], expected: bool | None):
    estimate = Estimate(1.0, 0.0, 2.0, 9)
    verdicts = [Verdict("v", 1.0, 0.0, 2.0, estimate.n, None, 1.0, "higher", answer, "advice") for answer in passed]
    result = ja.Result(Record("t", "s", {}, tuple(verdicts)))
    assert result.passed is expected
    word = {True: "passed", False: "failed", None: "undecided"}[expected]
    assert word in repr(result) and word in result._repr_html_()


# --- runs ---


def test_a_run_is_trained_loaded_and_certified():
    run = ja.train(recipe(steps=3), "run")
    assert run.passed is True and run.outcome.step == 3
    encoder = run.load()
    assert isinstance(encoder, torch.nn.Module) and not encoder.training
    x = np.random.default_rng(0).standard_normal((7, encoder.encoder[0].in_features))  # pyright: ignore
    h = ja.encode("run", x)
    np.testing.assert_array_equal(h, encoder.encode(torch.from_numpy(x).float()).detach().numpy())  # pyright: ignore
    np.testing.assert_array_equal(ja.encode(encoder, torch.from_numpy(x)), h)
    with pytest.raises(ja.InputError, match="'x'"):
        ja.encode("run", x[:, :1])
    assert "loss" in run.report("run.html").read_text()
    assert call("certify", "run", "--samples", "400") == 0
    with pytest.raises(ja.InputError, match="run"):
        ja.train(recipe(steps=3), "run")


def test_recipes_as_files_and_as_plain_data():
    plain = to_plain(recipe(steps=2))
    Path("recipe.yaml").write_text(yaml.safe_dump(plain))
    assert ja.train("recipe.yaml", "one").outcome.step == 2
    assert ja.train(plain, Path("two")).outcome.step == 2
    one, two = (next(Path(name).rglob("*.safetensors")).read_bytes() for name in ("one", "two"))
    assert one == two
    with pytest.raises(ja.InputError, match="'recipe'"):
        ja.train(5, "three")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ja.InputError, match="'recipe'"):
        ja.train("missing.yaml", "three")


def test_a_world_model_drives_as_the_command_line_does():
    run = ja.train(world_model_recipe(), "run")
    assert hasattr(run.load(), "encode")
    planner = ["--planner.horizon", "3", "--planner.samples", "8", "--planner.iterations", "1"]
    expected = from_command_line("plan", "run", *planner, "--steps", "6", "--tasks", "4", "--seed", "2")
    config = DrivingConfig(MPPIConfig(horizon=3, samples=8, iterations=1), steps=6)
    found = ja.drive("run", tasks=4, config=config, seed=2)
    assert same_record(answer(found), expected)
    assert found.success_rate == found.drive.reached.mean() and found.chance.shape == (4,)
    world = Rooms()
    images = world.observe(world.states(3, np.random.default_rng(0)))
    assert ja.encode("run", images).shape == (3, 8)
    one = ja.drive("run", start=found.drive.tasks.starts[0], goal=found.drive.tasks.goals[0], config=config)
    assert one.drive.reached.shape == (1,)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"start": [0.1, 0.1]}, "'goal'"),
        ({"start": [9.0, 9.0], "goal": [0.1, 0.1]}, "'start'"),
        ({"planner": "mpi"}, "mppi"),
        ({"tasks": 0}, "tasks"),
        ({"steps": 0}, "steps"),
    ],
)
def test_drive_names_the_bad_argument(options: dict[str, Any], name: str, world_model: Path):
    with pytest.raises(ja.InputError, match=name):
        ja.drive(world_model, **options)


def test_an_agent_on_images_encodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ja.train(agent(write_scenes(tmp_path / "scenes"), "left", steps=2), "run")
    images = np.random.default_rng(0).integers(256, size=(5, SIZE, SIZE, 3), dtype=np.uint8)
    h = ja.encode("run", images)
    tensor = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
    np.testing.assert_allclose(ja.encode(ja.load("run"), tensor), h, rtol=1e-5, atol=1e-6)  # pyright: ignore
    for wrong in (images / 255, images[..., :1], images[:, :8], images[0]):
        with pytest.raises(ja.InputError, match="'x'"):
            ja.encode("run", wrong)


def test_load_reads_what_jepatlas_wrote(alignment: ja.Alignment):
    atlas = ja.Atlas.build(
        [ja.ChartLatents(name, array, np.arange(120)) for name, array in zip("ab", models(), strict=True)]
    )
    ja.save_atlas(atlas, "atlas")
    loaded = ja.load("atlas")
    assert isinstance(loaded, ja.Atlas) and loaded.names == ["a", "b"]
    probe = ja.LinearProbe(np.array([0, 1]), np.eye(2), np.zeros(2), np.zeros(2), np.ones(2))
    probe.save("probe.safetensors")
    assert isinstance(ja.load("probe.safetensors"), ja.LinearProbe)
    alignment.save("run")
    found = ja.load("run/map.safetensors")
    assert isinstance(found, ja.LinearMap)
    np.testing.assert_array_equal(found.weight, alignment.map.weight)
    assert answer(ja.load("run/records/align.json")) == answer(alignment)  # pyright: ignore[reportArgumentType]


def test_load_reads_the_only_record_of_a_folder(certificate: ja.Certificate, alignment: ja.Alignment):
    audited = ja.audit(np.ones((4, 4)) - np.eye(4))
    results: dict[str, ja.Result] = {"certified": certificate, "audited": audited, "aligned": alignment}
    for folder, result in results.items():
        loaded: Any = ja.load(result.save(folder))
        assert loaded.summary() == result.summary() and answer(loaded) == answer(result)
    assert isinstance(ja.load("certified"), ja.Certificate) and isinstance(ja.load("audited"), ja.EnergyAudit)
    audited.save("certified")
    with pytest.raises(ja.InputError, match=r"audit\.json, certificate\.json"):
        ja.load("certified")


@pytest.mark.parametrize("path", ["missing", "empty", "text.txt", "broken.safetensors", "broken.json", 5])
def test_load_refuses_other_files(path: Any):
    Path("empty").mkdir()
    for name in ("text.txt", "broken.safetensors", "broken.json"):
        Path(name).write_text("0123456789")
    with pytest.raises(ja.InputError, match="'path'" if isinstance(path, int) else path):
        ja.load(path)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"rows": 3}, r"'h' .*20 rows.* 3\b"),
        ({"rows": 0}, "'h' has no rows"),
        ({"episodes": 2}, "'h' has 2 episodes"),
        ({"quick": "yes"}, "quick is 'yes'"),
        ({"seed": "a"}, "seed is 'a'"),
    ],
)
def test_certify_names_the_argument_that_it_refuses(changed: dict[str, Any], named: str):
    h = np.random.default_rng(0).standard_normal((60, 3))[: changed.pop("rows", 60)]
    given = np.split(h, changed.pop("episodes")) if "episodes" in changed else h
    following = [0.9 * part for part in given] if isinstance(given, list) else 0.9 * h
    with pytest.raises(ja.InputError, match=named) as refused:
        ja.certify(given, following, **changed)
    assert "groups" not in str(refused.value)


@pytest.mark.parametrize("changed", [{"permutations": 3}, {"seed": "a"}])
def test_align_names_the_argument_that_it_refuses(changed: dict[str, Any]):
    with pytest.raises(ja.InputError, match=next(iter(changed))):
        ja.align(*models(), **changed)
