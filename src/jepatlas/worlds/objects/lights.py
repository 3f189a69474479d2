"""Lights, each a sun at infinity and what the sky adds; they stand still while the object turns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["LIGHTS", "LIGHT_NAMES", "Light", "Lighting", "direction"]

Lighting = Literal["morning", "noon", "evening", "overcast"]
LIGHT_NAMES: tuple[Lighting, ...] = get_args(Lighting)


@dataclass(frozen=True)
class Light:
    """Where the sun stands, in degrees as a camera does, and the two colours of its light."""

    azimuth: float
    elevation: float
    sun: tuple[float, float, float]
    sky: tuple[float, float, float]


LIGHTS: dict[Lighting, Light] = dict(
    zip(
        LIGHT_NAMES,
        (
            Light(70.0, 30.0, (0.75, 0.66, 0.5), (0.3, 0.32, 0.38)),
            Light(0.0, 90.0, (0.6, 0.6, 0.6), (0.4, 0.4, 0.4)),
            Light(230.0, 25.0, (0.75, 0.48, 0.34), (0.3, 0.3, 0.36)),
            Light(0.0, 90.0, (0.15, 0.15, 0.18), (0.55, 0.55, 0.6)),
        ),
        strict=True,
    )
)
"""Noon and overcast come from straight above: they look the same from all sides."""


def direction(azimuth: float, elevation: float) -> tuple[float, float, float]:
    """The unit vector from the object towards a camera or a sun; angles in degrees."""
    a, e = math.radians(azimuth), math.radians(elevation)
    return math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)
