"""Models of jepatlas in repositories of the HuggingFace Hub.

README.md                 the model card, with the checks of the records
encoder.safetensors       or map, probe, energy: one file; an atlas is the folder `atlas`
records/NAME.json         records, such as the certificate, without figures

Files with code, pickles and programs are neither written nor downloaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import cache_folder, write_text
from jepatlas.core.records import Record, Verdict
from jepatlas.core.verdict_names import plain_name

__all__ = ["ATLAS", "CARD", "FILES", "download", "is_repository_name", "upload", "write_card"]

FILES = ("encoder", "map", "probe", "energy")
"""Names of model files, without `.safetensors`."""
ATLAS = "atlas"
CARD = "README.md"
ALLOWED = ["*.safetensors", "*.json", CARD]
NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")
PURPOSE = "Repositories of the HuggingFace Hub"
WHAT = {
    "encoder": "An encoder",
    "map": "An affine map between the latents of two models",
    "probe": "A linear probe on latents",
    "energy": "A learned energy: the cost to go from one state to another, with direction",
    ATLAS: "An atlas: maps from the latents of several models to a common frame",
}
LOADED = {
    "encoder": "h = model.encode(x)",
    "map": "y = model.apply(x)",
    "probe": "labels = model.predict(h)",
    "energy": "energy = model.model()  # an nn.Module: energy(x, y)",
    ATLAS: "model.map(source, target)",
}


def is_repository_name(text: str) -> bool:
    """Whether a text has the form user/name or user/name@revision."""
    return NAME.fullmatch(text) is not None


def write_card(folder: Path, kind: str, repository: str, records: Mapping[str, Record]) -> None:
    """Write the model card and the records of a folder that holds one model."""
    for name, record in records.items():
        replace(record, figures=(), arrays={}).save(folder, name)  # figures show samples of the data
    front = "---\nlibrary_name: jepatlas\ntags:\n- jepatlas\n- jepa\n- world-model\n---\n"
    lines = [
        front,
        f"# {repository.rpartition('/')[2]}",
        "",
        f"{WHAT[kind]}, made by jepatlas. The file holds tensors and a plain description; nothing is unpickled.",
        "",
        "```python",
        "import jepatlas as ja",
        "",
        f'model = ja.load("{repository}")',
        LOADED[kind],
        "```",
    ]
    for record in records.values():
        lines += _section(record)
    if not records:
        lines += ["", "No certificate was uploaded with this model."]
    write_text(folder / CARD, "\n".join(lines) + "\n")


def _section(record: Record) -> list[str]:
    checks = [verdict for verdict in record.verdicts if verdict.threshold is not None]
    lines = ["", f"## {record.title}", "", record.summary]
    if checks:
        lines += ["", "| check | value | 95% interval | required | result |", "|---|---|---|---|---|"]
        lines += [_row(verdict) for verdict in checks]
    made = ", ".join(f"{name} {value}" for name, value in record.provenance.items())
    return [*lines, "", f"Made with {made}."]


def _row(verdict: Verdict) -> str:
    sign = "≥" if verdict.direction == "higher" else "≤"
    cells = [
        f"{plain_name(verdict.name)} (`{verdict.name}`)",
        f"{verdict.value:.4g}",
        f"{verdict.low:.4g} … {verdict.high:.4g}",
        f"{sign} {verdict.threshold:.4g}",
        verdict.status,
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def upload(folder: Path, repository: str, *, private: bool, token: str | None) -> str:
    """Upload a folder as one commit to a repository, which is created if there is none; returns its address."""
    library = _library()
    api: Any = library.HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token)
    try:
        made = api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=made.repo_id, folder_path=folder, allow_patterns=ALLOWED, commit_message="Upload by jepatlas"
        )
    except _failures(library) as error:
        raise InputError(f"'{repository}' could not be uploaded: {_first_line(error)}") from error
    return str(made)


def download(repository: str) -> Path:
    """The folder of a repository, of the main branch or of user/name@revision, with plain files instead of links."""
    name, _, revision = repository.partition("@")
    library = _library()
    place = cache_folder() / "hub" / name.replace("/", "--") / (revision or "main").replace("/", "--")
    try:
        found = library.snapshot_download(
            name,
            revision=revision or None,
            endpoint=os.environ.get("HF_ENDPOINT"),
            local_dir=place,
            allow_patterns=ALLOWED,
        )
    except _failures(library) as error:
        raise InputError(
            f"There is no file or folder {repository}, and as a repository it could not be downloaded from the "
            f"HuggingFace Hub: {_first_line(error)}"
        ) from error
    return Path(found)


def _library() -> Any:
    return require("huggingface_hub", "interop", PURPOSE)


def _failures(library: Any) -> tuple[type[Exception], ...]:
    """Errors of the server (OSError in huggingface_hub), of the network and of names."""
    httpx = require("httpx", "interop", PURPOSE)
    return (OSError, ValueError, httpx.HTTPError, library.errors.HfHubHTTPError)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0] or type(error).__name__
