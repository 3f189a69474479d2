"""Forward and inverse kinematics of a planar arm with two links.

tip = l₁ (cos q₁, sin q₁) + l₂ (cos(q₁ + q₂), sin(q₁ + q₂)), with q₁ the shoulder and q₂ the wrist. A point at distance
r ≤ l₁ + l₂ has cos q₂ = (r² − l₁² − l₂²) / (2 l₁ l₂), with two solutions: the elbow on one side or the other.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["LINKS", "NEAREST", "TARGETS", "WRIST_LIMIT", "draw_targets", "fingertip", "joint_angles", "wrap"]

LINKS = (0.12, 0.12)
"""Lengths of the arm and of the hand up to the fingertip, in metres, as in dm_control's model."""
WRIST_LIMIT = math.radians(160)
"""Largest wrist angle to either side; the shoulder has no limit."""
NEAREST = 2 * LINKS[0] * math.cos(WRIST_LIMIT / 2)
"""Smallest distance from the shoulder that the fingertip can reach."""
TARGETS = (0.05, 0.20)
"""Range of the distance of targets from the shoulder, in metres, as in dm_control's task."""


def wrap(angles: np.ndarray) -> np.ndarray:
    """Angles in [−π, π).

    >>> wrap(np.array([0.5, np.pi, -7.0])).round(3).tolist()
    [0.5, -3.142, -0.717]
    """
    return (angles + np.pi) % (2 * np.pi) - np.pi


def fingertip(angles: np.ndarray) -> np.ndarray:
    """Joint angles (..., 2) → metres from the shoulder (..., 2)."""
    first, second = angles[..., 0], angles[..., 0] + angles[..., 1]
    x = LINKS[0] * np.cos(first) + LINKS[1] * np.cos(second)
    y = LINKS[0] * np.sin(first) + LINKS[1] * np.sin(second)
    return np.stack([x, y], -1)


def joint_angles(points: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Inverse kinematics: metres (..., 2) and sides of the elbow (...), each ±1 → joint angles (..., 2).

    For an unreachable point, these are the angles of the nearest reachable point.
    """
    square = (points**2).sum(-1)
    cosine = (square - LINKS[0] ** 2 - LINKS[1] ** 2) / (2 * LINKS[0] * LINKS[1])
    wrist = side * np.minimum(np.arccos(np.clip(cosine, -1, 1)), WRIST_LIMIT)
    lead = np.arctan2(LINKS[1] * np.sin(wrist), LINKS[0] + LINKS[1] * np.cos(wrist))
    return np.stack([wrap(np.arctan2(points[..., 1], points[..., 0]) - lead), wrist], -1)


def draw_targets(count: int, arc: float, rng: np.random.Generator) -> np.ndarray:
    """Random targets in directions up to `arc` radians to either side of straight ahead: (count, 2)."""
    direction = rng.uniform(-arc, arc, count)
    distance = rng.uniform(*TARGETS, count)
    return np.stack([distance * np.cos(direction), distance * np.sin(direction)], -1)
