"""`python -m benchmarks`: what it is called with, and what it writes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks import __main__ as bench
from benchmarks.measurement import Comparison

from jepatlas.core.files import read_json, write_json


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two suites that take no time, one of them measured before."""
    rows = [Comparison("one", 2.0, 1.0, 2.0)]
    monkeypatch.setattr(bench, "SUITES", dict.fromkeys(("maps", "iqe"), SimpleNamespace(run=lambda: rows)))
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "benchmarks.json")
    monkeypatch.setattr(bench.torch, "set_num_threads", lambda count: None)
    write_json(tmp_path / "benchmarks.json", {"maps": {"version": "1", "commit": "c", "seed": 0, "rows": []}})
    return tmp_path / "benchmarks.json"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--help"], 0, "usage: python -m benchmarks"),
        (["mapps"], 2, "there is no suite 'mapps'. Did you mean 'maps'? Known: iqe, maps."),
        (["--fast"], 2, "unrecognized arguments: --fast"),
    ],
)
def test_help_and_unknown_suites(words: list[str], code: int, said: str, results: Path, capsys) -> None:
    before = results.read_bytes()
    with pytest.raises(SystemExit) as stopped:
        bench.main(words)
    out, err = capsys.readouterr()
    assert stopped.value.code == code and said in " ".join((out + err).split())
    assert results.read_bytes() == before


def test_only_what_was_asked_for_is_written(results: Path, capsys) -> None:
    before = results.read_bytes()
    bench.main(["iqe"])
    assert results.read_bytes() == before and not results.with_suffix(".md").exists()
    assert "iqe" in capsys.readouterr().out
    bench.main(["iqe", "--publish"])
    kept = read_json(results)
    assert list(kept) == ["maps", "iqe"] and kept["maps"]["rows"] == [] and len(kept["iqe"]["rows"]) == 1
    assert "## iqe" in results.with_suffix(".md").read_text()
