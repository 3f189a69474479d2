"""Chairs, lamps and mugs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from jepatlas.worlds.objects.parts import Colour, Dice, Part, ball, box, disc, rod

__all__ = ["chair", "lamp", "mug"]


def chair(dice: Dice) -> list[Part]:
    """A seat on four legs before a back of one panel or of bars; some have arms."""
    wood, cloth = dice.colour(), dice.colour()
    deep, wide, seat = dice.between(0.35, 0.55), dice.between(0.35, 0.6), dice.between(0.45, 0.85)
    thick, leg = dice.between(0.04, 0.1), dice.between(0.035, 0.07)
    feet = [(x * (deep - leg), y * (wide - leg)) for x in (-1, 1) for y in (-1, 1)]
    legs = [rod((x * 1.1, y * 1.1, 0), (x, y, seat), leg, wood, rounded=False) for x, y in feet]
    cushion = box((0, 0, seat), (deep, wide, thick), cloth)
    return [cushion, *legs, *_back(dice, (deep, wide, seat), wood, cloth), *_arms(dice, (deep, wide, seat), wood)]


def _back(dice: Dice, seat_size: tuple[float, float, float], wood: Colour, cloth: Colour) -> list[Part]:
    deep, wide, seat = seat_size
    tall, lean = dice.between(0.45, 1.0), dice.between(0, 0.3)
    x, z = -deep - np.sin(lean) * tall / 2, seat + tall / 2
    if dice.chance(0.5):
        return [box((x, 0, z), (0.05, wide, tall / 2), cloth, lean=lean)]
    top = (-deep - np.sin(lean) * tall, seat + np.cos(lean) * tall)
    bars = [rod((-deep, y, seat), (top[0], y, top[1]), 0.04, wood) for y in np.linspace(-wide, wide, dice.count(3, 6))]
    return [*bars, box((top[0], 0, top[1]), (0.06, wide + 0.05, 0.09), cloth, lean=lean)]


def _arms(dice: Dice, seat_size: tuple[float, float, float], wood: Colour) -> list[Part]:
    deep, wide, seat = seat_size
    rest = dice.between(0.2, 0.35)
    sides = (-1, 1) if dice.chance(0.4) else ()
    rests = [box((0, side * wide, seat + rest), (deep, 0.06, 0.04), wood) for side in sides]
    return [
        *rests,
        *(rod((deep * 0.8, side * wide, seat), (deep * 0.8, side * wide, seat + rest), 0.04, wood) for side in sides),
    ]


def lamp(dice: Dice) -> list[Part]:
    """A foot, a stem with a bend, and a shade that hangs over to one side."""
    metal, cover = dice.colour(), dice.colour()
    high, out, foot = dice.between(0.7, 1.5), dice.between(0.2, 0.6), dice.between(0.25, 0.45)
    thin = dice.between(0.03, 0.06)
    bend, end = (-out * 0.4, 0, high), (out, 0, high + dice.between(0, 0.3))
    stem = [rod((0, 0, 0.05), bend, thin, metal), rod(bend, end, thin, metal)]
    return [disc((0, 0, 0.05), foot, 0.05, metal), *stem, *_shade(dice, np.array(end), cover)]


def _shade(dice: Dice, end: np.ndarray, cover: Colour) -> list[Part]:
    wide, tall, rings = dice.between(0.22, 0.5), dice.between(0.3, 0.6), 4
    if dice.chance(0.3):
        return [ball(end - [0, 0, wide * 0.5], (wide, wide, wide * 0.8), cover)]
    narrow = dice.between(0.3, 1.0)
    widths = np.linspace(wide * narrow, wide, rings)
    return [
        disc(end - [0, 0, (ring + 0.5) * tall / rings], width, tall / rings / 2, cover)
        for ring, width in enumerate(widths)
    ]


def mug(dice: Dice) -> list[Part]:
    """From cup to jug: a body that widens or narrows, a handle, and what is in it."""
    clay, glaze, drink = dice.colour(), dice.colour(), dice.colour()
    wide, tall, rings = dice.between(0.3, 0.5), dice.between(0.5, 1.3), 5
    low, belly = dice.between(0.6, 1.0), dice.between(0, 0.25)
    heights = (np.arange(rings) + 0.5) / rings
    widths = wide * (low + (1 - low) * heights + belly * np.sin(np.pi * heights))
    banded = dice.count(0, rings - 1)
    body = [
        disc((0, 0, z * tall), width, tall / rings / 2, glaze if ring == banded else clay)
        for ring, (z, width) in enumerate(zip(heights, widths, strict=True))
    ]
    surface = disc((0, 0, tall), widths[-1] * 0.85, 0.01, drink)
    return [*body, surface, *_handle(dice, float(widths.min()), tall, glaze)]


def _handle(dice: Dice, wide: float, tall: float, glaze: Colour) -> list[Part]:
    out, thick, middle = dice.between(0.25, 0.45), dice.between(0.04, 0.08), dice.between(0.45, 0.6) * tall
    half = tall * dice.between(0.22, 0.34)
    turns = np.linspace(-np.pi / 2, np.pi / 2, 5)
    points = [(wide * 0.95 + out * np.cos(turn), 0, middle + half * np.sin(turn)) for turn in turns]
    return [rod(start, end, thick, glaze) for start, end in pairwise(points)]
