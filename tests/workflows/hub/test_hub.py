"""Models are uploaded to a Hub, described there, and loaded again; the Hub is a server on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from gaussian_worlds import rotation
from training.small import call, recipe
from workflows.energy.tiny import saved
from workflows.hub.fake_hub import FakeHub, fake_hub

import jepatlas as ja
from jepatlas.core.errors import InputError
from jepatlas.nn import ConvConfig, CouplingConfig, MLPConfig, ViTConfig
from jepatlas.recipes import PairsRecipe
from jepatlas.training import TrainingConfig
from jepatlas.workflows.encoder_files import EncoderSpec, SavedEncoder

Z = np.random.default_rng(0).standard_normal((60, 3))
LABELS = np.where(Z[:, 0] > 0, "far", "near")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    with fake_hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_HOME", str(tmp_path / "huggingface"))
        monkeypatch.chdir(tmp_path)
        yield server


def atlas() -> ja.Atlas:
    ids = np.arange(len(Z))
    charts = [ja.ChartLatents("ada", Z, ids), ja.ChartLatents("ben", Z @ rotation(3), ids)]
    return ja.Atlas.build(charts, anchors=30)


MODELS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "map": (lambda: ja.LinearMap(rotation(3), np.ones(3), np.zeros(3)), lambda one: one.apply(Z)),
    "probe": (lambda: ja.LinearProbe.fit(Z, LABELS), lambda one: one.logits(Z)),
    "energy": (lambda: saved(3), lambda one: one.model()(torch.zeros(4, 3), torch.ones(4, 3)).detach().numpy()),
    "atlas": (atlas, lambda one: one.map("ada", "ben").apply(Z)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_models_come_back_from_the_hub(kind: str, hub: FakeHub):
    make, use = MODELS[kind]
    model = make()
    address = ja.push_to_hub(model, "ada/mine", token="hf_secret")
    assert address.endswith("ada/mine") and "Bearer hf_secret" in hub.tokens
    files = hub.repositories["ada/mine"]
    assert "README.md" in files
    assert all(Path(name).suffix in (".safetensors", ".json", ".md") for name in files), "no code, no pickles"
    np.testing.assert_array_equal(use(ja.load("ada/mine")), use(model))
    np.testing.assert_array_equal(use(ja.load("ada/mine@v1.0")), use(model))
    assert any(f"/resolve/{'c' * 40}/" in line or "/resolve/v1.0/" in line for line in hub.asked)


def test_the_encoder_of_a_run_with_its_certificate_on_the_card(hub: FakeHub, capsys: pytest.CaptureFixture[str]):
    run = ja.train(recipe(steps=3), "run")
    assert call("certify", "run", "--quick") == 0
    run.push_to_hub("ada/encoder")
    files = hub.repositories["ada/encoder"]
    assert "recipe.yaml" not in files and "records/certificate.json" in files and "records/outcome.json" not in files
    assert {Path(name).suffix for name in files} == {".md", ".json", ".safetensors"}, "samples of the data stay here"
    card = files["README.md"].decode()
    verdicts = json.loads(files["records/certificate.json"])["verdicts"]
    checks = [one for one in verdicts if one["threshold"] is not None]
    assert checks and all(f"`{one['name']}`" in card for one in checks)
    assert 'ja.load("ada/encoder")' in card and card.startswith("---\nlibrary_name: jepatlas\n")
    found = ja.load("ada/encoder")
    x = np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2)
    np.testing.assert_allclose(ja.encode(found, x), ja.encode("run", x), atol=1e-6)
    assert isinstance(found, SavedEncoder) and not found.training
    again = ja.load("cache/jepatlas/hub/ada--encoder/main")
    np.testing.assert_array_equal(ja.encode(again, x), ja.encode(found, x))
    capsys.readouterr()


def test_encoders_of_images_take_pixels(hub: FakeHub):
    images = torch.randint(0, 256, (70, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    own = PairsRecipe(encoder=ConvConfig((8, 8), 16), latent_dim=2, training=TrainingConfig(steps=2, batch_size=16))
    run = ja.train(own, "run", data=(images, images.flip(3)))
    run.push_to_hub("ada/images")
    found = ja.load("ada/images")
    wanted = ja.load(run.folder).encode(images[:7]).detach().numpy()
    np.testing.assert_allclose(ja.encode(found, images[:7]), wanted, atol=1e-6)
    np.testing.assert_allclose(ja.encode(found, images[:7].movedim(1, -1)), wanted, atol=1e-6)
    with pytest.raises(InputError, match="uint8"):
        ja.encode(found, images[:7].float())
    with pytest.raises(InputError, match="shape"):
        ja.encode(found, images[:7, :, :8])


@pytest.mark.parametrize(
    ("network", "shape"),
    [
        (MLPConfig(8, 2), (3,)),
        (CouplingConfig(2), (4,)),
        (ConvConfig((8,), 4), (3, 16, 16)),
        (ViTConfig(8, 16, 1, 2), (3, 16, 16)),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_files_hold_every_network(network: Any, shape: tuple[int, ...], tmp_path: Path):
    spec = EncoderSpec(network, shape, 16 if isinstance(network, ViTConfig) else 4, len(shape) == 3)
    model = SavedEncoder(spec, spec.build()).eval()
    (tmp_path / "encoder.safetensors").write_bytes(model.to_bytes())
    found = ja.load(tmp_path / "encoder.safetensors")
    x = torch.randint(0, 256, (3, *shape), dtype=torch.uint8) if spec.pixels else torch.randn(3, *shape)
    assert found.spec == spec
    torch.testing.assert_close(found.encode(x), model.encode(x))


def test_damaged_and_hostile_files_are_refused(tmp_path: Path):
    spec = EncoderSpec(MLPConfig(8, 1), (3,), 2, False)
    tensors = spec.build().state_dict()
    place = tmp_path / "encoder.safetensors"
    about = {"network": {"kind": "mlp", "width": 8, "depth": 1}, "shape": [3], "latents": 2, "pixels": False}
    changes: list[dict[str, Any]] = [
        {"network": {"kind": "mlp", "width": 9, "depth": 1}},
        {"network": {"kind": "mlp", "width": 8, "depth": 10**9}},
        {"network": {"kind": "os:system"}},
        {"shape": []},
        {"latents": 10**12},
        {"pixels": "no"},
        {"more": 1},
    ]
    for change in changes:
        place.write_bytes(safetensors.torch.save(tensors, {"jepatlas.Encoder": json.dumps(about | change)}))
        with pytest.raises(InputError):
            ja.load(place)
    broken = {name: tensor * torch.nan for name, tensor in tensors.items()}
    place.write_bytes(safetensors.torch.save(broken, {"jepatlas.Encoder": json.dumps(about)}))
    with pytest.raises(InputError, match="finite"):
        ja.load(place)


def test_what_is_no_model_and_what_is_not_there(hub: FakeHub):
    with pytest.raises(InputError, match="user/name"):
        ja.push_to_hub(ja.LinearMap(np.eye(2), np.zeros(2), np.zeros(2)), "mine")
    with pytest.raises(InputError, match="'model'"):
        ja.push_to_hub(object(), "ada/mine")
    with pytest.raises(InputError, match="run folder"):
        ja.push_to_hub("nowhere", "ada/mine")
    assert not hub.asked, "nothing was sent"
    with pytest.raises(InputError, match="nobody/nothing"):
        ja.load("nobody/nothing")
    Path("runs").mkdir()
    asked = len(hub.asked)
    with pytest.raises(InputError, match="runs/left"):
        ja.load("runs/left")
    assert len(hub.asked) == asked, "a path below a folder that exists is no repository"
    hub.repositories["ada/other"] = {"README.md": b"a model of others", "model.pkl": b"\x80", "run.py": b"exit()"}
    with pytest.raises(InputError, match="neither a run"):
        ja.load("ada/other")
    assert not list(Path("cache").rglob("*.pkl")) and not list(Path("cache").rglob("*.py"))
