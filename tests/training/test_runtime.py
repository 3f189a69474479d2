"""Retaining freed memory avoids page faults."""

from __future__ import annotations

import json

import pytest
from forked import forked_script

from jepatlas.training.runtime import keep_freed_memory

SCRIPT = """
import json, resource, sys
import torch
from jepatlas.training.runtime import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        parts = [torch.ones(2**21) for _ in range(8)]  # 64 MB in all, freed at once
        del parts
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

usual = faults()
kept = keep_freed_memory()
faults()  # takes the pages that are kept
print(json.dumps([usual, kept, faults()]))
"""


def test_pages_are_allocated_once():
    if not keep_freed_memory():
        pytest.skip("this C library cannot be configured to keep freed memory")
    process = forked_script(SCRIPT)
    out, err = process.communicate(60)
    usual, kept, after = json.loads(out or err)
    assert kept and usual > 20_000 and after < 1_000
