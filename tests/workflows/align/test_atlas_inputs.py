"""Charts from latents, and certificate summaries from records of `jepatlas certify`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jepatlas.alignment import Latents
from jepatlas.core.errors import InputError
from jepatlas.core.files import write_json
from jepatlas.core.records import Estimate, Verdict
from jepatlas.workflows.align.atlas_inputs import certificate_summary, chart_latents, read_certificate
from jepatlas.workflows.certify import certificate


def bound(name: str, value: float, threshold: float | None = 1.0) -> Verdict:
    estimate = Estimate(value, value - 0.1, value + 0.1, 500)
    return Verdict.judge(name, estimate, direction="lower", threshold=threshold, good="")


def test_rows_without_ids_are_numbered():
    h, ids = np.ones((3, 2)), np.array(["x", "y", "z"])
    np.testing.assert_array_equal(chart_latents(Latents("ada", h)).ids, [0, 1, 2])
    found = chart_latents(Latents("ada", h, ids, groups=ids))
    assert found.name == "ada" and found.groups is ids
    np.testing.assert_array_equal(found.ids, ids)


def test_tighter_bound_is_kept_with_its_coordinates():
    raw, white = bound("bound", 0.5), bound("bound_whitened", 0.3)
    found = certificate_summary([raw, bound("r2", 0.1), white])
    assert found is not None and found.whitened and found.identified
    assert (found.bound.value, found.bound.high, found.bound.n) == (0.3, pytest.approx(0.4), 500)
    other = certificate_summary([bound("bound", 0.2), white])
    assert other is not None and not other.whitened
    failed = certificate_summary([bound("bound", 3.0)])
    assert failed is not None and not failed.identified
    assert certificate_summary([bound("r2", 0.9)]) is None


@pytest.mark.parametrize(
    ("content", "identified"),
    [
        ({"passed": True, "diagnosis": None}, True),
        ({"passed": True, "diagnosis": {"kind": "rotation"}}, True),
        ({"passed": False, "diagnosis": None}, False),  # a failed audit
        ({"passed": False, "diagnosis": {"kind": "warp"}}, False),
        ({"diagnosis": {"kind": "warp"}}, False),
        ({"passed": None, "diagnosis": {"kind": "undecided"}}, None),
        ({"passed": None, "diagnosis": None}, None),
    ],
)
def test_identified_needs_a_passed_certificate(content: dict, identified: bool | None, tmp_path: Path):
    write_json(tmp_path / "c.json", {"verdicts": [bound("bound", 0.5).to_json()]} | content)
    found = read_certificate(tmp_path / "c.json")
    assert found.identified is identified and found.bound.value == 0.5
    bad = {"verdicts": [bound("bound", 3.0).to_json()]} | content
    write_json(tmp_path / "bad.json", bad)
    assert read_certificate(tmp_path / "bad.json").identified is False


def test_certificate_of_another_width_is_rejected(tmp_path: Path):
    h = np.random.default_rng(0).standard_normal((400, 4))
    given = certificate("c", {"h": h, "h_next": 0.9 * h + 0.1 * h[::-1]}, rho=0.9, seed=0)
    write_json(tmp_path / "c.json", given.to_json())
    assert read_certificate(tmp_path / "c.json", Latents("ada", h)).bound.n > 0
    with pytest.raises(InputError, match=r"c\.json .* 4 dimensions.* ben .*6"):
        read_certificate(tmp_path / "c.json", Latents("ben", np.ones((5, 6))))


def test_saved_certificate_gives_the_same_summary(tmp_path: Path):
    verdicts = [bound("bound", 0.5), bound("bound_whitened", float("inf"))]
    write_json(tmp_path / "c.json", {"verdicts": [verdict.to_json() for verdict in verdicts]})
    assert read_certificate(tmp_path / "c.json") == certificate_summary(verdicts)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "no list of verdicts"),
        ({"verdicts": 3}, "no list of verdicts"),
        ({"verdicts": [3]}, "not a saved verdict"),
        ({"verdicts": [{"name": "bound"}]}, "not a saved verdict"),
        ({"verdicts": []}, "has no bound"),
    ],
)
def test_invalid_certificate_files_are_rejected(content: object, message: str, tmp_path: Path):
    write_json(tmp_path / "c.json", content)
    with pytest.raises(InputError, match=message):
        read_certificate(tmp_path / "c.json")
    with pytest.raises(InputError, match=r"none\.json"):
        read_certificate(tmp_path / "none.json")
