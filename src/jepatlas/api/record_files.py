"""Reads saved records."""

from __future__ import annotations

from pathlib import Path

from jepatlas.core.files import read_json
from jepatlas.core.records import Record
from jepatlas.identifiability import Diagnosis
from jepatlas.reporting.chapters import read_record
from jepatlas.workflows.certify import CertificateRecord

__all__ = ["read_saved_record"]


def read_saved_record(path: Path) -> Record:
    chapter = read_record(path)
    data = read_json(path)
    fields = {name: getattr(chapter, name) for name in ("title", "summary", "provenance", "verdicts")}
    fields |= {name: getattr(chapter, name) for name in ("figures", "tables", "arrays")}
    fields["about"] = data.get("about") or {}
    if "diagnosis" not in data:
        return Record(**fields)
    diagnosis = data["diagnosis"]
    if diagnosis is not None:
        diagnosis = Diagnosis(diagnosis["kind"], diagnosis["sentence"], tuple(diagnosis.get("also", ())))
    return CertificateRecord(**fields, diagnosis=diagnosis, passed=data.get("passed"))
