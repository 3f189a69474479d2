"""Energies attached to an atlas: saved with their chart, and ported to the others through the frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gaussian_worlds import rotation
from workflows.energy.tiny import saved

from jepatlas.alignment import Atlas, Attachment, ChartLatents, load_atlas, save_atlas
from jepatlas.core.errors import InputError
from jepatlas.workflows.energy import attach_energy, energy_for, energy_of
from jepatlas.workflows.energy.fitted_energy import all_pairs

STATES = np.random.default_rng(0).standard_normal((60, 3))
LATENTS = {name: STATES @ rotation(3, seed) * (1 + seed) + seed for seed, name in enumerate(("ada", "ben"))}


def build() -> Atlas:
    return Atlas.build([ChartLatents(name, h, np.arange(60)) for name, h in LATENTS.items()])


def test_an_attached_energy_is_saved_and_ported(tmp_path: Path):
    one = saved(3)
    save_atlas(attach_energy(build(), "ada", "door", one), tmp_path / "atlas")
    atlas = load_atlas(tmp_path / "atlas")
    here = all_pairs(one.model(), LATENTS["ada"])
    np.testing.assert_array_equal(all_pairs(energy_of(atlas, "ada", "door").model(), LATENTS["ada"]), here)
    there = all_pairs(energy_for(atlas, "ben", "door", source="ada").model(), LATENTS["ben"])
    np.testing.assert_allclose(there, here, rtol=1e-3, atol=1e-4)
    assert energy_of(atlas, "ada", "door").threshold == 3.0


def test_attaching_replaces_an_energy_of_the_same_name():
    atlas = attach_energy(attach_energy(build(), "ada", "door", saved(3, seed=0)), "ada", "door", saved(3, seed=1))
    assert len(atlas.chart("ada").attachments) == 1
    found = all_pairs(energy_of(atlas, "ada", "door").model(), LATENTS["ada"][:5])
    np.testing.assert_array_equal(found, all_pairs(saved(3, seed=1).model(), LATENTS["ada"][:5]))


def test_energies_that_do_not_fit_are_rejected():
    atlas = build()
    with pytest.raises(InputError, match=r"'door' .* 2 .*'ada' .* 3"):
        attach_energy(atlas, "ada", "door", saved(2))
    with pytest.raises(InputError, match="'eve'"):
        attach_energy(atlas, "eve", "door", saved(3))
    with pytest.raises(InputError, match="'door'"):
        energy_of(atlas, "ada", "door")
    broken = atlas.attach("ada", Attachment("energy", "door", b"invalid"))
    with pytest.raises(InputError, match=r"'door' .*'ada'"):
        energy_of(broken, "ada", "door")
