"""Sweeps over processes and a dask cluster: equal records despite failing or killed workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from training.jobs import job, small_run
from training.small import ENV, WORDS, call, children, forked_command, gone, recipe, same, until

from jepatlas.cli.sweep import make_jobs
from jepatlas.core.config import to_plain
from jepatlas.core.errors import InputError
from jepatlas.recipes import Recipe, read_recipe
from jepatlas.training import Job, dask_cluster, local_processes, sweep
from jepatlas.workflows.runs import run_job, start_run
from jepatlas.worlds import LatentWorld, ParabolicShear

MIXED = ["fine", "raise", "die", "fine", "die once", "fail", "stop", "fine"]


def jobs(*kinds: str) -> list[Job]:
    return [Job(f"{i}-{kind.replace(' ', '-')}", {"do": kind, "value": i}) for i, kind in enumerate(kinds)]


def calls(folder: Path) -> dict[str, int]:
    return {path.parent.name: len(path.read_text().splitlines()) for path in sorted(folder.glob("*/calls"))}


def threads() -> AbstractContextManager[Any]:
    return ThreadPoolExecutor(2)


@pytest.mark.slow
def test_failing_job_does_not_affect_the_others(tmp_path: Path):
    reported = []
    results = sweep(jobs(*MIXED), job, tmp_path, local_processes(2), on_result=reported.append)
    assert [result.status for result in results] == [
        "finished",
        "crashed",
        "crashed",
        "finished",
        "finished",
        "failed",
        "interrupted",
        "finished",
    ]
    assert [result.name for result in results] == [j.name for j in jobs(*MIXED)]
    assert results[1].record == {"error": "ZeroDivisionError: on purpose"}
    assert results[2].record == {"error": "its process died"}
    assert results[7].record["value"] == 14
    assert {result.name for result in reported} == {result.name for result in results} - {"2-die"}
    assert calls(tmp_path) == {
        "0-fine": 1,
        "1-raise": 1,
        "2-die": 3,
        "3-fine": 1,
        "4-die-once": 2,
        "5-fail": 1,
        "6-stop": 1,
        "7-fine": 1,
    }
    assert {path.parent.name for path in tmp_path.glob("*/result.json")} == {
        "0-fine",
        "3-fine",
        "4-die-once",
        "5-fail",
        "7-fine",
    }


def test_only_missing_results_are_computed(tmp_path: Path):
    first = sweep(jobs("fine", "raise", "fail", "stop"), job, tmp_path, threads)
    again = sweep(jobs("fine", "raise", "fail", "stop"), job, tmp_path, threads)
    assert first == again
    assert calls(tmp_path) == {"0-fine": 1, "1-raise": 2, "2-fail": 1, "3-stop": 2}
    written = json.loads((tmp_path / "0-fine" / "result.json").read_text())
    assert written["record"] == {"status": "finished", "value": 0}


def test_no_pool_is_opened_when_all_results_exist(tmp_path: Path):
    sweep(jobs("fine"), job, tmp_path, threads)

    def never() -> AbstractContextManager[Any]:
        raise AssertionError("all results exist")

    assert sweep(jobs("fine"), job, tmp_path, never)[0].status == "finished"


def test_invalid_names_and_results_are_rejected(tmp_path: Path):
    with pytest.raises(InputError, match=r"\['a'\]"):
        sweep([Job("a", {}), Job("a", {}), Job("b", {})], job, tmp_path, threads)
    sweep(jobs("fine"), job, tmp_path, threads)
    with pytest.raises(InputError, match=r"result\.json"):
        sweep([Job("0-fine", {"do": "fine", "value": 9})], job, tmp_path, threads)
    (tmp_path / "0-fine" / "result.json").write_text("[]")
    with pytest.raises(InputError, match=r"result\.json"):
        sweep(jobs("fine"), job, tmp_path, threads)
    with pytest.raises(InputError, match=r"workers .*0"):
        local_processes(0)


@pytest.mark.slow
def test_started_run_of_another_recipe_is_rejected(tmp_path: Path):
    start_run(recipe(steps=5), tmp_path / "run")
    with pytest.raises(InputError, match="recipe"):
        run_job(to_plain(recipe(steps=6)), str(tmp_path / "run"))
    assert run_job(to_plain(recipe(steps=5, log_every=1)), str(tmp_path / "run"))["status"] == "finished"


def six() -> list[Job]:
    grid = make_jobs(recipe(steps=40), ("mixing=spiral,coupling,sinusoidal-shear", "lr=1e-3,1e-2"))
    assert len({str(j.recipe) for j in grid}) == len({j.name for j in grid}) == 6
    return grid


@pytest.mark.slow
def test_processes_and_dask_give_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("GIT_DIR", str(tmp_path))  # records contain the commit, which may change during the test
    pool = sweep(six(), small_run, tmp_path / "pool", local_processes(2))
    assert [result.status for result in pool] == ["finished"] * 6
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        address = cluster.scheduler_address
        dask = sweep(six(), small_run, tmp_path / "dask", dask_cluster(address))
        assert dask == pool
        assert len({r.record["verdicts"][0]["value"] for r in pool}) == 6  # and the records differ
        files = [path.relative_to(tmp_path / "pool") for path in (tmp_path / "pool").rglob("*") if path.is_file()]
        assert len(files) >= 6 * 6
        for file in files:
            assert (tmp_path / "pool" / file).read_bytes() == (tmp_path / "dask" / file).read_bytes(), file
        mixed = sweep(jobs("fine", "raise", "die once", "fine"), job, tmp_path / "mixed", dask_cluster(address))
        assert [result.status for result in mixed] == ["finished", "crashed", "finished", "finished"]
        until(lambda: not clients(cluster.scheduler), seconds=10)
    assert distributed.Client._instances is not None
    assert not [client for client in distributed.Client._instances if client.status != "closed"]


def clients(scheduler: Any) -> list[str]:
    return [name for name in scheduler.clients if not name.startswith("fire-and-forget")]


@pytest.mark.slow
def test_unreachable_scheduler_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("distributed")
    for address in ("what://x", "127.0.0.1:1"):
        assert call("sweep", *WORDS, "--steps", "3", "--dask", address, "--out", tmp_path / "sweep") == 2
        err = capsys.readouterr().err
        assert address in err
        assert "Traceback" not in err


SWEEP = ["sweep", *WORDS, "--vary", "seed=0,1", "--steps", "300", "--checkpoint-every", "50", "--workers", "1"]
on_linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers through /proc")


@pytest.mark.slow
@on_linux
def test_stopped_sweep_continues_with_missing_jobs(tmp_path: Path):
    out = tmp_path / "grid"
    process = forked_command(*SWEEP, "--out", out)
    until((out / "seed=0" / "result.json").exists)
    workers = children(process.pid)
    assert workers
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    until(lambda: all(gone(pid) for pid in workers), seconds=20)
    assert not (out / "seed=1" / "result.json").exists()
    first = (out / "seed=0" / "result.json").stat().st_mtime_ns
    assert call(*SWEEP, "--out", out) == 0
    assert (out / "seed=0" / "result.json").stat().st_mtime_ns == first
    start_run(recipe(1, steps=300, checkpoint_every=50), tmp_path / "whole")
    assert same(tmp_path / "whole", out / "seed=1")


SLEEPER = """
import sys, time
from jepatlas.training import local_processes
if __name__ == "__main__":
    with local_processes(1)() as executor:
        print(executor.submit(time.sleep, 0).result(), flush=True)
        executor.submit(time.sleep, 600).result()
