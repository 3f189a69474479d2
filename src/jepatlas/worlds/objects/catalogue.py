"""The categories of objects and how their instances are built: (seed, category, number) → parts.

An instance does not depend on the other objects of a world. Worlds with other categories or more instances show the
same objects under the same names. Changing the order of random draws here would change every picture.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.objects.parts import Colour, Dice, Part, ball, box, disc, fit_to_ball, rod

__all__ = ["CATEGORIES", "Category", "build", "floor_colour"]

Category = Literal["animal", "car", "plane", "chair", "lamp", "mug", "tower", "tree"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

GOLDEN = 0.381966  # of the circle: consecutive multiples are far apart
GLASS: Colour = (0.12, 0.16, 0.22)
RUBBER: Colour = (0.1, 0.1, 0.1)
HEADLIGHT: Colour = (0.95, 0.93, 0.75)


def build(category: Category, instance: int, seed: int) -> list[Part]:
    """An object whose bounding box is centred at 0 and inside the unit ball."""
    dice = Dice(numpy_generator(seed, f"objects/{category}", instance))
    return fit_to_ball(_BUILDERS[category](dice), dice.between(0.85, 1.0))


def floor_colour(seed: int, number: int) -> Colour:
    """A pale colour; consecutive numbers have very different hues."""
    start = numpy_generator(seed, "objects/floor").random()
    return colorsys.hsv_to_rgb((start + number * GOLDEN) % 1, 0.3, 0.8)


def _animal(dice: Dice) -> list[Part]:
    """Four legs; body, legs and neck of varying length, from pig to giraffe."""
    skin, spots = dice.colour(), dice.colour()
    long, girth, legs = dice.between(0.45, 0.9), dice.between(0.2, 0.36), dice.between(0.3, 0.9)
    thick = dice.between(0.05, 0.1)
    parts = [ball((0, 0, legs + girth * 0.7), (long, girth, girth), skin)]
    for x in (-1, 1):
        for y in (-1, 1):
            foot = (x * long * 0.6, y * girth * 0.6, thick)
            parts.append(rod(foot, (foot[0], foot[1], legs + girth * 0.5), thick, spots))
    tail_end = (-long * 0.9 - dice.between(0.1, 0.5), 0, legs * 0.9)
    parts.append(rod((-long * 0.9, 0, legs + girth * 0.8), tail_end, 0.05, spots))
    return parts + _animal_head(dice, np.array([long * 0.8, 0, legs + girth]), girth, skin, spots)


def _animal_head(dice: Dice, shoulder: np.ndarray, girth: float, skin: Colour, spots: Colour) -> list[Part]:
    neck, steep, big = dice.between(0.15, 0.8), dice.between(0.3, 1.3), girth * dice.between(0.6, 0.85)
    head = shoulder + neck * np.array([np.cos(steep), 0, np.sin(steep)])
    snout_end = head + np.array([big * dice.between(1.0, 1.9), 0, -big * 0.3])
    ear = big * 0.6 + dice.between(0.1, 0.4)
    parts = [
        rod(shoulder - 0.1 * np.array([1, 0, 1]), head, girth * 0.45, skin),
        ball(head, (big, big, big), skin),
        rod(head, snout_end, big * 0.5, spots),
    ]
    for y in (-1, 1):
        base = head + np.array([0, y * big * 0.6, big * 0.6])
        parts.append(rod(base, head + np.array([-0.1, y * big, ear]), 0.06, spots))
    return parts


def _car(dice: Dice) -> list[Part]:
    """The cabin's position and length make it a saloon, a van or a pickup."""
    paint, trim = dice.colour(), dice.colour()
    long, wide, high = dice.between(0.8, 1.3), dice.between(0.36, 0.5), dice.between(0.13, 0.28)
    wheel = dice.between(0.16, 0.28)
    floor = wheel + high
    parts = [
        box((0, 0, floor), (long, wide, high), paint),
        box((0, 0, floor - high * 0.7), (long + 0.05, wide + 0.03, high * 0.25), trim),
    ]
    for y in (-1, 1):
        parts.append(box((long, y * wide * 0.7, floor + high * 0.4), (0.03, wide * 0.16, high * 0.25), HEADLIGHT))
    for side_x in (-1, 1):
        for side_y in (-1, 1):
            x, y = side_x * long * 0.62, side_y * (wide + 0.02)
            parts.append(rod((x, y - 0.08, wheel), (x, y + 0.08, wheel), wheel, RUBBER, rounded=False))
    return parts + _car_cabin(dice, long, wide * 0.9, floor + high, paint)


def _car_cabin(dice: Dice, long: float, wide: float, base: float, paint: Colour) -> list[Part]:
    half, tall = long * dice.between(0.3, 0.75), dice.between(0.14, 0.42)
    x = dice.between(-1, 0.4) * (long - half)
    parts = [
        box((x, 0, base + tall), (half, wide, tall), GLASS),
        box((x, 0, base + 2 * tall), (half * 1.02, wide * 1.03, 0.05), paint),
    ]
    if dice.chance(0.5):
        parts.append(box((x - half, 0, base + tall), (0.04, wide * 1.02, tall), paint))
    return parts


