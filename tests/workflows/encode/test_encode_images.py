"""Images encoded by models of any origin, against the models called by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from cli.calls import Captured, answer, refused
from PIL import Image
from torch import nn
from training.small import call
from workflows.encode.small_models import MEAN, STD, save_vision_model, write_images

import jepatlas as ja
from jepatlas.core.arrays import read_arrays
from jepatlas.workflows.encode.preprocessing import Preprocessing

FAMILIES = {
    "ViT": ({}, "cls"),
    "IJepa": ({}, "mean"),
    "Dinov2": ({}, "cls"),
    "DINOv3ViT": ({"num_register_tokens": 2}, "cls"),
    "CLIPVision": ({}, "cls"),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pixels_of(images: np.ndarray) -> torch.Tensor:
    """Resized by pillow and standardised, from the definition."""
    resized = [np.asarray(Image.fromarray(image).resize((16, 16), 2)) for image in images]
    scaled = torch.from_numpy(np.stack(resized)).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(one)[:, None, None] for one in (MEAN, STD))
    return (scaled - mean) / std


@pytest.mark.parametrize("family", FAMILIES)
def test_models_of_huggingface_with_their_own_preprocessing(family: str, capsys: Captured):
    options, pool = FAMILIES[family]
    model = save_vision_model(Path("model"), family, **options)
    images = write_images(Path("photos"), 5)
    told = answer(capsys, "encode", "photos", "--model", "model", "--out", "latents.npz", "--batch", "2")
    assert told["rows"] == 5 and told["width"] == 16
    with torch.no_grad():
        tokens = model(pixel_values=pixels_of(images)).last_hidden_state
    expected = tokens[:, 0] if pool == "cls" else tokens.mean(1)
    found = read_arrays("latents.npz")
    np.testing.assert_allclose(found["h"], expected, atol=1e-5)
    assert found["ids"].tolist() == [f"{number:03d}" for number in range(5)]
    np.testing.assert_allclose(ja.encode("model", images), expected, atol=1e-5)
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []


def test_pooling_layers_precision_and_untrained_control():
    model = save_vision_model(Path("model"), "ViT")
    images = write_images(Path("photos"), 4)
    with torch.no_grad():
        output = model(pixel_values=pixels_of(images), output_hidden_states=True)
    found = ja.encode("model", "photos", pool="mean", layers="all", half=True, untrained=True)
    assert found["h"].dtype == np.float16
    np.testing.assert_allclose(found["layer00"], output.hidden_states[1][:, 1:].mean(1), atol=5e-3)
    np.testing.assert_allclose(found["layer01"], output.last_hidden_state[:, 1:].mean(1), atol=5e-3)
    np.testing.assert_array_equal(found["layer01"], found["h"])
    assert found["untrained"].shape == found["h"].shape and np.abs(found["untrained"] - found["h"]).max() > 0.1
    first = ja.encode("model", "photos", pool="mean", layers="0")
    np.testing.assert_allclose(first["h"], output.hidden_states[1][:, 1:].mean(1), atol=1e-5)


def test_a_view_of_a_table_keeps_its_states_groups_labels_and_split(capsys: Captured):
    save_vision_model(Path("model"), "ViT")
    write_images(Path("scenes"), 4)
    lines = ["path,state,view,label,group,split"]
    for number in range(4):
        view = "left" if number < 3 else "right"
        lines.append(f"{number:03d}.png,s{number},{view},{'ab'[number % 2]},g{number},{'test' if number else 'train'}")
    Path("scenes/views.csv").write_text("\n".join(lines) + "\n")
    assert "left, right" in refused(capsys, "encode", "scenes", "--model", "model")
    found = ja.encode("model", "scenes/views.csv", view="left")
    assert found["ids"].tolist() == ["s0", "s1", "s2"] and found["labels"].tolist() == ["a", "b", "a"]
    assert found["groups"].tolist() == ["g0", "g1", "g2"] and found["held"].tolist() == [False, True, True]
    assert found["raw"].shape == (3, 16, 16, 3)


def test_class_folders_are_labels_and_unreadable_images_are_left_out(capsys: Captured):
    save_vision_model(Path("model"), "ViT")
    write_images(Path("photos/cat"), 2)
    write_images(Path("photos/dog"), 2, seed=1)
    Path("photos/cat/000.png").write_bytes(b"not an image")
    told = answer(capsys, "encode", "photos", "--model", "model", "--out", "latents.npz", "--batch", "1")
    assert told["rows"] == 3 and "1 of 4 images were left out" in told["notes"][0]
    found = read_arrays("latents.npz")
    assert found["ids"].tolist() == ["cat/001", "dog/000", "dog/001"] and found["labels"].tolist() == [
        "cat",
        "dog",
        "dog",
    ]


COUNTING = """
import os, torch
from pathlib import Path

