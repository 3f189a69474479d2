"""Rendering of the reacher at 64 × 64: MuJoCo's renderer with the suite's model, compared with jepatlas'.

Rendering must reach 500 images per CPU-second: 100 ms for 50 images.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import resources
from typing import Any

import numpy as np

from benchmarks.measurement import Comparison, compare
from jepatlas.worlds import Reacher
from jepatlas.worlds.reacher.arm import load_reacher_mujoco

__all__ = ["run"]

TURNS, PICTURES = 5, 50


def run(turns: int = TURNS, pictures: int = PICTURES) -> Iterator[Comparison]:
    os.environ.setdefault("MUJOCO_GL", "egl")  # MuJoCo reads this when it is imported
    angles = Reacher().states(pictures, np.random.default_rng(0))
    with Reacher() as ours, load_reacher_mujoco().Renderer(suite_model(), 64, 64) as renderer:
        name = f"{pictures} pictures, 64×64: MuJoCo's renderer with the suite's settings, ours"
        yield compare(name, lambda: by_default(renderer, angles), lambda: ours.render(angles), turns)
    with Reacher() as above, Reacher(camera="tilted") as beside:
        name = f"{pictures} pictures, 64×64: ours from above, ours from the side"
        yield compare(name, lambda: above.render(angles), lambda: beside.render(angles), turns)


def suite_model() -> Any:
    path = resources.files("dm_control") / "suite" / "reacher.xml"
    return load_reacher_mujoco().MjModel.from_xml_path(str(path))


def by_default(renderer: Any, angles: np.ndarray) -> None:
    model = renderer.model
    data = load_reacher_mujoco().MjData(model)
    for angle in angles:
        data.qpos[:] = angle
        load_reacher_mujoco().mj_forward(model, data)
        renderer.update_scene(data, "fixed")
        renderer.render()
