"""Animals on four legs, and trees."""

from __future__ import annotations

import numpy as np

from jepatlas.worlds.objects.parts import Colour, Dice, Part, ball, disc, rod

__all__ = ["animal", "tree"]


def animal(dice: Dice) -> list[Part]:
    """From pig to giraffe: long or short of body, legs and neck."""
    skin, spots = dice.colour(), dice.colour()
    long, girth, legs = dice.between(0.45, 0.9), dice.between(0.2, 0.36), dice.between(0.3, 0.9)
    thick = dice.between(0.05, 0.1)
    body = ball((0, 0, legs + girth * 0.7), (long, girth, girth), skin)
    feet = [(x * long * 0.6, y * girth * 0.6, thick) for x in (-1, 1) for y in (-1, 1)]
    stand = [rod(foot, (foot[0], foot[1], legs + girth * 0.5), thick, spots) for foot in feet]
    tail = rod((-long * 0.9, 0, legs + girth * 0.8), (-long * 0.9 - dice.between(0.1, 0.5), 0, legs * 0.9), 0.05, spots)
    return [body, *stand, tail, *_head(dice, np.array([long * 0.8, 0, legs + girth]), girth, skin, spots)]


def _head(dice: Dice, shoulder: np.ndarray, girth: float, skin: Colour, spots: Colour) -> list[Part]:
    neck, steep, big = dice.between(0.15, 0.8), dice.between(0.3, 1.3), girth * dice.between(0.6, 0.85)
    head = shoulder + neck * np.array([np.cos(steep), 0, np.sin(steep)])

    def at(x: float, y: float, z: float) -> np.ndarray:
        return head + np.array([x, y, z])

    snout = rod(head, at(big * dice.between(1.0, 1.9), 0, -big * 0.3), big * 0.5, spots)
    ear = big * 0.6 + dice.between(0.1, 0.4)
    ears = [rod(at(0, y * big * 0.6, big * 0.6), at(-0.1, y * big, ear), 0.06, spots) for y in (-1, 1)]
    throat = rod(shoulder - 0.1 * np.array([1, 0, 1]), head, girth * 0.45, skin)
    return [throat, ball(head, (big, big, big), skin), snout, *ears]


def tree(dice: Dice) -> list[Part]:
    """A trunk below a crown, a cone of discs or a heap of balls; one branch, so that it has a front."""
    bark, leaves = dice.colour(), dice.colour()
    trunk, wide, high = dice.between(0.4, 0.9), dice.between(0.35, 0.65), dice.between(0.7, 1.4)
    thick, out = dice.between(0.06, 0.12), wide * dice.between(1.0, 1.4)
    stem = rod((0, 0, 0), (0, 0, trunk + high / 2), thick, bark, rounded=False)
    tip, bush = (out, 0, trunk * 0.85), wide * dice.between(0.25, 0.4)
    branch = [rod((0, 0, trunk * 0.5), tip, thick * 0.6, bark), ball(tip, (bush, bush, bush), leaves)]
    return [stem, *branch, *(_cone if dice.chance(0.5) else _heap)(dice, trunk, wide, high, leaves)]


def _cone(dice: Dice, trunk: float, wide: float, high: float, leaves: Colour) -> list[Part]:
    tiers = dice.count(3, 5)
    step = high / tiers
    return [
        disc((0, 0, trunk + (tier + 0.5) * step), wide * (1 - tier / tiers), step * 0.5, leaves)
        for tier in range(tiers)
    ]


def _heap(dice: Dice, trunk: float, wide: float, high: float, leaves: Colour) -> list[Part]:
    parts = []
    for turn in np.linspace(0, 2 * np.pi, dice.count(4, 7), endpoint=False):
        out, size = wide * dice.between(0.3, 0.6), wide * dice.between(0.45, 0.75)
        centre = (out * np.cos(turn), out * np.sin(turn), trunk + high * dice.between(0.2, 0.8))
        parts.append(ball(centre, (size, size, size * dice.between(0.7, 1.1)), leaves))
    return parts
