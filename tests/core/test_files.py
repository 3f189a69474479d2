"""Atomic file writes, tested with real kills and full disks."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.files import cache_folder, read_json, write_bytes, write_folder, write_json, write_text
from jepatlas.core.sealing import sha256_of_file


def contents(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def fill(folder: Path, text: str) -> None:
    (folder / "deep").mkdir()
    (folder / "a").write_text(text)
    (folder / "deep" / "b").write_text(text)


class Stop(Exception):
    pass


def test_write_bytes_replaces_and_creates_parents(tmp_path: Path):
    path = tmp_path / "x" / "y" / "file"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_write_text_is_utf8(tmp_path: Path):
    write_text(tmp_path / "t", "ρ = .95")
    assert (tmp_path / "t").read_bytes() == "ρ = .95".encode()


@pytest.mark.parametrize("place", ["folder", "file/below"])
def test_unwritable_path_is_named(tmp_path: Path, place: str):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match=place):
        write_bytes(tmp_path / place, b"data")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "kept"


def test_write_folder_replaces_the_previous_folder(tmp_path: Path):
    for text in ("one", "two"):
        with write_folder(tmp_path / "new" / "run") as folder:
            fill(folder, text)
            (folder / text).touch()
    assert contents(tmp_path / "new" / "run") == {"a": "two", "deep/b": "two", "two": ""}
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["run"]


@pytest.mark.parametrize("before", [True, False])
def test_failing_writer_keeps_the_previous_folder(tmp_path: Path, before: bool):
    path = tmp_path / "run"
    if before:
        with write_folder(path) as folder:
            fill(folder, "one")
    with pytest.raises(Stop), write_folder(path) as folder:
        fill(folder, "two")
        raise Stop
    assert [p.name for p in tmp_path.iterdir()] == ["run"] * before
    assert not before or contents(path) == {"a": "one", "deep/b": "one"}


@pytest.mark.parametrize("kind", ["file", "link"])
def test_write_folder_never_replaces_files_or_links(tmp_path: Path, kind: str):
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "kept").write_text("kept")
    path = tmp_path / "run"
    if kind == "file":
        path.write_text("kept")
    else:
        path.symlink_to(tmp_path / "target")
    with pytest.raises(InputError, match="run"), write_folder(path) as folder:
        fill(folder, "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "target"]
    assert path.is_symlink() if kind == "link" else path.read_text() == "kept"
    assert contents(tmp_path / "target") == {"kept": "kept"}


def test_write_folder_without_atomic_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Systems other than Linux need two renames; if the second one fails, the previous folder is restored."""
    monkeypatch.setattr(sys, "platform", "darwin")
    path, rename = tmp_path / "run", Path.rename
    for text in ("one", "two"):
        with write_folder(path) as folder:
            fill(folder, text)
    assert contents(tmp_path) == {"run/a": "two", "run/deep/b": "two"}
    failed: list[Path] = []

    def fail_once(source: Path, target: Path) -> Path:
        if target == path and not failed:
            failed.append(source)
            raise OSError(5, "Input/output error")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(InputError, match="run"), write_folder(path) as folder:
        fill(folder, "three")
    assert failed and contents(tmp_path) == {"run/a": "two", "run/deep/b": "two"}
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


