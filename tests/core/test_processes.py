"""Limits on CPU threads."""

from __future__ import annotations

import numpy  # noqa: F401  (loads its BLAS)
import pytest
import torch
from threadpoolctl import threadpool_info

from jepatlas.core.errors import InputError
from jepatlas.core.processes import limited_threads


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info()} | {torch.get_num_threads()}


def test_threads_are_limited_within_the_block_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = threads()
    with limited_threads(2):
        assert threads() == {2}
        with limited_threads():
            assert threads() == {1}
        assert threads() == {2}
    assert threads() == before


def test_the_environment_sets_the_largest_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with limited_threads(2):
        assert threads() == {1}


def test_no_threads_are_refused() -> None:
    with pytest.raises(InputError, match="threads"), limited_threads(0):
        pass