"""


@pytest.mark.slow
@on_linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_sweep(number: signal.Signals, tmp_path: Path):
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    line = [sys.executable, str(tmp_path / "sleeper.py")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "None\n"
        workers = children(process.pid)
        assert workers
        process.send_signal(number)
        process.wait(30)
    until(lambda: all(gone(pid) for pid in workers), seconds=20)


@pytest.mark.slow
def test_pool_leaves_no_processes():
    with local_processes(2)() as executor:
        pids = {future.result() for future in [executor.submit(os.getpid) for _ in range(8)]}
        assert os.getpid() not in pids
        assert 1 <= len(pids) <= 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_grid_contains_all_combinations(tmp_path: Path):
    base = replace(Recipe(), seed=5)
    grid = make_jobs(base, ("mixing=spiral,parabolic-shear", "objective.weight=0.1,1e-3"))
    assert [j.name for j in grid] == [
        "mixing=spiral_objective.weight=0.1",
        "mixing=spiral_objective.weight=1e-3",
        "mixing=parabolic-shear_objective.weight=0.1",
        "mixing=parabolic-shear_objective.weight=1e-3",
    ]
    (tmp_path / "recipe.yaml").write_text(json.dumps(grid[3].recipe))  # JSON is YAML
    read = read_recipe(tmp_path / "recipe.yaml")
    assert read.seed == 5
    assert read.world == LatentWorld(base.world.law, ParabolicShear())
    assert getattr(read.objective, "weight", None) == 1e-3
    assert [j.name for j in make_jobs(base, ())] == ["run"]
