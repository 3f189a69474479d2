"""Videos, episodes and texts encoded, with pairs, times and groups, against the models called by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from cli.calls import Captured, answer, refused
from PIL import Image
from torch.nn.functional import normalize
from training.small import call
from workflows.encode.small_models import MEAN, STD, save_text_model, save_video_model, save_vision_model, write_video

import jepatlas as ja
from jepatlas.core.arrays import read_arrays
from jepatlas.data import EpisodeFile, EpisodeWriter


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def films(*lengths: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (length, 16, 16, 3), dtype=np.uint8) for length in lengths]


def standardised(frames: np.ndarray) -> torch.Tensor:
    mean, std = (torch.tensor(one)[:, None, None] for one in (MEAN, STD))
    return (torch.from_numpy(np.moveaxis(frames, -1, -3) / 255).float() - mean) / std


def test_frames_of_videos_in_pairs_at_a_stride(capsys: Captured):
    model = save_vision_model(Path("model"), "ViT")
    videos = films(9, 7)
    for number, video in enumerate(videos):
        write_video(Path(f"videos/part{number}/film.mkv"), video, rate=5)
    write_video(Path("videos/short.mkv"), videos[0][:2])
    Path("videos/broken.mp4").write_bytes(b"no video")
    told = answer(capsys, "encode", "videos", "--model", "model", "--stride", "2", "--out", "v.npz", "--batch", "3")
    assert sum("Left out" in note for note in told["notes"]) == 2
    found = read_arrays("v.npz")
    with torch.no_grad():
        h = [model(pixel_values=standardised(video[::2])).last_hidden_state[:, 0] for video in videos]
    np.testing.assert_allclose(found["h"], torch.cat([one[:-1] for one in h]), atol=1e-5)
    np.testing.assert_allclose(found["h_next"], torch.cat([one[1:] for one in h]), atol=1e-5)
    assert found["groups"].tolist() == ["part0/film.mkv"] * 4 + ["part1/film.mkv"] * 3
    np.testing.assert_allclose(found["times"], [0, 0.4, 0.8, 1.2, 0, 0.4, 0.8], atol=2e-3)
    assert found["ids"][1] == "part0/film.mkv#2"


@pytest.mark.parametrize("family", ["VJEPA2", "VideoMAE"])
def test_clips_of_video_models(family: str):
    model = save_video_model(Path("model"), family)
    videos = films(10, 8)
    for number, video in enumerate(videos):
        write_video(Path(f"videos/film{number}.mkv"), video)
    found = ja.encode("model", "videos", stride=2)
    name = model.main_input_name
    expected, following = [], []
    with torch.no_grad():
        for video in videos:
            clips = torch.stack([standardised(crop(video[k : k + 4], family)) for k in range(0, len(video) - 3, 2)])
            h = model(**{name: clips}).last_hidden_state.mean(1)
            expected.append(h[:-1])
            following.append(h[1:])
    np.testing.assert_allclose(found["h"], torch.cat(expected), atol=1e-5)
    np.testing.assert_allclose(found["h_next"], torch.cat(following), atol=1e-5)
    assert len(ja.encode("model", "videos")["h"]) == 2, "by default clips do not overlap"
    clips = np.stack([videos[0][:4], videos[0][2:6]])
    np.testing.assert_allclose(ja.encode("model", clips), found["h"][:2], atol=1e-6)


def crop(frames: np.ndarray, family: str) -> np.ndarray:
    """What the settings ask for: V-JEPA 2 enlarges to 18 pixels and cuts the middle."""
    if family != "VJEPA2":
        return frames
    larger = np.stack([np.asarray(Image.fromarray(frame).resize((18, 18), 2)) for frame in frames])
    return larger[:, 1:17, 1:17]


def test_from_a_folder_of_videos_to_a_certificate_in_two_commands(capsys: Captured):
    """A moving gradient, seen by a model with the architecture of V-JEPA 2."""
    save_video_model(Path("model"), "VJEPA2")
    rng = np.random.default_rng(0)
    for number in range(6):
        position = np.cumsum(rng.normal(0, 1, (60, 1, 1, 3)), 0)
        ramp = np.linspace(0, 3, 16)[:, None, None] + np.linspace(0, 2, 16)[:, None]
        write_video(Path(f"videos/{number}.mkv"), (127 + 127 * np.sin(position + ramp)).astype(np.uint8))
    assert call("encode", "videos", "--model", "model", "--clip", "2", "--stride", "1", "--out", "v.npz") == 0
    assert "Next: jepatlas certify v.npz" in capsys.readouterr().out
    told = answer(capsys, "certify", "v.npz", "--quick")
    assert {one["name"] for one in told["verdicts"]} >= {"effective_rank", "isotropy"}
    assert "ignored" not in told["summary"]


def test_episodes_are_encoded_with_their_states(capsys: Captured):
    model = save_vision_model(Path("model"), "ViT")
    rng = np.random.default_rng(0)
    with EpisodeWriter("rooms.h5") as file:
        for length in (7, 5):
            pixels = rng.integers(0, 256, (length, 20, 20, 3), dtype=np.uint8)
            file.append({"pixels": pixels, "state": rng.normal(size=(length, 2)), "action": np.zeros((length, 1))})
    found = ja.encode("model", "rooms.h5", stride=2)
    assert set(found) >= {"h", "h_next", "z", "groups", "steps", "ids"}
    first = EpisodeFile("rooms.h5").episode(0)
    with torch.no_grad():
        small = np.stack([np.asarray(Image.fromarray(one).resize((16, 16), 2)) for one in first["pixels"]])
        h = model(pixel_values=standardised(small)).last_hidden_state[:, 0]
    np.testing.assert_allclose(found["h"][0], h[0], atol=1e-5)
    np.testing.assert_allclose(found["h_next"][0], h[2], atol=1e-5)
    np.testing.assert_allclose(found["z"][:2], first["state"][[0, 2]])
    assert found["groups"].tolist() == [0] * 3 + [1] * 2 and found["steps"].tolist() == [0, 2, 4, 0, 2]


def test_texts_by_models_of_sentences_and_of_words(capsys: Captured):
    words = "the cat sat on a mat while dogs ran"
    model = save_text_model(Path("sentences"), words=words, sentence=True)
    save_text_model(Path("words"), words=words, sentence=False)
    lines = ["the cat sat", "dogs ran on the mat", "a cat"]
    Path("texts.txt").write_text("\n".join([*lines[:2], "", lines[2]]) + "\n")
    assert call("encode", "texts.txt", "--model", "sentences", "--out", "new.npz") == 0
    found = read_arrays("new.npz")
    numbers = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *sorted(set(words.split()))])}
    expected = []
    with torch.no_grad():
        for line in lines:
            ids = torch.tensor([[numbers[word] for word in line.split()]])
            expected.append(model(input_ids=ids).last_hidden_state.mean(1))
    np.testing.assert_allclose(found["h"], normalize(torch.cat(expected)), atol=1e-5)
    assert found["ids"].tolist() == ["line0000001", "line0000002", "line0000004"] and found["raw"].shape == (3, 256)
    np.testing.assert_allclose(ja.encode("words", lines), torch.cat(expected), atol=1e-5)
    capsys.readouterr()
    Image.fromarray(films(1)[0][0]).save("image.png")
    assert "encodes texts" in refused(capsys, "encode", ".", "--model", "words", "--out", "x.npz")
