"""Bars of long loops in a terminal."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from jepatlas.cli import output
from jepatlas.core.progress import track


def screen(monkeypatch: pytest.MonkeyPatch, *, long: float, terminal: bool = True) -> str:
    """What a terminal shows of an outer loop of two rounds and two inner loops of six."""
    monkeypatch.setattr(output, "LONG", long)
    text = io.StringIO()
    with output.loops_shown(Console(file=text, force_terminal=terminal, width=100)):
        for _ in track("outer", 2):
            for _ in track("inner", 6):
                time.sleep(0.05)
        for number in track("later", 60):
            time.sleep(0.05)
            if number == 5:
                break
        for _ in track("last", 6):
            time.sleep(0.05)
    return text.getvalue()


def test_loops_that_take_long_have_a_bar_one_after_the_other(monkeypatch: pytest.MonkeyPatch):
    shown = screen(monkeypatch, long=0.1)
    assert "inner" in shown and "later" in shown and "last" in shown and "0:00:0" in shown
    assert shown.count("\x1b[?25h") == shown.count("\x1b[?25l") >= 3, "the cursor is shown again after each bar"


def test_short_loops_have_none(monkeypatch: pytest.MonkeyPatch):
    assert screen(monkeypatch, long=60.0) == ""


def test_nothing_is_shown_elsewhere_than_in_a_terminal(monkeypatch: pytest.MonkeyPatch):
    assert screen(monkeypatch, long=0.1, terminal=False) == ""
