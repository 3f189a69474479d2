"""`jepatlas doctor`: versions, devices, extras, rendering, and a five-second self-test."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jepatlas
from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, defer_interrupts, emit
from jepatlas.core.errors import InputError


@dataclass(frozen=True)
class Doctor:
    """Show what is installed, and train and certify a small model as a self-test.

    Example: jepatlas doctor --json -
    """

    seed: int = 0
    """Seed of the self-test."""
    out: Path | None = None
    """Save the answer in this folder, as doctor.json."""
    json: str | None = None
    """Write the answer as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Doctor, "doctor", args)
    with defer_interrupts():
        import torch
        from rich.table import Table

        from jepatlas.core.files import write_json

    answer = {
        "jepatlas": jepatlas.__version__,
        "python": platform.python_version(),
        "devices": devices(),
        "threads": torch.get_num_threads(),
        "requirements": requirements(None),
        "extras": {extra: requirements(extra) for extra in extras()},
        "rendering": rendering(),
        "self_test": self_test(options.seed),
    }
    table = Table("", "", show_header=False, title=f"jepatlas {answer['jepatlas']}", title_justify="left")
    for name, line in _lines(answer):
        table.add_row(name, line)
    console_for(options.json).print(table)
    emit(options.json, answer)
    if options.out is not None:
        write_json(options.out / "doctor.json", answer)
    return 0 if answer["self_test"]["passed"] else 1


def devices() -> list[str]:
    import torch

    gpus = [f"cuda:{i} {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())]
    return ["cpu", *gpus]


def extras() -> list[str]:
    """The optional dependencies for users, without those of developers."""
    return sorted(set(importlib.metadata.metadata("jepatlas").get_all("Provides-Extra") or []) - {"dev"})


def requirements(extra: str | None) -> dict[str, str | None]:
    """The installed version of each requirement, None if it is missing."""
    found: dict[str, str | None] = {}
    for line in importlib.metadata.requires("jepatlas") or []:
        named = re.search(r"extra\s*==\s*['\"](\w+)['\"]", line)
        if (named.group(1) if named else None) == extra:
            package = re.split(r"[\s<>=!~;\[]", line, maxsplit=1)[0]
            found[package] = _version(package)
    return found


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def rendering() -> dict[str, Any]:
    """Whether MuJoCo renders without a screen (EGL), and if not, what to do."""
    import numpy as np

    from jepatlas.worlds import Reacher

    try:
        with Reacher() as world:
            works = bool(np.ptp(world.render(np.zeros((1, 2)))) > 0)
    except InputError as error:
        return {"works": False, "reason": str(error)}
    return {"works": works, "reason": None if works else "The rendered picture is empty."}


def self_test(seed: int) -> dict[str, Any]:
    """Train and certify a short run. It passes if a linear map predicts the states better than chance."""
    from jepatlas.recipes import Recipe
    from jepatlas.training import TrainingConfig
    from jepatlas.workflows.runs import certify_run, start_run

    recipe = Recipe(seed=seed, training=TrainingConfig(steps=150, batch_size=128, checkpoint_every=150))
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        start_run(recipe, run)
        certificate = certify_run(run, samples=2000, seed=seed)
    r2 = next(verdict for verdict in certificate.verdicts if verdict.name == "r2")
    return {"passed": r2.low > max(r2.null or 0.0, 0.05), "r2": r2.value, "steps": recipe.training.steps}


def _lines(answer: dict[str, Any]) -> list[tuple[str, str]]:
    from rich.markup import escape

    versions = ", ".join(f"{name} {version}" for name, version in answer["requirements"].items())
    lines = [
        ("python", answer["python"]),
        ("devices", f"{', '.join(answer['devices'])}; threads {answer['threads']}"),
        ("requirements", versions),
    ]
    for extra, packages in answer["extras"].items():
        missing = [name for name, version in packages.items() if version is None]
        line = f"missing {', '.join(missing)}: pip install 'jepatlas\\[{extra}]'" if missing else "present"
        lines.append((f"extra {extra}", line))
    rendered = answer["rendering"]
    lines.append(("rendering", "works without a screen (EGL)" if rendered["works"] else escape(rendered["reason"])))
    test = answer["self_test"]
    result = "passed" if test["passed"] else "FAILED"
    return [*lines, ("self-test", f"{result}: R² {test['r2']:.2f} after {test['steps']} steps")]
