"""Many runs at once, over any `concurrent.futures.Executor`; can be stopped and taken up again.

Each job has a folder of its own and leaves a `result.json` there when it is done. Asked again, a sweep runs only
what is missing: a run that came to a verdict is done, one that crashed or was interrupted is not. Whatever becomes
of a job, the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, write_json
from jepatlas.core.provenance import provenance
from jepatlas.training.checkpoint import fingerprint
from jepatlas.training.executors import OpenExecutor
from jepatlas.training.threads import threads

__all__ = ["Job", "SweepResult", "sweep"]

ATTEMPTS = 3  # of a job whose process dies under it


@dataclass(frozen=True)
class Job:
    name: str
    recipe: dict[str, Any]  # plain data


@dataclass(frozen=True)
class SweepResult:
    name: str
    status: str  # what the run returned ("finished", "failed"), or "crashed" with an error
    record: dict[str, Any]
    made: dict[str, Any] | None = None  # version and commit of the code that ran it; None where they were not kept


def sweep(
    jobs: Sequence[Job],
    run: Callable[[dict[str, Any], str], dict[str, Any]],
    folder: Path,
    open_executor: OpenExecutor,
    tell: Callable[[SweepResult], None] = lambda result: None,
) -> list[SweepResult]:
    """Run `run(recipe, folder)` for every job and return the results in the order of the jobs.

    `run` must be importable by the workers; it returns a record with a `status`. Only "finished" and "failed" runs
    count as done: "interrupted" ones are taken up again.
    """
    names = [job.name for job in jobs]
    if doubles := {name for name in names if names.count(name) > 1}:
        raise InputError(f"Every job of a sweep needs its own name, but {sorted(doubles)} occur more than once.")
    done = {job.name: result for job in jobs if (result := _read(folder, job))}
    for _ in range(ATTEMPTS):
        waiting = [job for job in jobs if job.name not in done]
        if not waiting:
            break
        with open_executor() as executor:
            for result in _pass(executor, waiting, run, folder):
                done[result.name] = result
                tell(result)
    lost = [SweepResult(j.name, "crashed", {"error": "its process died"}) for j in jobs if j.name not in done]
    return [(done | {result.name: result for result in lost})[name] for name in names]


def _pass(executor: Executor, jobs: Iterable[Job], run: Callable[..., Any], folder: Path) -> Iterable[SweepResult]:
    futures: dict[Future[Any], Job] = {}
    for job in jobs:
        futures[executor.submit(_on_one_thread, run, job.recipe, str(folder / job.name))] = job
    try:
        for future in as_completed(futures):
            # What was lost with its process or its scheduler is run again by the next pass.
            if not future.cancelled() and not isinstance(future.exception(), BrokenExecutor):
                yield _settle(futures[future], future, folder)
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _settle(job: Job, future: Future[Any], folder: Path) -> SweepResult:
    if error := future.exception():
        return SweepResult(job.name, "crashed", {"error": f"{type(error).__name__}: {error}"})
    made, record = future.result()
    result = SweepResult(job.name, record["status"], record, made)
    if result.status in ("finished", "failed"):
        about = {"recipe": fingerprint(job.recipe), "status": result.status, "made": made}
        write_json(folder / job.name / "result.json", about | {"record": record})
    return result


def _read(folder: Path, job: Job) -> SweepResult | None:
    path = folder / job.name / "result.json"
    if not path.exists():
        return None
    saved = read_json(path)
    if not isinstance(saved, dict) or not {"recipe", "status", "record"} <= saved.keys():
        raise InputError(f"{path} is not the result of a run. Delete it, and the run is taken up again.")
    if saved["recipe"] != fingerprint(job.recipe):
        raise InputError(f"{path} belongs to another recipe of the same name. Choose another folder for this sweep.")
    return SweepResult(job.name, saved["status"], saved["record"], saved.get("made"))


def _on_one_thread(run: Callable[..., Any], recipe: dict[str, Any], folder: str) -> tuple[dict[str, Any], Any]:
    """As many runs as cores, each on one thread unless its recipe asks for more: the cores are not oversubscribed.

    With the record comes the code that made it, asked of the worker and before it runs: a sweep may be taken up by
    later code, and its workers may be elsewhere.
    """
    made = {name: value for name, value in provenance(0).items() if name != "seed"}
    with threads(1):
        return made, run(recipe, folder)
