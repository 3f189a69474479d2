"""Verbs called as a person calls them: exit codes, what is printed, what is left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training.small import call
from workflows.align.models import write

__all__ = ["Captured", "answer", "files", "one_array", "refused"]

Captured = pytest.CaptureFixture[str]


def answer(capsys: Captured, *words: str | Path) -> dict[str, Any]:
    """What a verb that succeeds writes to standard output, which is JSON and nothing else."""
    assert call(*words, "--json", "-") == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: Captured, *words: str | Path) -> str:
    """The message of a verb that refuses: exit code 2, no traceback, and the files that there were."""
    before = files()
    assert call(*words) == 2
    out, err = capsys.readouterr()
    assert "Traceback" not in err and out == ""
    assert files() == before
    return " ".join(err.split())


def files() -> dict[str, bytes]:
    """All files below the working directory, without what Python compiles from modules."""
    found = [path for path in Path().rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(path): path.read_bytes() for path in found}


def one_array(path: str, array: np.ndarray) -> Path:
    """A file of ids, labels or groups, in whatever format."""
    if path.endswith(".txt"):
        Path(path).write_text("\n".join(map(str, array)))
        return Path(path)
    return write(path, values=array)
