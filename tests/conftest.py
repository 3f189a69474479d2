"""Pytest configuration: single-threaded processes, fixed Hypothesis examples; skips fail in CI."""

import hashlib
import os
import signal
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

for library in ("OMP", "OPENBLAS", "MKL"):  # read on import, also by child processes
    os.environ[f"{library}_NUM_THREADS"] = "1"

# Child processes share compiled bytecode; otherwise each of them compiles jepatlas again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# numba only notices changes in a function's own file, not in its callees: use a new cache after any change.
sources = (path.read_bytes() for path in sorted((Path(__file__).parents[1] / "src/jepatlas").rglob("*.py")))
compiled = hashlib.sha256(b"".join(source for source in sources if b"numba" in source)).hexdigest()[:16]
os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"jepatlas-numba-{compiled}")

# Restore Ctrl-C: background jobs of a shell ignore it, and child processes would inherit that.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Use the same examples in every run, so that failures are reproducible. New ones: --hypothesis-profile=default.
settings.register_profile("reproducible", derandomize=True)
settings.load_profile("reproducible")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report skipped tests as failures in CI, where all requirements are installed."""
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests on real images, which are not part of the repository, unless JEPATLAS_DATA is set."""
    if os.environ.get("JEPATLAS_DATA"):
        return
    on_images = [item for item in items if item.get_closest_marker("data")]
    config.hook.pytest_deselected(items=on_images)
    items[:] = [item for item in items if item not in on_images]
