"""Energies ported to other models: equality through the map, audit, and loss of accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workflows.energy.tiny import GRID, TRUTH, linear_map, saved

from jepatlas.alignment import Latents
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Record, Verdict
from jepatlas.energy import SquaredL2Config
from jepatlas.workflows.align import match
from jepatlas.workflows.energy import migrate_energy, port_energy
from jepatlas.workflows.energy.fitted_energy import all_pairs

POINTS = GRID.observe(GRID.positions)


def verdict(record: Record, name: str) -> Verdict:
    return next(one for one in record.verdicts if one.name == name)


@given(st.integers(0, 2**31), st.integers(1, 4))
@settings(max_examples=8, deadline=None)
def test_an_invertible_map_preserves_the_energy(seed: int, dim: int):
    rng = np.random.default_rng(seed)
    turn, stretch = np.linalg.qr(rng.standard_normal((dim, dim)))[0], np.diag(rng.uniform(0.2, 5, dim))
    to_source = LinearMap(turn @ stretch, rng.standard_normal(dim), rng.standard_normal(dim))
    source = rng.standard_normal((15, dim))
    target = to_source.invert().apply(source)
    ported = port_energy(saved(dim, seed=seed % 7), to_source, source, target)
    here = all_pairs(saved(dim, seed=seed % 7).model(), source)
    np.testing.assert_allclose(ported.energies, here, rtol=1e-3, atol=1e-3 * here.max())
    assert ported.audit.passed and ported.saved.model().guaranteed_quasimetric
    assert verdict(ported.record, "agreement").value > 0.999
    assert (
        "On B the energy learned on A is a quasimetric. Spearman correlation between both: 1.000."
        in ported.record.summary
    )


def test_a_map_that_is_not_injective_gives_a_pseudo_quasimetric():
    """A floor separates points of the source, but not points of the target that the map merges."""
    one = saved(2, floor=0.5)
    flat = LinearMap(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), np.zeros(3), np.zeros(2))
    target = np.c_[np.repeat(POINTS, 2, 0), np.tile([0.0, 1.0], 16)]
    ported = port_energy(one, flat, np.repeat(POINTS, 2, 0), target)
    assert not one.model().pseudo and ported.saved.model().pseudo
    assert ported.energies[0, 1] == 0 == ported.energies[1, 0]
    assert ported.audit.passed and "declared as pseudo" in ported.audit["indiscernibles"].advice
    wide = LinearMap(np.array([[1.0], [2.0]]), np.zeros(1), np.zeros(2))  # injective
    assert not one.ported(wide).model().pseudo


def test_the_loss_is_measured_against_the_truth():
    one = saved(2)
    truth = all_pairs(one.model(), POINTS)
    same = port_energy(
        one, LinearMap(np.eye(2), np.zeros(2), np.zeros(2)), POINTS, POINTS, truth=truth, names=("Ada", "Ben")
    )
    assert (
        verdict(same.record, "spearman_lost").value == pytest.approx(0)
        and same.record.title == "Energy of Ada ported to Ben"
    )
    assert "1.000 on Ada, 1.000 on Ben" in same.record.summary
    noise = np.random.default_rng(0).standard_normal(POINTS.shape)
    off = port_energy(one, LinearMap(np.eye(2), np.zeros(2), np.zeros(2)), POINTS, noise, truth=truth)
    lost = verdict(off.record, "spearman_lost")
    assert lost.passed is False and lost.value > 0.3 and verdict(off.record, "agreement").passed is False
    assert lost.value == pytest.approx(
        verdict(off.record, "spearman_source").value - verdict(off.record, "spearman").value
    )


def test_the_summary_has_the_one_way_auc():
    ported = port_energy(saved(2), LinearMap(np.eye(2), np.zeros(2), np.zeros(2)), POINTS, POINTS, truth=TRUTH)
    assert f"{ported.audit['one_way_auc'].value:.3f}" in ported.record.summary


def test_an_energy_that_is_not_a_quasimetric_is_not_one_when_ported():
    ported = port_energy(saved(2, head=SquaredL2Config()), linear_map(2, 2), POINTS, POINTS)
    assert not ported.saved.model().guaranteed_quasimetric and "not a quasimetric" in ported.record.summary


def test_migration_fits_and_evaluates_on_different_rows():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((80, 2))
    b = a @ rng.standard_normal((2, 3)) + 0.01 * rng.standard_normal((80, 3))
    found = migrate_energy(match(Latents("ada", a), Latents("ben", b)), saved(2), states=20)
    about = found.record.provenance
    assert (about["states"], about["pairs fitted"], about["pairs held out"], about["map"]) == (20, 40, 40, "ridge")
    assert found.map.weight.shape == (2, 3) and found.saved.dim == 3
    assert (
        verdict(found.record, "agreement").value > 0.99 and verdict(found.record, "pairs_beyond_dimensions").value == 37
    )
    np.testing.assert_allclose(found.map.apply(b), a, atol=0.1)
    with pytest.raises(InputError, match=r"\b3\b.*ada.*\b2\b"):
        migrate_energy(match(Latents("ada", a), Latents("ben", b)), saved(3))


def test_unrelated_latents_do_not_agree():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 120, 2))
    found = migrate_energy(match(Latents("ada", a), Latents("eve", b)), saved(2))
    assert verdict(found.record, "agreement").passed is False