def _plane(dice: Dice) -> list[Part]:
    """Wings high or low, with or without engines below them."""
    paint, trim = dice.colour(), dice.colour()
    long, thick, span = dice.between(0.8, 1.2), dice.between(0.12, 0.22), dice.between(0.7, 1.3)
    chord, height, x = dice.between(0.12, 0.3), dice.between(-0.6, 0.8) * thick, dice.between(-0.1, 0.25)
    tail = -long * 0.85
    fin = dice.between(0.2, 0.45)
    stabiliser_height = thick * 0.3 + dice.between(0, 0.8) * fin
    parts = [
        ball((0, 0, 0), (long, thick, thick), paint),
        box((x, 0, height), (chord, span, 0.03), trim),
        box((tail, 0, thick * 0.5 + fin / 2), (chord * 0.6, 0.03, fin / 2 + thick * 0.4), trim, lean=0.4),
        box((tail, 0, stabiliser_height), (chord * 0.5, span * 0.4, 0.03), trim),
        ball((long * 0.6, 0, thick * 0.55), (long * 0.2, thick * 0.6, thick * 0.6), GLASS),
    ]
    metal, radius, engine = dice.colour(), dice.between(0.06, 0.12), dice.between(0.15, 0.3)
    nose = x + chord
    for out in (0.4, 0.7)[: dice.count(0, 2)]:
        for side in (-1, 1):
            y = side * span * out
            start, end = (nose - engine, y, height - radius), (nose + engine * 0.5, y, height - radius)
            parts.append(rod(start, end, radius, metal, rounded=False))
    return parts


def _chair(dice: Dice) -> list[Part]:
    """A seat on four legs with a back of one panel or of bars; some have arms."""
    wood, cloth = dice.colour(), dice.colour()
    deep, wide, seat = dice.between(0.35, 0.55), dice.between(0.35, 0.6), dice.between(0.45, 0.85)
    thick, leg = dice.between(0.04, 0.1), dice.between(0.035, 0.07)
    parts = [box((0, 0, seat), (deep, wide, thick), cloth)]
    for side_x in (-1, 1):
        for side_y in (-1, 1):
            x, y = side_x * (deep - leg), side_y * (wide - leg)
            parts.append(rod((x * 1.1, y * 1.1, 0), (x, y, seat), leg, wood, rounded=False))
    parts += _chair_back(dice, (deep, wide, seat), wood, cloth)
    return parts + _chair_arms(dice, deep, wide, seat, wood)


def _chair_back(dice: Dice, sizes: tuple[float, float, float], wood: Colour, cloth: Colour) -> list[Part]:
    deep, wide, seat = sizes
    tall, lean = dice.between(0.45, 1.0), dice.between(0, 0.3)
    if dice.chance(0.5):
        centre = (-deep - np.sin(lean) * tall / 2, 0, seat + tall / 2)
        return [box(centre, (0.05, wide, tall / 2), cloth, lean=lean)]
    x, z = -deep - np.sin(lean) * tall, seat + np.cos(lean) * tall
    bars = [rod((-deep, y, seat), (x, y, z), 0.04, wood) for y in np.linspace(-wide, wide, dice.count(3, 6))]
    return [*bars, box((x, 0, z), (0.06, wide + 0.05, 0.09), cloth, lean=lean)]


def _chair_arms(dice: Dice, deep: float, wide: float, seat: float, wood: Colour) -> list[Part]:
    rest = dice.between(0.2, 0.35)
    if not dice.chance(0.4):
        return []
    rests = [box((0, side * wide, seat + rest), (deep, 0.06, 0.04), wood) for side in (-1, 1)]
    posts = []
    for side in (-1, 1):
        x, y = deep * 0.8, side * wide
        posts.append(rod((x, y, seat), (x, y, seat + rest), 0.04, wood))
    return rests + posts


def _lamp(dice: Dice) -> list[Part]:
    """A foot, a bent stem, and a shade that hangs to one side."""
    metal, cover = dice.colour(), dice.colour()
    high, out, foot = dice.between(0.7, 1.5), dice.between(0.2, 0.6), dice.between(0.25, 0.45)
    thin = dice.between(0.03, 0.06)
    bend, end = (-out * 0.4, 0, high), (out, 0, high + dice.between(0, 0.3))
    parts = [
        disc((0, 0, 0.05), foot, 0.05, metal),
        rod((0, 0, 0.05), bend, thin, metal),
        rod(bend, end, thin, metal),
    ]
    return parts + _lamp_shade(dice, np.array(end), cover)


def _lamp_shade(dice: Dice, end: np.ndarray, cover: Colour) -> list[Part]:
    wide, tall, rings = dice.between(0.22, 0.5), dice.between(0.3, 0.6), 4
    if dice.chance(0.3):
        return [ball(end - [0, 0, wide * 0.5], (wide, wide, wide * 0.8), cover)]
    narrow = dice.between(0.3, 1.0)
    parts = []
    for ring, width in enumerate(np.linspace(wide * narrow, wide, rings)):
        parts.append(disc(end - [0, 0, (ring + 0.5) * tall / rings], width, tall / rings / 2, cover))
    return parts


