"""Where the fingertip of a planar arm of two links is, and how to hold the joints for it to be somewhere.

tip = l₁ (cos q₁, sin q₁) + l₂ (cos(q₁ + q₂), sin(q₁ + q₂)), with q₁ the shoulder and q₂ the wrist. A point at distance
r ≤ l₁ + l₂ is reached with cos q₂ = (r² − l₁² − l₂²) / (2 l₁ l₂), in two ways: the elbow on its one side or the other.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["LINKS", "NEAR", "TARGETS", "WRIST_LIMIT", "draw_targets", "fingertip", "joint_angles", "wrap"]

LINKS = (0.12, 0.12)
"""Lengths of the arm and of the hand up to the fingertip, in metres; as in dm_control's model."""
WRIST_LIMIT = math.radians(160)
"""The wrist turns this far to either side; the shoulder turns round and round."""
NEAR = 2 * LINKS[0] * math.cos(WRIST_LIMIT / 2)
"""Points nearer to the shoulder than this are out of reach."""
TARGETS = (0.05, 0.20)
"""How far from the shoulder targets lie, in metres; as in dm_control's task."""


def wrap(angles: np.ndarray) -> np.ndarray:
    """Angles in [−π, π).

    >>> wrap(np.array([0.5, np.pi, -7.0])).round(3).tolist()
    [0.5, -3.142, -0.717]
    """
    return (angles + np.pi) % (2 * np.pi) - np.pi


def fingertip(angles: np.ndarray) -> np.ndarray:
    """(..., 2) joint angles → (..., 2) metres from the shoulder."""
    first, second = angles[..., 0], angles[..., 0] + angles[..., 1]
    return np.stack([_along(np.cos(first), np.cos(second)), _along(np.sin(first), np.sin(second))], -1)


def _along(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return LINKS[0] * first + LINKS[1] * second


def joint_angles(points: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Inverse kinematics: (..., 2) metres, (...) sides of the elbow, each ±1 → (..., 2) joint angles.

    Where a point is out of reach these are the angles of the nearest one that is not.
    """
    square = (points**2).sum(-1)
    cosine = (square - LINKS[0] ** 2 - LINKS[1] ** 2) / (2 * LINKS[0] * LINKS[1])
    wrist = side * np.minimum(np.arccos(np.clip(cosine, -1, 1)), WRIST_LIMIT)
    lead = np.arctan2(LINKS[1] * np.sin(wrist), LINKS[0] + LINKS[1] * np.cos(wrist))
    return np.stack([wrap(np.arctan2(points[..., 1], points[..., 0]) - lead), wrist], -1)


def draw_targets(count: int, arc: float, rng: np.random.Generator) -> np.ndarray:
    """Points to reach for, in directions up to `arc` radians to either side of straight ahead: (count, 2)."""
    direction, far = rng.uniform(-arc, arc, count), rng.uniform(*TARGETS, count)
    return np.stack([far * np.cos(direction), far * np.sin(direction)], -1)