WRITE_FOREVER = """
import sys
from pathlib import Path
from jepatlas.core.files import write_folder

number = 0
while True:
    with write_folder(Path(sys.argv[1])) as folder:
        for i in range(30):
            (folder / str(i)).write_text(str(number))
    number += 1
    print(number, flush=True)
"""


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory if available, so that syncing is fast."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges names in one step")
@pytest.mark.parametrize("attempt", range(3))
def test_killed_writer_leaves_a_complete_folder(memory: Path, attempt: int):
    path = memory / "run"
    command = [sys.executable, "-c", WRITE_FOREVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        # a polling reader observes the states that a kill could leave
        end = time.monotonic() + 0.5 + random.Random(attempt).random() / 100
        missing = 0
        while time.monotonic() < end:
            missing += not path.exists()
        child.send_signal(signal.SIGKILL)
        rounds = len(child.stdout.read().splitlines())
    texts = contents(path)
    assert missing == 0
    assert len(texts) == 30 and len(set(texts.values())) == 1
    assert rounds > 10


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root; the next test limits the file size instead")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def write_array(folder: Path) -> None:
    safetensors.numpy.save_file({"h": np.zeros(100_000)}, folder / "h.safetensors")


def write_plain(folder: Path) -> None:
    (folder / "big").write_bytes(bytes(10**6))


def test_full_disk_keeps_the_previous_file(tiny_disk: Path):
    path = tiny_disk / "record.json"
    write_text(path, "before")
    with pytest.raises(InputError, match=r"record\.json: No space left on device"):
        write_bytes(path, bytes(10**6))
    assert path.read_text() == "before"
    assert [p.name for p in tiny_disk.iterdir()] == ["record.json"]


@pytest.mark.parametrize("write", [write_array, write_plain])
def test_full_disk_keeps_the_previous_folder(tiny_disk: Path, write):
    with write_folder(tiny_disk / "step-1") as folder:
        fill(folder, "before")
    with pytest.raises(InputError, match=r"step-1: .*No space left"), write_folder(tiny_disk / "step-1") as folder:
        write(folder)
    assert contents(tiny_disk) == {"step-1/a": "before", "step-1/deep/b": "before"}
    assert [p.name for p in tiny_disk.iterdir()] == ["step-1"]


def test_file_size_limit_keeps_the_previous_file(tmp_path: Path):
    path = tmp_path / "record.json"
    write_text(path, "before")
    script = f"""
        import resource, signal
        from pathlib import Path
        from jepatlas.core.files import write_bytes
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        write_bytes(Path({str(path)!r}), bytes(10_000))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert f"InputError: Could not write {path}: File too large" in done.stderr
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["record.json"]


def test_other_safetensors_errors_are_not_reported_as_write_errors(tmp_path: Path):
    with pytest.raises(safetensors.SafetensorError), write_folder(tmp_path / "run") as folder:
        safetensors.numpy.save_file({"h": np.array(["text"])}, folder / "h.safetensors")
    assert not list(tmp_path.iterdir())


def test_json_stores_infinite_and_nan_as_text(tmp_path: Path):
    write_json(tmp_path / "r.json", {"a": [math.inf, (-math.inf, math.nan)], "b": {"c": 1.5}, "d": None, "e": True})
    assert read_json(tmp_path / "r.json") == {"a": ["inf", ["-inf", "nan"]], "b": {"c": 1.5}, "d": None, "e": True}
    assert "Infinity" not in (tmp_path / "r.json").read_text()


def test_json_accepts_numpy_scalars(tmp_path: Path):
    value = {
        "f64": np.float64("nan"),
        "f32": np.float32(0.5),
        "inf": np.float32("inf"),
        "i": np.int64(2**53 + 1),
        "b": np.bool_(False),
        "s": np.str_("x"),
        np.int64(7): [np.uint8(3)],
    }
    write_json(tmp_path / "r.json", value)
    read = read_json(tmp_path / "r.json")
    assert read == {"f64": "nan", "f32": 0.5, "inf": "inf", "i": 2**53 + 1, "b": False, "s": "x", "7": [3]}
    assert read["b"] is False


def test_json_rejects_data_that_is_not_plain_and_keeps_the_file(tmp_path: Path):
    write_json(tmp_path / "r.json", 1)
    with pytest.raises(TypeError):
        write_json(tmp_path / "r.json", {"array": np.zeros(3)})
    assert read_json(tmp_path / "r.json") == 1


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def as_text(value):
    if isinstance(value, list):
        return [as_text(item) for item in value]
    if isinstance(value, dict):
        return {key: as_text(item) for key, item in value.items()}
    return str(value) if isinstance(value, float) and value - value != 0 else value


@given(plain)
@settings(max_examples=50)
def test_json_round_trip(tmp_path_factory: pytest.TempPathFactory, value):
    path = tmp_path_factory.getbasetemp() / "round.json"
    write_json(path, value)
    assert read_json(path) == as_text(value)
    json.loads(path.read_text(), parse_constant=pytest.fail)  # strict JSON


def test_invalid_json_is_rejected(tmp_path: Path):
    path = tmp_path / "r.json"
    with pytest.raises(InputError, match=r"r\.json"):
        read_json(path)
    with pytest.raises(InputError, match="Is a directory"):
        read_json(tmp_path)
    write_json(path, {"verdicts": [1, 2, 3]})
    whole = path.read_bytes()
    for length in range(len(whole) - 2):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"r\.json is not valid JSON .*cut short"):
            read_json(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not valid JSON"):
        read_json(path)


def test_sha256_matches_coreutils(tmp_path: Path):
    path = tmp_path / "data"
    path.write_bytes(os.urandom(100_000))
    output = subprocess.run(["sha256sum", str(path)], capture_output=True, text=True, check=True).stdout
    assert output.split()[0] == sha256_of_file(path)


def test_cache_folder_uses_the_environment_or_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "jepatlas"
    for none in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", none)
        assert cache_folder() == Path.home() / ".cache" / "jepatlas"
