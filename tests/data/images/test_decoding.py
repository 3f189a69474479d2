"""Decoding images of every mode and size, intact and broken, into one array on disk."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from jepatlas.core.errors import InputError
from jepatlas.data.images import MultiViewTable, decode, pixel_scale
from jepatlas.data.images.decoding import read_image

RAMP = np.tile(np.arange(0, 256, 8, dtype=np.uint8), (24, 1))  # 24 × 32


def table_of(folder: Path, names: list[str]) -> MultiViewTable:
    lines = ["path,state,view"] + [f"{name},s{number},left" for number, name in enumerate(names)]
    (folder / "views.csv").write_text("\n".join(lines) + "\n")
    return MultiViewTable.read(folder)


def good_and_bad(folder: Path) -> MultiViewTable:
    """Rows 0 and 4 are intact; the others are truncated, empty or missing."""
    for name in ("a.png", "e.png"):
        Image.fromarray(RAMP + ord(name[0]) % 8).save(folder / name)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 32), np.uint8)).save(folder / "cut.png")
    (folder / "cut.png").write_bytes((folder / "cut.png").read_bytes()[:400])
    (folder / "empty.jpg").write_bytes(b"")
    return table_of(folder, ["a.png", "cut.png", "empty.jpg", "gone.png", "e.png"])


def test_broken_images_are_skipped_counted_and_named(tmp_path: Path):
    decoded = decode(good_and_bad(tmp_path), (32, 24), folder=tmp_path / "cache", threads=2)
    assert decoded.table.column("state").tolist() == ["s0", "s4"] and len(decoded.skipped) == 3
    assert decoded.message.startswith("3 of 5 images were left out: ")
    for part in ("cut.png", "empty.jpg", "image"):
        assert part in decoded.message
    assert decoded.images.shape == (2, 24, 32, 3) and decoded.images.dtype == np.uint8
    assert isinstance(decoded.images, np.memmap) and not decoded.images.flags.writeable
    for row, letter in enumerate("ae"):
        assert (decoded.images[row] == (RAMP + ord(letter) % 8)[..., None]).all()


def test_strict_mode_rejects_the_first_broken_image_and_writes_nothing(tmp_path: Path):
    table = good_and_bad(tmp_path)
    with pytest.raises(InputError, match=r"cut\.png"):
        decode(table, (32, 24), folder=tmp_path / "cache", strict=True)
    assert not list((tmp_path / "cache").iterdir())
    decode(table, (32, 24), folder=tmp_path / "cache")
    with pytest.raises(InputError, match=r"cut\.png"):  # also if it was decoded before
        decode(table, (32, 24), folder=tmp_path / "cache", strict=True)


def test_table_of_only_broken_images_is_rejected(tmp_path: Path):
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"1.*images"):
        decode(table_of(tmp_path, ["a.png"]), (4, 4), folder=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_decoded_images_are_cached_until_a_source_changes(tmp_path: Path):
    table, cache, reported = good_and_bad(tmp_path), tmp_path / "cache", []
    first = decode(table, (32, 24), folder=cache, progress=lambda done, total: reported.append((done, total)))
    assert reported == [(done, 5) for done in range(1, 6)]
    again = decode(table, (32, 24), folder=cache, progress=lambda done, total: pytest.fail("decoded again"))
    assert again.path == first.path and np.array_equal(again.images, first.images) and again.skipped == first.skipped
    assert decode(table, (16, 12), folder=cache).images.shape == (2, 12, 16, 3)
    assert decode(table, (32, 24), folder=cache, fit="cover").path != first.path
    Image.fromarray(RAMP).save(tmp_path / "empty.jpg")
    mended = decode(table, (32, 24), folder=cache)
    assert mended.path != first.path and len(mended.images) == 3


def test_symlinks_are_decoded_as_their_target_with_or_without_cache(tmp_path: Path):
    (tmp_path / "tab" / "im").mkdir(parents=True)
    (tmp_path / "tab2").mkdir()
    (tmp_path / "tab2" / "im").symlink_to("../tab/im")
    Image.fromarray(RAMP).save(tmp_path / "tab" / "im" / "a.png")
    cold = decode(table_of(tmp_path / "tab2", ["im/a.png", "im/gone.png"]), (32, 24), folder=tmp_path / "cold")
    decode(table_of(tmp_path / "tab", ["im/a.png", "im/gone.png"]), (32, 24), folder=tmp_path / "warm")
    warm = decode(MultiViewTable.read(tmp_path / "tab2"), (32, 24), folder=tmp_path / "warm")
    assert np.array_equal(cold.images, warm.images) and (cold.images[0] == RAMP[..., None]).all()
    assert len(cold.skipped) == len(warm.skipped) == 1


def test_forbidden_paths_are_skipped_even_if_another_table_decoded_them(tmp_path: Path):
    (tmp_path / "data").mkdir()
    for name in ("secret.png", "data/a.png"):
        Image.fromarray(RAMP).save(tmp_path / name)
    decode(table_of(tmp_path, ["secret.png", "data/a.png"]), (32, 24), folder=tmp_path / "cache")
    decoded = decode(table_of(tmp_path / "data", ["../secret.png", "a.png"]), (32, 24), folder=tmp_path / "cache")
    assert decoded.table.column("state").tolist() == ["s1"]
    assert len(decoded.skipped) == 1 and "secret.png, which lies outside" in decoded.skipped[0]


def test_result_is_independent_of_thread_count(tmp_path: Path):
    names = [f"{number}.png" for number in range(70)]  # more than one chunk per thread
    for number, name in enumerate(names):
        Image.fromarray(RAMP // 2 + number).save(tmp_path / name)
    table = table_of(tmp_path, names)
    one, three = (decode(table, (32, 24), folder=tmp_path / str(n), threads=n).images for n in (1, 3))
    assert np.array_equal(one, three) and (one[:, 0, 0, 0] == np.arange(70)).all()


def test_user_cache_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    path = decode(good_and_bad(tmp_path), (32, 24)).path
    assert path.parent.parent == tmp_path / "user" / "jepatlas"
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(InputError, match=r"images-"):
        decode(MultiViewTable.read(tmp_path), (32, 24))


def test_all_modes_are_converted_to_rgb(tmp_path: Path):
    grey = Image.fromarray(RAMP)
    sixteen = Image.fromarray(RAMP.astype(np.uint16) * 257)
    modes = {
        "palette.png": "P",
        "cmyk.tif": "CMYK",
        "rgb.png": "RGB",
        "rgba.png": "RGBA",
        "la.png": "LA",
        "one.png": "1",
    }
    given = {name: grey.convert(mode) for name, mode in modes.items()}
    for name, image in (given | {"grey.png": grey, "sixteen.png": sixteen, "sixteen.tif": sixteen}).items():
        image.save(tmp_path / name)
        rgb, alone = read_image(tmp_path / name), read_image(tmp_path / name, mode="grey")
        assert rgb.shape == (24, 32, 3) and alone.shape == (24, 32) and rgb.dtype == np.uint8
        if name != "one.png":
            assert abs(rgb.astype(int) - RAMP[..., None]).max() <= 1, name
            assert abs(alone.astype(int) - RAMP).max() <= 1, name


def test_transparent_pixels_are_composited_on_black(tmp_path: Path):
    pixels = np.full((2, 2, 4), 200, np.uint8)
    pixels[0, :, 3], pixels[1, :, 3] = 0, 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png")[:, 0, 0].tolist() == [0, 200]
    palette = Image.fromarray(np.array([[0, 1]], np.uint8), mode="P")
    palette.putpalette([9, 9, 9, 200, 200, 200])
    palette.save(tmp_path / "p.png", transparency=0)
    assert read_image(tmp_path / "p.png")[0, :, 0].tolist() == [0, 200]


def test_images_of_unknown_range_are_rejected(tmp_path: Path):
    Image.fromarray(RAMP.astype(np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(InputError, match=r"a\.tif.*image:.*32-bit"):
        read_image(tmp_path / "a.tif")


def test_resizing_with_and_without_cropping(tmp_path: Path):
    wide = np.zeros((8, 24), np.uint8)
    wide[:, 8:16] = 255  # the middle third is a white square
    Image.fromarray(wide).save(tmp_path / "a.png")
    stretched, covered = (read_image(tmp_path / "a.png", mode="grey", size=(8, 8), fit=f) for f in ("stretch", "cover"))
    assert stretched.shape == covered.shape == (8, 8)
    assert (covered == 255).all() and stretched[:, 0].max() == 0 and stretched[:, 4].min() == 255


@pytest.mark.data
def test_reduced_decoding_matches_full_decoding_of_real_photos():
    """JPEG's built-in reduction against decoding at full size."""
    photo = sorted((Path(os.environ["JEPATLAS_DATA"]) / "eth80" / "images").glob("*.jpg"))[0]
    with Image.open(photo) as file:
        side = max(4, min(file.size) // 5)
        expected = np.asarray(file.convert("RGB").resize((side, side), Image.Resampling.BICUBIC)).astype(int)
    assert abs(read_image(photo, size=(side, side)) - expected).mean() < 3


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied_as_in_pillow(tmp_path: Path, orientation: int):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(tmp_path / "photo.png", exif=exif)
    with Image.open(tmp_path / "photo.png") as file:
        np.testing.assert_array_equal(read_image(tmp_path / "photo.png"), np.asarray(ImageOps.exif_transpose(file)))


@pytest.mark.parametrize("shape", [(40, 6, 5, 3), (40, 6, 5)])
def test_pixel_scale_is_mean_and_standard_deviation_per_channel(shape: tuple[int, ...]):
    images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    images[..., 0] //= 3
    rows = np.array([1, 5, 7, 30])
    pixels = images[rows] / 255 if len(shape) == 4 else np.repeat(images[rows][..., None], 3, 3) / 255
    mean, std = pixel_scale(images, rows)
    np.testing.assert_allclose(mean, pixels.mean((0, 1, 2)), atol=1e-6)
    np.testing.assert_allclose(std, pixels.std((0, 1, 2)), atol=1e-6)


def test_pixel_scale_subsamples_many_images_evenly():
    images = np.zeros((5000, 1, 1, 3), np.uint8)
    images[:2500] = 255
    mean, std = pixel_scale(images, np.arange(5000))
    np.testing.assert_allclose([*mean, *std], 0.5, atol=1e-3)


def test_pixel_scale_of_constant_images_is_finite():
    mean, std = pixel_scale(np.full((3, 2, 2, 3), 102, np.uint8), np.arange(3))
    assert mean == (0.4, 0.4, 0.4) and min(std) == pytest.approx(1 / 255, abs=1e-6)
