"""Cars and planes."""

from __future__ import annotations

from jepatlas.worlds.objects.parts import Colour, Dice, Part, ball, box, rod

__all__ = ["car", "plane"]

GLASS: Colour = (0.12, 0.16, 0.22)
RUBBER: Colour = (0.1, 0.1, 0.1)
LAMP: Colour = (0.95, 0.93, 0.75)


def car(dice: Dice) -> list[Part]:
    """Where the cabin stands and how long it is makes a saloon, a van or a pickup of it."""
    paint, trim = dice.colour(), dice.colour()
    long, wide, high = dice.between(0.8, 1.3), dice.between(0.36, 0.5), dice.between(0.13, 0.28)
    wheel = dice.between(0.16, 0.28)
    floor = wheel + high
    body = box((0, 0, floor), (long, wide, high), paint)
    bumper = box((0, 0, floor - high * 0.7), (long + 0.05, wide + 0.03, high * 0.25), trim)
    lamps = [box((long, y * wide * 0.7, floor + high * 0.4), (0.03, wide * 0.16, high * 0.25), LAMP) for y in (-1, 1)]
    places = [(x * long * 0.62, y * (wide + 0.02)) for x in (-1, 1) for y in (-1, 1)]
    wheels = [rod((x, y - 0.08, wheel), (x, y + 0.08, wheel), wheel, RUBBER, rounded=False) for x, y in places]
    return [body, bumper, *lamps, *wheels, *_cabin(dice, long, wide * 0.9, floor + high, paint)]


def _cabin(dice: Dice, long: float, wide: float, base: float, paint: Colour) -> list[Part]:
    half, tall = long * dice.between(0.3, 0.75), dice.between(0.14, 0.42)
    x = dice.between(-1, 0.4) * (long - half)
    glass = box((x, 0, base + tall), (half, wide, tall), GLASS)
    roof = box((x, 0, base + 2 * tall), (half * 1.02, wide * 1.03, 0.05), paint)
    pillars = [box((x + side * half, 0, base + tall), (0.04, wide * 1.02, tall), paint) for side in (-1, 1)]
    return [glass, roof, *(pillars[:1] if dice.chance(0.5) else [])]


def plane(dice: Dice) -> list[Part]:
    """Wings high or low, engines under them or none."""
    paint, trim = dice.colour(), dice.colour()
    long, thick, span = dice.between(0.8, 1.2), dice.between(0.12, 0.22), dice.between(0.7, 1.3)
    chord, height, x = dice.between(0.12, 0.3), dice.between(-0.6, 0.8) * thick, dice.between(-0.1, 0.25)
    hull = ball((0, 0, 0), (long, thick, thick), paint)
    wings = box((x, 0, height), (chord, span, 0.03), trim)
    tail = -long * 0.85
    fin = dice.between(0.2, 0.45)
    rudder = box((tail, 0, thick * 0.5 + fin / 2), (chord * 0.6, 0.03, fin / 2 + thick * 0.4), trim, lean=0.4)
    stabiliser = box((tail, 0, thick * 0.3 + dice.between(0, 0.8) * fin), (chord * 0.5, span * 0.4, 0.03), trim)
    cockpit = ball((long * 0.6, 0, thick * 0.55), (long * 0.2, thick * 0.6, thick * 0.6), GLASS)
    return [hull, wings, rudder, stabiliser, cockpit, *_engines(dice, x + chord, span, height)]


def _engines(dice: Dice, x: float, span: float, height: float) -> list[Part]:
    metal, radius, long = dice.colour(), dice.between(0.06, 0.12), dice.between(0.15, 0.3)
    places = [side * span * out for out in (0.4, 0.7)[: dice.count(0, 2)] for side in (-1, 1)]
    return [
        rod((x - long, y, height - radius), (x + long * 0.5, y, height - radius), radius, metal, rounded=False)
        for y in places
    ]
