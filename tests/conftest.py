"""One thread everywhere: the same bits in every process, and no more threads than cores. In CI, a skip is a failure."""

import hashlib
import os
import signal
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

for library in ("OMP", "OPENBLAS", "MKL"):  # read when numpy and torch are loaded: here, and in every process we start
    os.environ[f"{library}_NUM_THREADS"] = "1"

# What the processes that we start have compiled is kept, or each of them would compile all of jepatlas again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# numba's cache knows of changes in a function's own file alone, not in those that it calls: any change, a new cache.
sources = (path.read_bytes() for path in sorted((Path(__file__).parents[1] / "src/jepatlas").rglob("*.py")))
compiled = hashlib.sha256(b"".join(source for source in sources if b"numba" in source)).hexdigest()[:16]
os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"jepatlas-numba-{compiled}")

# Whatever started the tests may ignore Ctrl-C (a shell's background job does), and children would inherit that.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The same examples in every run: what fails here fails everywhere. Look for others with --hypothesis-profile=default.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a machine cannot run is skipped with the reason; the machine that decides must be able to run all."""
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Real images are no part of the project: tests on them are left out, and counted, where there are none."""
    if os.environ.get("JEPATLAS_DATA"):
        return
    without = [item for item in items if item.get_closest_marker("data")]
    config.hook.pytest_deselected(items=without)
    items[:] = [item for item in items if item not in without]
