"""Every experiment at the tiny scale, published records, and the procedures that all experiments share."""

import json
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.halves import half
from rich.console import Console

from jepatlas.cli import main
from jepatlas.cli.output import show_table
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Table
from jepatlas.core.files import read_json, write_json
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate
from jepatlas.experiments import (
    EXPERIMENTS,
    SCALES,
    Claim,
    Experiment,
    Finding,
    Result,
    Trial,
    claims_page,
    last_record,
    publish,
    read_results,
    reproduce,
    shipped_results,
)
from jepatlas.experiments.engine.rules import Criterion, share_verdict
from jepatlas.experiments.engine.seed_tables import cell, mean_and_interval, mean_and_range, mean_cells, mean_curve

DOCS = Path(__file__).parents[2] / "docs"
ON_IMAGES = {"image-controls", "real-encoders"}
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
def test_every_experiment_runs_at_the_tiny_scale(name: str, shared: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "cache"))  # tiny policies must not enter the user's cache
    record = reproduce(EXPERIMENTS[name], "tiny", shared, one_thread)
    saved = read_json(shared / "tiny" / "records" / f"{name}.json")
    assert saved["about"]["name"] == name
    assert saved["about"]["outcome"] == "undecided", "a tiny run is undecided"
    assert record.tables and record.verdicts
    assert (shared / "tiny" / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = claims_page([saved], [name])
    assert EXPERIMENTS[name].claim.statement in page and f"results/{name}.png" in page


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", SCALES)
def test_trial_names_are_unique_and_settings_are_json(name: str, scale):
    jobs = [trial.job for trial in EXPERIMENTS[name].trials(scale, 0)]
    assert len({job.name for job in jobs}) == len(jobs) > 0
    assert json.loads(json.dumps([job.recipe for job in jobs]))
    moved = [trial.job.name for trial in EXPERIMENTS[name].trials(scale, 100)]
    assert len(moved) == len(jobs) and not {job.name for job in jobs} & set(moved), "every trial depends on the seed"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_small_studies_have_at_least_three_seeds(name: str):
    trials = EXPERIMENTS[name].trials("small", 0)
    assert len({trial.at["seed"] for trial in trials}) >= 3


def small_experiment(name: str = "halves") -> Experiment:
    def trials(scale: str, seed: int) -> list[Trial]:
        return [Trial({"n": n, "seed": seed}, half, {"n": n}) for n in range(3)]

    def conclude(results, scale: str) -> Finding:
        return Finding("holds", f"{len(results)} trials.")

    return Experiment(name, "Halves", Claim("Half of n is n / 2.", "no source"), trials, conclude)


def test_only_crashed_trials_are_repeated_and_they_are_listed(tmp_path: Path):
    reproduce(small_experiment(), "small", tmp_path, one_thread)
    record = reproduce(small_experiment(), "small", tmp_path, one_thread)
    calls = (tmp_path / "small" / "runs" / "calls.txt").read_text().split()
    assert sorted(calls) == ["0", "1", "2", "2"], "only the crashed trial is repeated"
    assert record.about["failed"] == 1 and record.about["outcome"] == "holds"
    (table,) = record.tables
    assert table.title == "Runs that did not finish" and "two is too many" in table.rows[0][2]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_study_without_finished_trials_is_undecided(name: str):
    lost = [Result(t, Path(), "crashed", {"error": "no room left"}) for t in EXPERIMENTS[name].trials("small", 0)]
    finding = EXPERIMENTS[name].conclude(lost, "small")
    assert finding.outcome == "undecided" and finding.short == "no trial finished"
    assert str(len(lost)) in finding.sentence and "no room left" in finding.sentence


def test_last_record_skips_records_without_finished_trials(tmp_path: Path):
    record = read_json(shipped_results() / "bound.json")
    runs, place = record["about"]["runs"], tmp_path / "small" / "records" / "bound.json"
    for failed in (runs, runs - 1):
        write_json(place, record | {"about": record["about"] | {"failed": failed, "sentence": "own"}})
        found = last_record("bound", tmp_path)
        assert found is not None and (found["about"]["sentence"] == "own") is (failed < runs)


def test_provenance_lists_the_commits_of_all_trials(tmp_path: Path):
    """Trials of an earlier or unknown commit are counted separately."""
    here = provenance(0)
    first = reproduce(small_experiment(), "small", tmp_path, one_thread)
    own = f"commit {here['commit']}" if here["commit"] else f"version {here['version']}"
    assert first.provenance["trials"].startswith("2 trials ") and own in first.provenance["trials"]
    places = sorted((tmp_path / "small" / "runs").glob("n=*/result.json"))
    for place, change in zip(places, ({"made": {"version": "0", "commit": "abc"}}, None), strict=True):
        saved = {key: value for key, value in read_json(place).items() if key != "made"}
        write_json(place, saved | (change or {}))
    again = reproduce(small_experiment(), "small", tmp_path, one_thread)
    assert again.provenance["commit"] == here["commit"]
    assert again.provenance["trials"] == (
        "1 trials at commit abc, 1 trials from before commits were kept, 1 trials that did not end"
    )
    assert again.provenance["trials"] in claims_page([again.to_json()], ["halves"])


def test_the_claims_page_shows_the_number_of_unfinished_runs(tmp_path: Path):
    record = reproduce(small_experiment(), "small", tmp_path, one_thread).to_json()
    assert "3 runs, 1 of which did not finish" in claims_page([record], ["halves"])


def test_tiny_records_cannot_be_published(tmp_path: Path):
    record = reproduce(small_experiment(), "tiny", tmp_path, one_thread)
    with pytest.raises(InputError, match="--publish"):
        publish(record, tmp_path, tmp_path / "docs")
    assert not (tmp_path / "docs").exists()


def r2_result(value: float) -> Result:
    verdicts = (
        []
        if np.isnan(value)
        else [
            {
                "name": "r2",
                "value": value,
                "low": value,
                "high": value,
                "n": 10,
                "null": None,
                "threshold": None,
                "direction": "higher",
                "passed": None,
                "advice": "",
            }
        ]
    )
    return Result(Trial({"seed": 0}, half, {}), Path(), "finished", {"verdicts": verdicts})


def test_means_over_seeds_match_student_intervals():
    results = [r2_result(v) for v in (0.9, 1.0, 0.8, np.nan)]
    shown, decides = mean_and_range(results, "r2"), mean_and_interval(results, "r2")
    half_width = 4.302653 * 0.1 / np.sqrt(3)
    assert shown.n == decides.n == 3
    assert shown.value == decides.value == pytest.approx(0.9)
    assert (shown.low, shown.high) == (0.8, 1.0), "the displayed range stays within possible values of R²"
    assert (decides.low, decides.high) == pytest.approx((0.9 - half_width, 0.9 + half_width), abs=1e-6)
    assert mean_and_interval([r2_result(0.9)], "r2").low == -np.inf
    assert mean_and_range([r2_result(np.nan)], "r2").n == 0
    assert cell(Estimate(np.nan, np.nan, np.nan, 0)) == "–"


@pytest.mark.parametrize("met", [[True, True], [True, False], [False, False]])
def test_a_condition_on_all_cases_is_met_only_if_every_case_meets_it(met: list[bool]):
    criterion = Criterion.for_all("cases", met)
    verdict = share_verdict("cases", met, good="All do.", bad="Some do not.")
    assert criterion.met == verdict.passed == all(met)
    assert criterion.found == f"{sum(met)} of 2"
    assert verdict.value == sum(met) / 2


def test_curves_and_cells_have_means_over_runs():
    runs = [r2_result(0.5), r2_result(0.7)]
    line = mean_curve("runs", runs, {10: "r2", 20: "missing"})
    assert line.x == [10, 20]
    assert line.y[0] == pytest.approx(0.6) and np.isnan(float(line.y[1]))
    assert line.low is None, "there is no band, because one mean is undefined"
    assert mean_cells(runs, ["r2", "missing"], digits=1) == ["0.6 [0.5, 0.7]", "–"]


def test_the_claims_page_is_generated_from_the_records():
    """The page generated from docs/results equals the committed page."""
    page = claims_page(read_results(DOCS / "results"), list(EXPERIMENTS))
    assert (DOCS / "claims.md").read_text() == page


NOT_RUN_YET: set[str] = set()
"""Experiments without a published record."""


def test_every_experiment_has_a_published_record_that_is_not_tiny():
    published = {record["about"]["name"]: record for record in read_results(shipped_results())}
    assert published.keys() == EXPERIMENTS.keys() - NOT_RUN_YET
    assert all(record["about"]["scale"] != "tiny" for record in published.values())


def test_the_claims_page_lists_experiments_without_a_record():
    page = claims_page([], list(EXPERIMENTS))
    assert all(name in page for name in EXPERIMENTS)


def run_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(words)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_json_list_has_claims_and_outcomes(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    code, out, _ = run_command(["reproduce", "--list", "--out", str(tmp_path), "--json", "-"], capsys)
    entries = json.loads(out)["experiments"]
    assert code == 0 and [entry["name"] for entry in entries] == list(EXPERIMENTS)
    assert all(entry["claim"] for entry in entries)
    published = {record["about"]["name"]: record["about"] for record in read_results(shipped_results())}
    assert {entry["name"]: entry["outcome"] for entry in entries if entry["outcome"]} == {
        name: about["outcome"] for name, about in published.items()
    }


def test_the_list_has_three_lines_per_experiment_and_the_full_text_on_request(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run_command(["reproduce", "--list", "--out", str(tmp_path)], capsys)
    *lines, hint = out.splitlines()
    assert code == 0 and "--list NAME" in hint
    assert [line.split()[0] for line in lines[::3]] == list(EXPERIMENTS)
    assert {line.split()[0] for line in lines[1::3]} == {"published"}
    assert {line.split()[0] for line in lines[2::3]} == {"here"}
    assert all(len(line) <= 80 for line in lines)
    shown = {record["about"]["name"]: record["about"] for record in read_results(shipped_results())}
    for (name, experiment), first, second, third in zip(
        EXPERIMENTS.items(), lines[::3], lines[1::3], lines[2::3], strict=True
    ):
        assert_shortened_at_a_word(experiment.claim.statement, first.split(maxsplit=1)[1])
        assert_shortened_at_a_word(experiment.claim.measured or "no figure", second.split(maxsplit=1)[1])
        about = shown.get(name, {"outcome": "here", "short": "not yet measured"})
        assert_shortened_at_a_word(
            about["short"] or about["sentence"], third.split(about["outcome"], 1)[1].lstrip(": ")
        )
    code, out, _ = run_command(["reproduce", "--list", "bound", "--out", str(tmp_path)], capsys)
    claim, words = EXPERIMENTS["bound"].claim, " ".join(out.split())
    assert code == 0 and claim.statement in words and claim.measured in words
    assert "identify-2d:" not in words


def assert_shortened_at_a_word(whole: str, shown: str) -> None:
    """`shown` is `whole`, or its first words and " …"."""
    words = shown.removesuffix(" …").split()
    assert words and [word.rstrip(",;:") for word in words] == [w.rstrip(",;:") for w in whole.split()[: len(words)]]
    assert shown.endswith(" …") is (len(whole.split()) > len(words))


def test_wide_tables_show_all_numbers(capsys: pytest.CaptureFixture[str]):
    rows = [[f"run {i}", *(f"0.{i}{j}1 [0.{i}{j}0, 0.{i}{j}2]" for j in range(6))] for i in range(2)]
    table = Table("Wide", ["run", *"abcdef"], rows)
    for width in (80, 400):
        show_table(Console(width=width), table)
        out = capsys.readouterr().out
        assert all(value in out for row in rows for value in row)
        assert max(map(len, out.splitlines())) <= width


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--list"),
        (["hermite", "--scale", "tiny", "--publish", "docs"], "--publish"),
        (["--list", "hermit"], "'hermite'"),
        (["identify-3d"], "'identify-2d'"),
        (["identify-2d", "--workers", "0"], "workers is 0"),
    ],
)
def test_invalid_arguments_are_rejected(words: list[str], message: str, capsys, tmp_path: Path):
    code, _, err = run_command(["reproduce", *words, "--out", str(tmp_path)], capsys)
    assert code == 2 and message in err and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_reproduce_publishes_a_record(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = EXPERIMENTS["hermite"].trials

    def tiny(scale: str, seed: int) -> list[Trial]:
        return whole("tiny", seed)

    monkeypatch.setitem(EXPERIMENTS, "hermite", replace(EXPERIMENTS["hermite"], trials=tiny))
    words = [
        "reproduce",
        "hermite",
        "--out",
        str(tmp_path / "runs"),
        "--publish",
        str(tmp_path / "docs"),
        "--workers",
        "1",
        "--json",
        "-",
    ]
    code, out, err = run_command(words, capsys)
    assert code == 0 and json.loads(out)["records"][0]["about"]["name"] == "hermite"
    assert "Does not hold" in err
    assert "Hermite degrees over training" in (tmp_path / "docs" / "claims.md").read_text()
    assert (tmp_path / "docs" / "results" / "hermite.png").exists()


def test_published_records_have_the_current_titles_and_claims():
    for record in read_results(shipped_results()):
        experiment = EXPERIMENTS[record["about"]["name"]]
        assert record["title"] == experiment.title
        assert record["about"]["claim"]["statement"] == experiment.claim.statement