def encoder(x):
    assert x.shape[1:] == (3, 8, 8) and 0 <= x.min() and x.max() <= 1
    calls = Path("calls.txt")
    done = int(calls.read_text()) if calls.exists() else 0
    if done == int(os.environ.get("FAIL_AT", -1)):
        raise KeyboardInterrupt
    calls.write_text(str(done + 1))
    return x.mean((2, 3))
"""


def test_an_interrupted_command_goes_on_where_it_stopped(capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    Path("counting.py").write_text(COUNTING)
    images = write_images(Path("photos"), 6, (8, 8))
    words = ["encode", "photos", "--model", "counting.py:encoder", "--out", "latents.npz", "--batch", "2"]
    monkeypatch.setenv("FAIL_AT", "2")
    assert call(*words) == 130 and not Path("latents.npz").exists()
    monkeypatch.setenv("FAIL_AT", "-1")
    assert call(*words) == 0
    assert Path("calls.txt").read_text() == "3", "the first two batches are not encoded again"
    np.testing.assert_allclose(read_arrays("latents.npz")["h"], images.mean((1, 2)) / 255, atol=1e-6)
    capsys.readouterr()


def test_large_results_are_split_and_read_as_one(capsys: Captured):
    Path("sharded.py").write_text(COUNTING)
    images = write_images(Path("photos"), 7, (8, 8))
    words = ("encode", "photos", "--model", "sharded.py:encoder", "--out", "latents.npz")
    told = answer(capsys, *words, "--shard-gb", "1e-6")
    assert len(told["files"]) > 1 and not Path("latents.npz").exists()
    found = read_arrays("latents.npz")
    np.testing.assert_allclose(found["h"], images.mean((1, 2)) / 255, atol=1e-6)
    assert found["ids"].tolist() == [f"{number:03d}" for number in range(7)]
    assert answer(capsys, *words, "--most", "5", "--shard-gb", "3e-6")["files"] != told["files"]
    assert len(read_arrays("latents.npz")["h"]) == 5, "files of an earlier command are not read instead"
    assert call(*words, "--most", "4") == 0 and [str(path) for path in Path().glob("latents*")] == ["latents.npz"]
    assert len(read_arrays("latents.npz")["h"]) == 4
    capsys.readouterr()
    told = answer(capsys, *words, "--shard-gb", "1e-6")
    assert not Path("latents.npz").exists() and len(read_arrays("latents.npz")["h"]) == 7
    Path(told["files"][0]).rename("elsewhere.npz")
    Path(told["files"][1]).unlink()
    Path("elsewhere.npz").rename(told["files"][0])
    with pytest.raises(ja.InputError, match="is missing"):
        read_arrays("latents.npz")


def test_half_precision_refuses_numbers_that_it_cannot_hold(capsys: Captured):
    Path("large.py").write_text("def encoder(images):\n    return 1e6 * images.mean((2, 3))\n")
    write_images(Path("photos"), 3, (8, 8))
    words = ("encode", "photos", "--model", "large.py:encoder", "--out", "latents.npz")
    assert "half" in refused(capsys, *words, "--half")
    assert call(*words) == 0 and np.isfinite(read_arrays("latents.npz")["h"]).all()


def test_what_a_format_cannot_hold_is_said(capsys: Captured):
    Path("stored.py").write_text(COUNTING)
    write_images(Path("photos"), 4, (8, 8))
    words = ("encode", "photos", "--model", "stored.py:encoder")
    told = answer(capsys, *words, "--out", "latents.safetensors")
    assert any("ids" in note for note in told["notes"]) and "ids" not in read_arrays("latents.safetensors")
    assert answer(capsys, *words, "--out", "latents.parquet")["notes"] == []
    assert read_arrays("latents.parquet")["ids"].tolist() == ["000", "001", "002", "003"]


class Means(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3))


def exported(kind: str) -> str:
    example = torch.rand(2, 3, 8, 8)
    if kind == "onnx":
        return str(ja.export(Means(), "means.onnx", example))
    if kind == "pt2":
        return str(ja.export(Means(), "means.pt2", example))
    torch.jit.trace(Means(), example).save("means.pt")
    return "means.pt"


@pytest.mark.parametrize("kind", ["onnx", "pt2", "pt"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_programs_need_permission_if_they_can_run_code(kind: str, capsys: Captured):
    path = exported(kind)
    images = write_images(Path("photos"), 3, (8, 8))
    words = [
        "encode",
        "photos",
        "--model",
        path,
        "--out",
        "latents.npz",
        "--mean",
        *["0.1", "0.2", "0.3"],
        "--std",
        *["1", "1", "2"],
    ]
    if kind != "onnx":
        assert "--trust" in refused(capsys, *words)
        words.append("--trust")
    assert call(*words) == 0
    expected = (images.mean((1, 2)) / 255 - [0.1, 0.2, 0.3]) / [1, 1, 2]
    np.testing.assert_allclose(read_arrays("latents.npz")["h"], expected, atol=1e-6)
    capsys.readouterr()


def test_code_of_the_users_own_is_a_function_or_makes_a_module():
    Path("makers.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x): return x.flatten(1)\n"
        "def make(): return Net()\n"
        "def lengths(texts): return torch.tensor([[float(len(text))] for text in texts])\n"
        "lengths.reads = 'texts'\n"
    )
    images = write_images(Path("photos"), 3, (4, 4))
    flat = images.transpose(0, 3, 1, 2).reshape(3, -1) / 255
    for name in ("makers.py:Net", "makers.py:make", "makers:Net"):
        np.testing.assert_allclose(ja.encode(name, images), flat, atol=1e-6)
    assert ja.encode("makers.py:lengths", ["a", "bcd"]).tolist() == [[1], [3]]


def test_wrong_input_is_refused_in_one_sentence(capsys: Captured):
    save_vision_model(Path("model"), "ViT")
    write_images(Path("photos"), 3)
    Path("mapping_code.py").write_text("import torch\ndef maps(x): return x\n")
    cases: dict[tuple[str, ...], str] = {
        ("photos",): "--model",
        ("photos", "--model", "none.onnx"): "no file none.onnx",
        ("photos", "--model", "./nowhere"): "no such file or folder",
        ("photos", "--model", "mapping_code.py:other"): "has no 'other'",
        ("photos", "--model", "mapping_code.py:maps"): "one vector for each",
        ("photos", "--model", "model", "--layers", "7"): "layers 0 to 1",
        ("photos", "--model", "model", "--part", "all"): "--part is for a run",
        ("photos", "--model", "model", "--clip", "2"): "the option 'clip'",
        ("photos", "--model", "model", "--out", "latents.txt"): "must end with",
        ("nothing", "--model", "model"): "no file or folder nothing",
        ("mapping_code.py", "--model", "model"): "mapping_code.py",
    }
    for words, expected in cases.items():
        assert expected in refused(capsys, "encode", *words, *(() if "--out" in words else ("--out", "out.npz")))
    images: Any = np.zeros((2, 4, 4, 3))
    with pytest.raises(ja.InputError, match="uint8"):
        ja.encode("model", images)


def test_own_preprocessing_agrees_with_transformers():
    images = [np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8) for size in ((30, 41, 3), (25, 17, 3))]
    for settings in (
        {"size": {"height": 12, "width": 10}, "resample": 3, "image_mean": MEAN, "image_std": STD},
        {"size": {"shortest_edge": 20}, "crop_size": {"height": 16, "width": 16}, "image_mean": MEAN, "image_std": STD},
    ):
        kind = transformers.CLIPImageProcessorPil if "crop_size" in settings else transformers.ViTImageProcessorPil
        theirs = kind(**settings)
        expected = theirs(images=images, return_tensors="np")["pixel_values"]
        ours = Preprocessing.from_config(theirs.to_dict())
        np.testing.assert_allclose(ours(images), expected, atol=1e-6)
