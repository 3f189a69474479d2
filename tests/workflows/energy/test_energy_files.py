"""Energy files: round trips, and invalid files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from workflows.energy.tiny import linear_map, recipe, saved

from jepatlas.core.errors import InputError
from jepatlas.energy import HEADS, ExpectileConfig, LeastAction
from jepatlas.workflows.energy import (
    EnergySpec,
    SavedEnergy,
    energy_from_bytes,
    is_energy_file,
    load_energy_file,
    save_energy,
)

X, Y = torch.randn(2, 20, 2, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", HEADS)
def test_a_round_trip_is_exact(kind: str, tmp_path: Path):
    first = saved(head=HEADS[kind](), floor=0.25, discount=0.9)
    save_energy(first, tmp_path / "deep" / "energy.safetensors")
    again = load_energy_file(tmp_path / "deep" / "energy.safetensors")
    assert torch.equal(again.model()(X, Y), first.model()(X, Y))
    assert (again.spec, again.threshold, again.dim, again.to_source) == (first.spec, 3.0, 2, None)
    assert not any(p.requires_grad for p in again.energy.parameters()) and not again.energy.training
    assert again.to_bytes() == first.to_bytes()


def test_a_ported_energy_is_saved_with_its_map():
    here, there = saved(3), linear_map(3, 5)
    ported = energy_from_bytes(here.ported(there).to_bytes(), "it")
    x, y = torch.randn(2, 20, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    carried = [torch.as_tensor(there.apply(rows.numpy()), dtype=torch.float32) for rows in (x, y)]
    torch.testing.assert_close(ported.model()(x.float(), y.float()), here.model()(*carried), rtol=1e-5, atol=1e-5)
    assert ported.dim == 5 and ported.spec.dim == 3
    further = ported.ported(linear_map(5, 4, seed=1))  # through two maps
    assert further.dim == 4 and further.to_source is not None
    expected = linear_map(5, 4, seed=1).compose(there).apply(np.ones((1, 4)))
    np.testing.assert_allclose(further.to_source.apply(np.ones((1, 4))), expected)
    with pytest.raises(InputError, match=r"\b5\b.*\b3\b"):
        here.ported(linear_map(5, 4))


def test_the_memory_layout_of_the_map_does_not_matter():
    """Least squares returns a transposed weight."""
    by_columns = replace(linear_map(3, 5), weight=np.asfortranarray(linear_map(3, 5).weight))
    assert saved(3).ported(by_columns).to_bytes() == saved(3).ported(linear_map(3, 5)).to_bytes()


def test_a_threshold_may_be_infinite():
    assert energy_from_bytes(saved(threshold=float("inf")).to_bytes(), "it").threshold == float("inf")


def test_a_spec_has_the_settings_of_its_recipe():
    spec = EnergySpec.of(recipe(floor=0.5, learning=ExpectileConfig(gamma=0.7)), 3)
    assert (spec.dim, spec.width, spec.floor, spec.discount) == (3, 32, 0.5, 0.7)
    assert EnergySpec.of(recipe(), 3).discount is None
    assert spec.build()(torch.zeros(1, 3), torch.ones(1, 3)).shape == (1,)


def changed(change: Callable[[dict[str, Any], dict[str, Any]], Any], one: SavedEnergy | None = None) -> bytes:
    """An energy file with changed tensors or metadata."""
    data = (one or saved()).to_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    tensors, about = safetensors.torch.load(data), json.loads(header["jepatlas.Energy"])
    del about["sha256"]  # as in files of version 0.1
    change(tensors, about)
    return safetensors.torch.save(tensors, {"jepatlas.Energy": json.dumps(about)})


def ported(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> bytes:
    return changed(change, saved(3).ported(linear_map(3, 5)))


NAN = torch.tensor(float("nan"))
BROKEN = {
    "its header cannot be read": lambda: b"",
    "not a saved energy: its header": lambda: b"PK\x03\x04 and no more than that",
    "its header does not declare one": lambda: safetensors.torch.save({"a": torch.zeros(1)}),
    "header does not declare one": lambda: safetensors.torch.save({}, {"format": "jepatlas.LinearMap"}),
    "does not declare one": lambda: safetensors.torch.save({}, {"jepatlas.Energy": "[1]"}),
    "energy: its header cannot be read": lambda: safetensors.torch.save({}, {"jepatlas.Energy": "{"}),
    "not a saved energy: 'spec'": lambda: changed(lambda _, about: about.pop("spec")),
    "energy: spec: there is no key 'wdith'": lambda: changed(lambda _, about: about["spec"].update(wdith=3)),
    "there is no kind 'iqx'": lambda: changed(lambda _, about: about["spec"]["head"].update(kind="iqx")),
    "width 33 is not a multiple of chunks 8": lambda: changed(lambda _, about: about["spec"].update(width=33)),
    "could not convert string to float": lambda: changed(lambda _, about: about.update(threshold="high")),
    "Error(s) in loading state_dict": lambda: changed(lambda tensors, _: tensors.pop("scale")),
    "loading state_dict": lambda: changed(lambda tensors, _: tensors.update(more=torch.zeros(1))),
    "in loading state_dict": lambda: changed(lambda _, about: about["spec"].update(dim=3)),
    "embedding.0.bias must be finite": lambda: changed(lambda tensors, _: tensors["embedding.0.bias"].mul_(NAN)),
    "its threshold must be finite": lambda: changed(lambda _, about: about.update(threshold="nan")),
    "not a saved energy: LinearMap": lambda: ported(lambda tensors, _: tensors.pop("to_source.weight")),
    "the weight of its map has shape": lambda: ported(lambda tensors, _: tensors.update({"to_source.weight": X})),
    "its map must be finite": lambda: ported(lambda tensors, _: tensors["to_source.weight"].mul_(NAN)),
    "its map leads to 3 dimensions, but it takes 2": lambda: changed(
        lambda _, about: None, SavedEnergy(saved(2).energy, saved(2).spec, 1.0, linear_map(3, 5))
    ),
}


def test_files_of_version_0_1_have_no_hash_and_are_read():
    again = energy_from_bytes(changed(lambda tensors, about: None), "it")
    assert again.to_bytes() == saved().to_bytes()


def test_every_flipped_bit_is_detected():
    """A sample of 300 bits of the file, and every bit of the start of its header."""
    data = saved().to_bytes()
    bits = [*range(8 * 200), *np.random.default_rng(0).integers(0, 8 * len(data), 300).tolist()]
    for bit in bits:
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InputError):
            energy_from_bytes(bytes(flipped), "it")


def test_small_files_that_declare_large_networks_are_refused_before_they_are_built():
    wide = changed(lambda _, about: about["spec"].update(embedding={"width": 1_000_000, "depth": 8}))
    deep = changed(lambda _, about: about["spec"].update(embedding={"width": 16, "depth": 10**9}))
    for data in (wide, deep):
        with pytest.raises(InputError, match="not a saved energy"):
            energy_from_bytes(data, "it")


@pytest.mark.parametrize("message", BROKEN)
def test_invalid_files_are_rejected(message: str, tmp_path: Path):
    (tmp_path / "e.safetensors").write_bytes(BROKEN[message]())
    with pytest.raises(InputError) as refusal:
        load_energy_file(tmp_path / "e.safetensors")
    assert message in str(refusal.value) and "e.safetensors" in str(refusal.value)


def test_truncated_and_missing_files_are_rejected(tmp_path: Path):
    data = saved().to_bytes()
    for length in (4, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(InputError, match="saved energy"):
            energy_from_bytes(data[:length], "it")
    with pytest.raises(InputError, match=r"none\.safetensors"):
        load_energy_file(tmp_path / "none.safetensors")


def test_is_energy_file(tmp_path: Path):
    save_energy(saved(), tmp_path / "energy.safetensors")
    linear_map(2, 2).save(tmp_path / "map.safetensors")
    (tmp_path / "energy.npz").write_bytes((tmp_path / "energy.safetensors").read_bytes())
    (tmp_path / "short.safetensors").write_bytes(b"\1")
    found = {path.name for path in tmp_path.iterdir() if is_energy_file(path)}
    assert found == {"energy.safetensors"}


def corridor() -> SavedEnergy:
    """The least action of walks along a corridor, in cells that hold several states."""
    rng = np.random.default_rng(0)
    place = np.linspace(0, 1, 30) + 0.005 * rng.standard_normal((40, 30))
    states = {"x": np.stack([place, place**2], -1).reshape(-1, 2), "episode": np.repeat(np.arange(40), 30)}
    return SavedEnergy.computed(LeastAction.fit(states | {"cost": np.ones(1200)}, cells=15))


def test_a_round_trip_of_least_action_is_exact(tmp_path: Path):
    first = corridor()
    save_energy(first, tmp_path / "energy.safetensors")
    again = load_energy_file(tmp_path / "energy.safetensors")
    x, y = torch.rand(2, 30, 2, generator=torch.Generator().manual_seed(0))
    found = again.model()(x, y)
    assert found.isfinite().any() and found.isinf().any()
    assert torch.equal(found, first.model()(x, y))
    assert again.to_bytes() == first.to_bytes() and again.dim == 2


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("target", lambda t: t + 1000),
        ("source", lambda t: t[1:]),
        ("paid", lambda t: -t),
        ("centres", lambda t: t * torch.nan),
        ("near_cost", lambda t: t - 1),
    ],
)
def test_a_graph_that_is_none_is_refused(name: str, change: Callable[[torch.Tensor], torch.Tensor]):
    about = json.loads(_about(corridor().to_bytes()))
    del about["sha256"]  # as in files of version 0.1, so that only the graph itself can be wrong
    tensors = safetensors.torch.load(corridor().to_bytes())
    data = safetensors.torch.save(tensors | {name: change(tensors[name])}, {"jepatlas.Energy": json.dumps(about)})
    with pytest.raises(InputError, match=name):
        energy_from_bytes(data, "it")


def _about(data: bytes) -> str:
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length])["__metadata__"]["jepatlas.Energy"]
