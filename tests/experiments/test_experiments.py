"""Every experiment, run to its end at the tiny scale; and what all of them share."""

import json
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from experiments.halves import half

from jepatlas.base.files import read_json
from jepatlas.base.records import Estimate
from jepatlas.cli import main
from jepatlas.experiments import (
    EXPERIMENTS,
    SCALES,
    Claim,
    Experiment,
    Finding,
    Result,
    Trial,
    claims_page,
    publish,
    read_results,
    reproduce,
    shipped_results,
)
from jepatlas.experiments.tables import cell, over_seeds

DOCS = Path(__file__).parents[2] / "docs"
ON_IMAGES = {"image-controls"}
RUNNABLE = [pytest.param(name, marks=pytest.mark.data if name in ON_IMAGES else ()) for name in EXPERIMENTS]


@contextmanager
def one_thread() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reproduce")


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNNABLE)
def test_a_tiny_run_comes_to_a_record_a_figure_and_a_page(name: str, shared: Path):
    record = reproduce(EXPERIMENTS[name], "tiny", shared, one_thread)
    saved = read_json(shared / "tiny" / "records" / f"{name}.json")
    assert saved["about"]["name"] == name
    assert saved["about"]["outcome"] == "undecided", "a tiny run must not judge a claim"
    assert record.tables and record.verdicts
    assert (shared / "tiny" / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    publish(record, shared, shared / "docs")
    page = claims_page(read_results(shared / "docs" / "results"), [name])
    assert EXPERIMENTS[name].claim.statement in page and f"results/{name}.png" in page


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", SCALES)
def test_every_point_of_a_grid_has_its_own_name_and_plain_settings(name: str, scale):
    jobs = [trial.job for trial in EXPERIMENTS[name].trials(scale, 0)]
    assert len({job.name for job in jobs}) == len(jobs) > 0
    assert json.loads(json.dumps([job.recipe for job in jobs]))
    moved = [trial.job.name for trial in EXPERIMENTS[name].trials(scale, 100)]
    assert len(moved) == len(jobs) and not {job.name for job in jobs} & set(moved), "seeds must reach every trial"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_where_a_mean_is_taken_there_are_three_seeds(name: str):
    trials = EXPERIMENTS[name].trials("small", 0)
    assert len({trial.at["seed"] for trial in trials}) >= 3


def small_experiment() -> Experiment:
    def trials(scale: str, seed: int) -> list[Trial]:
        return [Trial({"n": n, "seed": seed}, half, {"n": n}) for n in range(3)]

    def conclude(results, scale: str) -> Finding:
        return Finding("holds", f"{len(results)} trials.")

    return Experiment("halves", "Halves", Claim("Half of it is half.", "nobody"), trials, conclude)


def test_finished_trials_are_not_repeated_and_lost_ones_stay_in_the_table(tmp_path: Path):
    reproduce(small_experiment(), "small", tmp_path, one_thread)
    record = reproduce(small_experiment(), "small", tmp_path, one_thread)
    calls = (tmp_path / "small" / "runs" / "calls.txt").read_text().split()
    assert sorted(calls) == ["0", "1", "2", "2"], "what crashed is tried again, what finished is not"
    assert record.about["failed"] == 1 and record.about["outcome"] == "holds"
    (table,) = record.tables
    assert table["title"] == "Runs that did not finish" and "two is too many" in table["rows"][0][2]


def _result(value: float) -> Result:
    verdicts = [] if np.isnan(value) else [{
        "name": "r2", "value": value, "low": value, "high": value, "n": 10, "null": None, "threshold": None,
        "direction": "higher", "passed": None, "advice": "",
    }]  # fmt: skip
    return Result(Trial({"seed": 0}, half, {}), Path(), "finished", {"verdicts": verdicts})


def test_means_over_seeds_by_hand():
    found = over_seeds([_result(v) for v in (0.9, 1.0, 0.8, np.nan)], "r2")
    reach = 4.302653 * 0.1 / np.sqrt(3)
    assert found.n == 3 and found.value == pytest.approx(0.9)
    assert (found.low, found.high) == pytest.approx((0.9 - reach, 0.9 + reach), abs=1e-6)
    assert over_seeds([_result(0.9)], "r2").low == -np.inf
    assert cell(Estimate(np.nan, np.nan, np.nan, 0)) == "–"


def test_the_claims_page_is_what_the_records_say():
    """Made anew from docs/results it is the page that is committed: nothing in it was typed by hand."""
    page = claims_page(read_results(DOCS / "results"), list(EXPERIMENTS))
    assert (DOCS / "claims.md").read_text() == page


def test_published_records_are_of_experiments_that_there_are_and_not_tiny():
    published = {record["about"]["name"]: record for record in read_results(shipped_results())}
    assert published.keys() <= EXPERIMENTS.keys() and "identify-2d" in published
    assert all(record["about"]["scale"] != "tiny" for record in published.values())


def _run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(words)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_list_names_claim_published_figure_and_last_measurement(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    code, out, _ = _run(["reproduce", "--list", "--out", str(tmp_path), "--json", "-"], capsys)
    entries = json.loads(out)["experiments"]
    assert code == 0 and [entry["name"] for entry in entries] == list(EXPERIMENTS)
    assert all(entry["claim"] for entry in entries)
    published = {record["about"]["name"]: record["about"] for record in read_results(shipped_results())}
    assert {entry["name"]: entry["outcome"] for entry in entries if entry["outcome"]} == {
        name: about["outcome"] for name, about in published.items()
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Which experiment"),
        (["identify-3d"], "There is no experiment 'identify-3d'. Did you mean 'identify-2d'"),
        (["identify-2d", "--workers", "0"], "at least 1 worker"),
    ],
)
def test_bad_input_is_named(words: list[str], message: str, capsys, tmp_path: Path):
    code, _, err = _run(["reproduce", *words, "--out", str(tmp_path)], capsys)
    assert code == 2 and message in err and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_verb_reproduces_and_publishes(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    words = ["reproduce", "hermite", "--scale", "tiny", "--out", str(tmp_path / "runs"), "--publish",
             str(tmp_path / "docs"), "--json", "-"]  # fmt: skip
    code, out, err = _run(words, capsys)
    assert code == 0 and json.loads(out)["records"][0]["about"]["name"] == "hermite"
    assert "Undecided" in err
    assert "Hermite degrees over training" in (tmp_path / "docs" / "claims.md").read_text()
    assert (tmp_path / "docs" / "results" / "hermite.png").exists()
