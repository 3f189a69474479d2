"""Pictures of objects: MuJoCo draws a list of bodies that no simulation moves.

An object turned by α, seen from direction φ in light from λ, is the object as built seen from φ - α in light from
λ - α. So an object's bodies are set once, and a picture changes but the camera and the light.
"""

from __future__ import annotations

import numpy as np

from jepatlas.worlds.mujoco_canvas import Canvas, keep_plain, load_mujoco
from jepatlas.worlds.objects.lights import Light, direction
from jepatlas.worlds.objects.parts import Colour, Part

__all__ = ["ObjectRenderer"]

DISTANCE = 6.0  # of a camera from the object's middle
HALF_WIDTH = 0.9  # what a camera sees of the plane through that middle, to either side
NEAR, FAR = 4.0, 200.0
FLOOR = 150.0  # half its length: it fills the background from the lowest elevation
SLICES = 12
MOST_PARTS = 40


class ObjectRenderer:
    """Draws one object after another. It belongs to one process and one thread, and `close` gives its context back."""

    def __init__(self, size: int) -> None:
        self.mujoco = load_mujoco("The world 'objects'")
        spec = self.mujoco.MjSpec()
        keep_plain(spec, size, SLICES)
        model = spec.compile()
        self.size = size
        self.canvas = Canvas(self.mujoco, model, size)
        self.scene = self.canvas.scene(model, MOST_PARTS)
        self.kinds = {
            name: getattr(self.mujoco.mjtGeom, f"mjGEOM_{name.upper()}")
            for name in ("box", "capsule", "cylinder", "ellipsoid")
        }
        self._lens()
        self._lamp()

    def _lens(self) -> None:
        half = HALF_WIDTH * NEAR / DISTANCE
        for eye in self.scene.camera:  # there are two for stereo; what is between them is drawn
            eye.frustum_near, eye.frustum_far, eye.frustum_center = NEAR, FAR, 0.0
            eye.frustum_bottom, eye.frustum_top, eye.frustum_width = -half, half, half

    def _lamp(self) -> None:
        self.scene.nlight = 1
        lamp = self.scene.lights[0]
        lamp.type, lamp.texid = self.mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, -1
        lamp.headlight = lamp.castshadow = 0
        lamp.attenuation[:], lamp.specular[:] = (1.0, 0.0, 0.0), 0.15

    def begin(self) -> None:
        self.canvas.begin()

    def place(self, parts: list[Part]) -> None:
        """Put an object on the floor, instead of the one before."""
        bottom = min(part.centre[2] - part.reach()[2] for part in parts)
        floor = Part("box", np.array([FLOOR, FLOOR, 0.01]), np.array([0, 0, bottom - 0.01]), np.eye(3), (0, 0, 0))
        for body, part in zip(self.scene.geoms, [floor, *parts], strict=False):
            size = part.size if part.shape in ("box", "ellipsoid") else part.size[[0, 2, 1]]  # radius, half length
            shade, frame = np.array([*part.colour, 1.0], np.float32), part.frame.ravel()
            self.mujoco.mjv_initGeom(body, self.kinds[part.shape], size, part.centre, frame, shade)
        self.scene.geoms[0].specular = 0.0
        self.scene.ngeom = 1 + len(parts)

    def draw(self, row: np.ndarray, camera: tuple[float, float], turn: float, light: Light, floor: Colour) -> None:
        """Fill `row` with what a camera at (azimuth, elevation) sees of the object turned by `turn`, in degrees."""
        azimuth, elevation = camera[0] - turn, camera[1]
        x, y, z = direction(azimuth, elevation)
        for eye in self.scene.camera:
            eye.pos[:], eye.forward[:] = (DISTANCE * x, DISTANCE * y, DISTANCE * z), (-x, -y, -z)
            eye.up[:] = direction(azimuth, elevation + 90.0)
        lamp = self.scene.lights[0]
        lamp.dir[:] = direction(180.0 + light.azimuth - turn, -light.elevation)
        lamp.diffuse[:], lamp.ambient[:] = light.sun, light.sky
        self.scene.geoms[0].rgba[:3] = floor
        self.canvas.draw(self.scene, row)

    def close(self) -> None:
        self.canvas.close()
