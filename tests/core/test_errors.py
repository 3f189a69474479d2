"""Errors of missing packages, and suggestions of similar names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from jepatlas.core.errors import InputError, MissingExtra, did_you_mean, require


def test_require_returns_the_module():
    import json.decoder

    assert require("json.decoder", "interop", "Reading") is json.decoder


def test_require_names_purpose_package_and_extra():
    with pytest.raises(MissingExtra) as caught:
        require("no_such_package.part", "sim", "Rendering")
    message = str(caught.value)
    assert message.startswith("Rendering") and "'no_such_package'" in message
    assert message.endswith("pip install 'jepatlas[sim]'")
    assert isinstance(caught.value, InputError) and isinstance(caught.value, ImportError)


def test_require_reports_a_package_that_fails_to_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "broken_package.py").write_text("raise ImportError('libEGL.so.1: cannot open shared object file')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.util.find_spec("broken_package")
    with pytest.raises(MissingExtra, match=r"does not import here \(libEGL") as caught:
        require("broken_package", "sim", "Rendering")
    assert "not installed" not in str(caught.value)


def test_require_names_a_missing_dependency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "half_package.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MissingExtra, match=r"half_package.*No module named 'no_such_dependency'"):
        require("half_package", "sim", "Rendering")
    assert "half_package" not in sys.modules


def test_did_you_mean():
    assert did_you_mean("ro", ["rho", "dim", "limit"]) == "Did you mean 'rho'? Known: dim, limit, rho."
    assert did_you_mean("xyz", ["rho", "dim"]) == "Known: dim, rho."
