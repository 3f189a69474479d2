"""Lights, and images of objects: MuJoCo renders a list of bodies without simulation.

An object turned by α, seen from direction φ in light from λ, looks like the unturned object seen from φ - α in light
from λ - α. So the bodies of an object are set once, and only the camera and the light change between images.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from jepatlas.worlds.mujoco_canvas import Canvas, load_mujoco, simplify_rendering
from jepatlas.worlds.objects.parts import Colour, Part

__all__ = ["LIGHTS", "LIGHT_NAMES", "Light", "Lighting", "ObjectRenderer"]

Lighting = Literal["morning", "noon", "evening", "overcast"]
LIGHT_NAMES: tuple[Lighting, ...] = get_args(Lighting)

DISTANCE = 6.0  # of a camera from the object's centre
HALF_WIDTH = 0.9  # half the width of the view, in the plane through that centre
NEAR, FAR = 4.0, 200.0
FLOOR = 150.0  # half its length: it fills the background even from the lowest elevation
SLICES = 12
MAX_PARTS = 40


@dataclass(frozen=True)
class Light:
    """A distant light source (angles in degrees, as for cameras), its colour, and the ambient colour."""

    azimuth: float
    elevation: float
    sun: Colour
    sky: Colour


LIGHTS: dict[Lighting, Light] = {
    "morning": Light(70.0, 30.0, (0.75, 0.66, 0.5), (0.3, 0.32, 0.38)),
    "noon": Light(0.0, 90.0, (0.6, 0.6, 0.6), (0.4, 0.4, 0.4)),
    "evening": Light(230.0, 25.0, (0.75, 0.48, 0.34), (0.3, 0.3, 0.36)),
    "overcast": Light(0.0, 90.0, (0.15, 0.15, 0.18), (0.55, 0.55, 0.6)),
}
"""Lights do not turn with the object. Noon and overcast are vertical: they look the same from all sides."""


class ObjectRenderer:
    """Renders one object after another. It belongs to one process and thread; `close` releases its OpenGL context."""

    def __init__(self, size: int) -> None:
        self.mujoco = load_mujoco("The world 'objects'")
        spec = self.mujoco.MjSpec()
        simplify_rendering(spec, size, SLICES)
        model = spec.compile()
        self.size = size
        self.canvas = Canvas(self.mujoco, model, size)
        self.scene = self.canvas.scene(model, MAX_PARTS)
        self.geom_types = {
            name: getattr(self.mujoco.mjtGeom, f"mjGEOM_{name.upper()}")
            for name in ("box", "capsule", "cylinder", "ellipsoid")
        }
        self._set_lens()
        self._add_light()

    def _set_lens(self) -> None:
        half = HALF_WIDTH * NEAR / DISTANCE
        for eye in self.scene.camera:  # two for stereo; MuJoCo renders their average
            eye.frustum_near, eye.frustum_far, eye.frustum_center = NEAR, FAR, 0.0
            eye.frustum_bottom, eye.frustum_top, eye.frustum_width = -half, half, half

    def _add_light(self) -> None:
        self.scene.nlight = 1
        lamp = self.scene.lights[0]
        lamp.type, lamp.texid = self.mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, -1
        lamp.headlight = lamp.castshadow = 0
        lamp.attenuation[:], lamp.specular[:] = (1.0, 0.0, 0.0), 0.15

    def make_current(self) -> None:
        self.canvas.make_current()

    def place(self, parts: list[Part]) -> None:
        """Replace the object on the floor."""
        bottom = min(part.centre[2] - part.half_extent()[2] for part in parts)
        floor = Part("box", np.array([FLOOR, FLOOR, 0.01]), np.array([0, 0, bottom - 0.01]), np.eye(3), (0, 0, 0))
        for body, part in zip(self.scene.geoms, [floor, *parts], strict=False):
            size = part.size
            if part.shape not in ("box", "ellipsoid"):
                size = part.size[[0, 2, 1]]  # MuJoCo's order: radius, half length
            rgba = np.array([*part.colour, 1.0], np.float32)
            self.mujoco.mjv_initGeom(body, self.geom_types[part.shape], size, part.centre, part.frame.ravel(), rgba)
        self.scene.geoms[0].specular = 0.0
        self.scene.ngeom = 1 + len(parts)

    def draw(self, row: np.ndarray, camera: tuple[float, float], turn: float, light: Light, floor: Colour) -> None:
        """Render into `row` the object turned by `turn`, seen by a camera at (azimuth, elevation), in degrees."""
        azimuth, elevation = camera[0] - turn, camera[1]
        x, y, z = _unit_vector(azimuth, elevation)
        for eye in self.scene.camera:
            eye.pos[:], eye.forward[:] = (DISTANCE * x, DISTANCE * y, DISTANCE * z), (-x, -y, -z)
            eye.up[:] = _unit_vector(azimuth, elevation + 90.0)
        lamp = self.scene.lights[0]
        lamp.dir[:] = _unit_vector(180.0 + light.azimuth - turn, -light.elevation)
        lamp.diffuse[:], lamp.ambient[:] = light.sun, light.sky
        self.scene.geoms[0].rgba[:3] = floor
        self.canvas.draw(self.scene, row)

    def close(self) -> None:
        self.canvas.close()


def _unit_vector(azimuth: float, elevation: float) -> tuple[float, float, float]:
    """From the object towards a camera or a light; angles in degrees."""
    a, e = math.radians(azimuth), math.radians(elevation)
    return math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)
