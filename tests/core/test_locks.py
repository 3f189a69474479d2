"""Locks and temporary names, tested with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.locks import temporary_name, writer_lock

HOLD = """
import sys, time
from pathlib import Path
from jepatlas.core.locks import writer_lock

with writer_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""

COUNT = """
import sys, time
from pathlib import Path
from jepatlas.core.locks import writer_lock

counter = Path(sys.argv[1])
for _ in range(50):
    with writer_lock(counter, wait=True):
        value = int(counter.read_text())
        time.sleep(0.0005)
        counter.write_text(str(value + 1))
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_lock_names_its_owner_and_ends_with_it(tmp_path: Path):
    process = holder(tmp_path / "run")
    try:
        with pytest.raises(InputError, match=rf"process {process.pid} on"), writer_lock(tmp_path / "run"):
            pass
        with writer_lock(tmp_path / "other"):
            pass
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with writer_lock(tmp_path / "run"):
        assert [path.name for path in tmp_path.iterdir()] == [".run.lock"]
    assert list(tmp_path.iterdir()) == []


def test_lock_is_for_one_thread_which_may_enter_it_again(tmp_path: Path):
    refused = []

    def other() -> None:
        try:
            with writer_lock(tmp_path / "run"):
                pass
        except InputError as error:
            refused.append(str(error))

    with writer_lock(tmp_path / "run"), writer_lock(tmp_path / "sub" / ".." / "run"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1 and f"process {os.getpid()}" in refused[0]
    other()
    assert len(refused) == 1


def test_waiting_writers_lose_nothing(tmp_path: Path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", COUNT, str(counter)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert counter.read_text() == "150"


def test_threads_write_one_file(tmp_path: Path):
    """Each of many concurrent writes succeeds, and the file holds the data of one of them."""
    path = tmp_path / "file"
    failures = []

    def write(letter: bytes) -> None:
        for _ in range(40):
            try:
                write_bytes(path, letter * 10_000)
            except InputError as error:
                failures.append(error)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert path.read_bytes() in {letter * 10_000 for letter in (b"a", b"b", b"c")}
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_temporary_files_of_dead_processes_are_removed(tmp_path: Path):
    code = "import sys; from pathlib import Path; from jepatlas.core.locks import temporary_name as t; "
    code += "p = t(Path(sys.argv[1])); p.touch(); q = t(Path(sys.argv[1])); q.mkdir(); (q / 'deep').touch()"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "file")], check=True)
    assert len(list(tmp_path.iterdir())) == 2
    own = temporary_name(tmp_path / "other")  # of this process, which lives
    own.touch()
    user = tmp_path / ".file.notes.part"
    user.touch()
    write_bytes(tmp_path / "file", b"data")
    assert {path.name for path in tmp_path.iterdir()} == {own.name, "file", user.name}


def test_lock_in_a_place_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file"), writer_lock(tmp_path / "file" / "run"):
        pass


def test_holder_is_waited_for(tmp_path: Path):
    process = holder(tmp_path / "run")
    threading.Timer(0.3, process.kill).start()
    started = time.monotonic()
    with writer_lock(tmp_path / "run", wait=True):
        assert time.monotonic() - started > 0.2
    process.wait()
