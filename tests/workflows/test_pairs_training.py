"""Training on arrays, datasets and loaders that a user defines. Such a run is loaded and certified as any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
from training.small import call

import jepatlas as ja
from jepatlas.core.errors import InputError
from jepatlas.data.given_pairs import IndexedPairs, LoaderPairs
from jepatlas.nn import ConvConfig, MLPConfig
from jepatlas.recipes import PairsRecipe, any_recipe
from jepatlas.training import TrainingConfig

ROWS = 2000


def arrays(rows: int = ROWS) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(rows, 2, generator=generator)
    z_next = 0.9 * z + 0.19**0.5 * torch.randn(rows, 2, generator=generator)
    mixing = torch.tensor([[1.0, 0.5, 0.0], [0.0, 1.0, -0.5]])
    return {"x": z @ mixing, "x_next": z_next @ mixing, "z": z, "z_next": z_next}


class Items(Dataset[Any]):
    """A dataset of mappings, or of tuples (x, x_next)."""

    def __init__(self, pairs: dict[str, Tensor], names: tuple[str, ...] = ()) -> None:
        self.pairs = pairs
        self.names = names

    def __len__(self) -> int:
        return len(self.pairs["x"])

    def __getitem__(self, row: int) -> Any:
        if self.names:
            return tuple(self.pairs[name][row].numpy() for name in self.names)
        return {name: values[row].double().numpy() for name, values in self.pairs.items()}


def recipe(steps: int = 4, **fields: Any) -> PairsRecipe:
    training = TrainingConfig(steps=steps, batch_size=64, checkpoint_every=2)
    return PairsRecipe(**{"latent_dim": 2, "encoder": MLPConfig(16, 1), "training": training} | fields)


def forms() -> dict[str, Any]:
    pairs = arrays()
    return {
        "tuple of tensors": (pairs["x"], pairs["x_next"]),
        "tuple of numpy": (pairs["x"].double().numpy(), pairs["x_next"].numpy()),
        "mapping": pairs,
        "TensorDataset": TensorDataset(pairs["x"], pairs["x_next"]),
        "Dataset of tuples": Items(pairs, ("x", "x_next")),
        "Dataset of mappings": Items(pairs),
    }


def weights(folder: Path) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in ja.load(folder).parameters()])


def test_every_form_of_the_same_pairs_gives_the_same_weights(tmp_path: Path):
    found = []
    for name, data in forms().items():
        assert ja.train(recipe(), tmp_path / name, data=data).passed
        found.append(weights(tmp_path / name))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0])


def test_a_file_of_arrays_is_read(tmp_path: Path):
    np.savez(tmp_path / "pairs.npz", **{name: value.numpy() for name, value in arrays().items()})
    ja.train(recipe(), str(tmp_path / "file"), data=str(tmp_path / "pairs.npz"))
    ja.train(recipe(), tmp_path / "given", data=arrays())
    assert torch.equal(weights(tmp_path / "file"), weights(tmp_path / "given"))


def test_the_command_line_certifies_and_reports_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run = ja.train(recipe(300), "run", data=Items(arrays(6000)))
    assert call("certify", "run") == 0
    assert call("report", "run") == 0
    assert Path("run/report.html").is_file()
    certificate = ja.certify("run")
    assert certificate.diagnosis is not None  # the true states were in the data
    held = ja.encode("run", arrays(6000)["x"][-600:].numpy())  # the last tenth
    with np.load("run/latents.npz") as saved:
        np.testing.assert_allclose(saved["h"], held, atol=1e-5)
        np.testing.assert_array_equal(saved["z"], arrays(6000)["z"][-600:].numpy())
    assert run.load().encode(torch.zeros(1, 3)).shape == (1, 2)


def test_a_loader_is_used_batch_by_batch(tmp_path: Path):
    pairs = arrays()
    loader = DataLoader(Items(pairs), batch_size=50)
    run = ja.train(recipe(), tmp_path / "run", data=loader, held=arrays(500))
    assert any_recipe(run.folder).training.batch_size == 50
    with np.load(run.folder / "latents.npz") as saved:
        assert len(saved["h"]) == 500
    batches = LoaderPairs(loader)
    torch.testing.assert_close(batches(0).x, pairs["x"][:50])
    torch.testing.assert_close(batches(0).x, pairs["x"][:50])
    torch.testing.assert_close(batches(1).x, pairs["x"][50:100])
    for step in range(2, 40):
        batches(step)
    torch.testing.assert_close(batches(40).x, pairs["x"][:50])  # the next epoch


def test_an_epoch_shows_each_row_once():
    pairs = arrays(100)
    batches = IndexedPairs(TensorDataset(pairs["x"], pairs["x_next"]), 20, seed=0)
    for first in (0, 5):
        seen = torch.cat([batches(first + step).x for step in range(5)])
        torch.testing.assert_close(seen.sort(0).values, pairs["x"].sort(0).values)
    assert not torch.equal(batches(0).x, batches(5).x)
    assert torch.equal(batches(3).x, batches(3).x)


def test_weights_are_loaded_into_a_module_of_ones_own(tmp_path: Path):
    def module() -> nn.Module:
        return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    encoder = module()
    run = ja.train(recipe(), tmp_path / "run", data=arrays(), encoder=encoder)
    other = ja.load_weights(run.folder, module())
    x = arrays()["x"]
    assert torch.equal(other(x), encoder.eval()(x))
    assert ja.certify(run.folder, quick=True).record.verdicts
    with pytest.raises(InputError, match=r"load_weights"):
        ja.load(run.folder)
    with pytest.raises(InputError, match="do not fit"):
        ja.load_weights(run.folder, nn.Linear(3, 2))


def test_an_interrupted_run_is_resumed_with_the_same_data(tmp_path: Path):
    data = arrays()
    ja.train(recipe(4), tmp_path / "whole", data=data)
    ja.train(recipe(4), tmp_path / "parts", data=data)
    newest = tmp_path / "parts" / "checkpoints" / "step-4"
    for file in newest.iterdir():
        file.unlink()
    newest.rmdir()  # as if it had been stopped after step 2
    ja.train(recipe(4), tmp_path / "parts", data=data, resume=True)
    assert torch.equal(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    with pytest.raises(InputError, match="already contains a run"):
        ja.train(recipe(4), tmp_path / "parts", data=data)


def test_images_are_encoded_by_a_convolutional_network(tmp_path: Path):
    images = torch.randint(0, 256, (300, 3, 16, 16), dtype=torch.uint8)
    run = ja.train(recipe(encoder=ConvConfig((8, 8), 16)), tmp_path / "run", data=(images, images))
    assert any_recipe(run.folder).shape == (3, 16, 16)
    assert run.load().encode(images[:5]).shape == (5, 2)


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Any:
        yield arrays(1)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (None, "'data' is missing"),
        (arrays()["x"], "'data' must be"),
        ({"x": arrays()["x"]}, "x_next"),
        ((arrays()["x"], arrays(10)["x_next"]), r"x \d+, x_next 10\.$"),
        ((arrays()["x"] * float("nan"), arrays()["x_next"]), "finite"),
        (Items(arrays(20)), "batch_size"),
        (Endless(), "DataLoader"),
        (Items(arrays(), ("x", "x_next", "z")), "tuple|list"),
        ("nowhere.npz", "no such file"),
        (DataLoader(Items(arrays(20)), batch_size=None), "batch_size"),
    ],
)
def test_unusable_data_are_refused(tmp_path: Path, data: Any, complaint: str):
    with pytest.raises(InputError, match=complaint):
        ja.train(recipe(), tmp_path / "run", data=data)
    assert not (tmp_path / "run").exists()


def test_data_are_refused_with_other_recipes(tmp_path: Path):
    from jepatlas.recipes import Recipe

    with pytest.raises(InputError, match="'data' is for a PairsRecipe"):
        ja.train(Recipe(), tmp_path / "run", data=arrays())


def test_the_command_line_says_that_python_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ja.train(recipe(), tmp_path / "run", data=arrays())
    assert call("train", "--resume", str(tmp_path / "run")) == 2
    assert "resume=True" in capsys.readouterr().err
