"""Episodes written in the formats of others, from their specification or by their own packages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from workflows.encode.small_models import write_video

__all__ = ["Drawn", "draw", "write_lance", "write_lerobot", "write_npz"]

Drawn = list[dict[str, np.ndarray]]


def draw(*lengths: int, size: int = 8) -> Drawn:
    """Episodes with pixels, states and actions; the last action of each leads nowhere."""
    rng = np.random.default_rng(0)
    return [
        {
            "pixels": rng.integers(0, 256, (length, size, size, 3), dtype=np.uint8),
            "state": rng.normal(size=(length, 2)).astype(np.float32),
            "action": rng.uniform(-1, 1, (length, 1)).astype(np.float32),
        }
        for length in lengths
    ]


def write_lerobot(folder: Path, episodes: Drawn, *, per_file: int = 2, rate: int = 10) -> None:
    """The layout of version 3.0: several episodes in each parquet and video file."""
    camera = "observation.images.front"
    rows: list[dict[str, Any]] = []
    listed: list[dict[str, Any]] = []
    files: dict[int, list[dict[str, np.ndarray]]] = {}
    for number, episode in enumerate(episodes):
        file = number // per_file
        before = sum(len(one["pixels"]) for one in files.get(file, []))
        files.setdefault(file, []).append(episode)
        length = len(episode["pixels"])
        place = {"chunk_index": 0, "file_index": file}
        video = place | {"from_timestamp": before / rate, "to_timestamp": (before + length) / rate}
        listed.append(
            {"episode_index": number, "length": length, "dataset_from_index": len(rows)}
            | {f"data/{name}": value for name, value in place.items()}
            | {f"videos/{camera}/{name}": value for name, value in video.items()}
        )
        for step in range(length):
            rows.append(
                {
                    "observation.state": episode["state"][step].tolist(),
                    "action": episode["action"][step].tolist(),
                    "timestamp": step / rate,
                    "frame_index": step,
                    "episode_index": number,
                    "index": len(rows),
                }
            )
    for file, shown in files.items():
        write_video(
            folder / f"videos/{camera}/chunk-000/file-{file:03d}.mkv", np.concatenate([one["pixels"] for one in shown])
        )
        first = file * per_file
        some = [row for row in rows if first <= row["episode_index"] < first + per_file]
        _write_parquet(folder / f"data/chunk-000/file-{file:03d}.parquet", some)
    _write_parquet(folder / "meta/episodes/chunk-000/file-000.parquet", listed)
    features = {
        camera: {"dtype": "video", "shape": [*episodes[0]["pixels"].shape[1:]]},
        "observation.state": {"dtype": "float32", "shape": [2]},
        "action": {"dtype": "float32", "shape": [1]},
        "timestamp": {"dtype": "float32", "shape": [1]},
    }
    info = {
        "codebase_version": "v3.0",
        "fps": rate,
        "features": features,
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mkv",  # .mp4 would lose pixels
    }
    (folder / "meta/info.json").write_text(json.dumps(info))


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows), path)


def write_lance(folder: Path, episodes: Drawn) -> None:
    """The schema of stable-worldmodel, with images as PNG, which loses nothing."""
    import lance

    columns: dict[str, list[Any]] = {"episode_idx": [], "step_idx": [], "pixels": [], "state": [], "action": []}
    for number, episode in enumerate(episodes):
        for step in range(len(episode["pixels"])):
            columns["episode_idx"].append(number)
            columns["step_idx"].append(step)
            columns["pixels"].append(png(episode["pixels"][step]))
            columns["state"].append(episode["state"][step].tolist())
            columns["action"].append(episode["action"][step].tolist())
    schema = pa.schema(
        {
            "episode_idx": pa.int32(),
            "step_idx": pa.int32(),
            "pixels": pa.binary(),
            "state": pa.list_(pa.float32(), 2),
            "action": pa.list_(pa.float32(), 1),
        }
    )
    lance.write_dataset(pa.table(columns, schema), str(folder))


def png(image: np.ndarray) -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


def write_npz(folder: Path, episodes: Drawn) -> None:
    """Actions without a row for the last step."""
    folder.mkdir()
    for number, episode in enumerate(episodes):
        np.savez(folder / f"{number:03d}.npz", **episode | {"action": episode["action"][:-1]})
