"""Towers: storeys of boxes or drums, each narrower than the one below."""

from __future__ import annotations

from jepatlas.worlds.objects.parts import Dice, Part, ball, box, disc, rod

__all__ = ["tower"]


def tower(dice: Dice) -> list[Part]:
    """With a spire or a dome, and an annexe beside it, so that it has a front."""
    walls, bands = dice.colour(), dice.colour()
    wide, base = dice.between(0.3, 0.55), 0.0
    parts = []
    for storey in range(dice.count(2, 5)):
        half, colour = dice.between(0.12, 0.32), walls if storey % 2 == 0 else bands
        centre = (0, 0, base + half)
        parts.append(
            disc(centre, wide, half, colour)
            if dice.chance(0.4)
            else box(centre, (wide, wide * dice.between(0.7, 1), half), colour)
        )
        base, wide = base + 2 * half, wide * dice.between(0.6, 0.95)
    top = (
        ball((0, 0, base), (wide, wide, wide), bands)
        if dice.chance(0.5)
        else rod((0, 0, base), (0, 0, base + dice.between(0.3, 0.7)), 0.05, bands)
    )
    low, deep = dice.between(0.1, 0.25), dice.between(0.25, 0.5)
    return [*parts, top, box((0.4 + deep, 0, low), (deep, dice.between(0.15, 0.35), low), bands)]