def _mug(dice: Dice) -> list[Part]:
    """A body that widens or narrows, a handle and a drink, from cup to jug."""
    clay, glaze, drink = dice.colour(), dice.colour(), dice.colour()
    wide, tall, rings = dice.between(0.3, 0.5), dice.between(0.5, 1.3), 5
    low, belly = dice.between(0.6, 1.0), dice.between(0, 0.25)
    heights = (np.arange(rings) + 0.5) / rings
    widths = wide * (low + (1 - low) * heights + belly * np.sin(np.pi * heights))
    banded = dice.count(0, rings - 1)
    parts = []
    for ring, (z, width) in enumerate(zip(heights, widths, strict=True)):
        parts.append(disc((0, 0, z * tall), width, tall / rings / 2, glaze if ring == banded else clay))
    parts.append(disc((0, 0, tall), widths[-1] * 0.85, 0.01, drink))
    return parts + _mug_handle(dice, float(widths.min()), tall, glaze)


def _mug_handle(dice: Dice, wide: float, tall: float, glaze: Colour) -> list[Part]:
    out, thick, middle = dice.between(0.25, 0.45), dice.between(0.04, 0.08), dice.between(0.45, 0.6) * tall
    half = tall * dice.between(0.22, 0.34)
    angles = np.linspace(-np.pi / 2, np.pi / 2, 5)
    points = [(wide * 0.95 + out * np.cos(angle), 0, middle + half * np.sin(angle)) for angle in angles]
    return [rod(start, end, thick, glaze) for start, end in pairwise(points)]


def _tower(dice: Dice) -> list[Part]:
    """Storeys, each narrower than the one below, with a spire or a dome, and an annexe that marks its front."""
    walls, bands = dice.colour(), dice.colour()
    wide, base = dice.between(0.3, 0.55), 0.0
    parts = []
    for storey in range(dice.count(2, 5)):
        half = dice.between(0.12, 0.32)
        colour = walls if storey % 2 == 0 else bands
        centre = (0, 0, base + half)
        if dice.chance(0.4):
            parts.append(disc(centre, wide, half, colour))
        else:
            parts.append(box(centre, (wide, wide * dice.between(0.7, 1), half), colour))
        base, wide = base + 2 * half, wide * dice.between(0.6, 0.95)
    if dice.chance(0.5):
        parts.append(ball((0, 0, base), (wide, wide, wide), bands))
    else:
        parts.append(rod((0, 0, base), (0, 0, base + dice.between(0.3, 0.7)), 0.05, bands))
    low, deep = dice.between(0.1, 0.25), dice.between(0.25, 0.5)
    parts.append(box((0.4 + deep, 0, low), (deep, dice.between(0.15, 0.35), low), bands))
    return parts


def _tree(dice: Dice) -> list[Part]:
    """A trunk with a crown, a cone of discs or a cluster of balls, and one branch that marks its front."""
    bark, leaves = dice.colour(), dice.colour()
    trunk, wide, high = dice.between(0.4, 0.9), dice.between(0.35, 0.65), dice.between(0.7, 1.4)
    thick, out = dice.between(0.06, 0.12), wide * dice.between(1.0, 1.4)
    tip, bush = (out, 0, trunk * 0.85), wide * dice.between(0.25, 0.4)
    parts = [
        rod((0, 0, 0), (0, 0, trunk + high / 2), thick, bark, rounded=False),
        rod((0, 0, trunk * 0.5), tip, thick * 0.6, bark),
        ball(tip, (bush, bush, bush), leaves),
    ]
    crown = _cone_crown if dice.chance(0.5) else _cluster_crown
    return parts + crown(dice, trunk, wide, high, leaves)


def _cone_crown(dice: Dice, trunk: float, wide: float, high: float, leaves: Colour) -> list[Part]:
    tiers = dice.count(3, 5)
    step = high / tiers
    parts = []
    for tier in range(tiers):
        parts.append(disc((0, 0, trunk + (tier + 0.5) * step), wide * (1 - tier / tiers), step * 0.5, leaves))
    return parts


def _cluster_crown(dice: Dice, trunk: float, wide: float, high: float, leaves: Colour) -> list[Part]:
    parts = []
    for angle in np.linspace(0, 2 * np.pi, dice.count(4, 7), endpoint=False):
        out, size = wide * dice.between(0.3, 0.6), wide * dice.between(0.45, 0.75)
        centre = (out * np.cos(angle), out * np.sin(angle), trunk + high * dice.between(0.2, 0.8))
        parts.append(ball(centre, (size, size, size * dice.between(0.7, 1.1)), leaves))
    return parts


_BUILDERS: dict[Category, Callable[[Dice], list[Part]]] = {
    "animal": _animal,
    "car": _car,
    "plane": _plane,
    "chair": _chair,
    "lamp": _lamp,
    "mug": _mug,
    "tower": _tower,
    "tree": _tree,
}
