"""Compiled kernels where neither the installation nor the user's cache can be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jepatlas

CODE = """
import numpy as np
from jepatlas.core.kernels.distances import squared_distance
from jepatlas.core.kernels.ranks import add_counts
import numba
print(numba.config.CACHE_DIR)
"""


def test_kernels_without_a_place_for_compiled_code(tmp_path: Path):
    package = Path(jepatlas.__file__).parent
    shutil.copytree(package, tmp_path / "jepatlas", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "jepatlas" / "core" / "kernels" / "__pycache__").touch()  # a file, so that no folder can be made
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull, "PYTHONPATH": str(tmp_path)}
    env = {**os.environ, **nowhere, "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=True)
    assert done.stderr.count("XDG_CACHE_HOME") == 1
    folder = Path(done.stdout.strip())
    assert folder.is_absolute() and not folder.exists()  # removed when the process ended
