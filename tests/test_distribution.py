"""The wheel, installed in an environment of its own outside the checkout."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_IMPORT_SECONDS = 0.15
CERTIFICATE = """
import numpy as np
import jepatlas as ja
rng = np.random.default_rng(0)
z, step = rng.standard_normal((2, 1000, 2))
certificate = ja.certify(z, 0.9 * z + np.sqrt(1 - 0.9**2) * step, z, rho=0.9)
certificate.save("run")
certificate.report("page.html")
print(ja.__file__, certificate.passed)
"""


def run(*words: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed; it does not see the checkout."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel, which takes torch and the like from the environment of the tests."""
    place = tmp_path_factory.mktemp("wheel")
    probe = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(place), "hatchling"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("the build backend, hatchling, cannot be downloaded")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", place / "dist", ROOT, cwd=place)
    (wheel,) = (place / "dist").glob("*.whl")
    venv.create(place / "env", symlinks=True)
    python = place / "env" / "bin" / "python"
    install = ("-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    run(sys.executable, *install, cwd=place)
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=place).strip()
    # Unlike a folder of site-packages, an added path does not process .pth files, so the checkout stays unseen.
    Path(site, "packages-of-the-tests.pth").write_text(sysconfig.get_path("purelib"))
    return place / "env" / "bin"


@pytest.mark.slow
def test_the_wheel_certifies_outside_the_checkout(installed: Path, tmp_path: Path):
    file, passed = run(installed / "python", "-c", CERTIFICATE, cwd=tmp_path).split()[-2:]
    assert Path(file).is_relative_to(installed.parent) and passed == "True"
    assert (tmp_path / "run" / "records" / "certificate.json").is_file()
    assert "<html" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_the_wheel_brings_the_command_and_the_published_records(installed: Path, tmp_path: Path):
    assert "identify-2d" in run(installed / "jepatlas", "reproduce", "--list", cwd=tmp_path)


@pytest.mark.slow
def test_the_front_door_of_the_wheel_opens_quickly(installed: Path, tmp_path: Path):
    """CPU time, which other processes on the machine do not lengthen as they do elapsed time."""
    words = (installed / "python", "-c", "import jepatlas as ja; print(dir(ja))")
    assert "certify" in run(*words, cwd=tmp_path)  # compiles the bytecode
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(*words, cwd=tmp_path)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < MAX_IMPORT_SECONDS
