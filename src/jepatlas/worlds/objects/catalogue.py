"""Which categories there are, and the instances of each: (seed, category, number) → parts.

An instance does not depend on how many others a world has: worlds that show other categories or more instances show
the same objects under the same names.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from typing import Literal, get_args

from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.objects.buildings import tower
from jepatlas.worlds.objects.household import chair, lamp, mug
from jepatlas.worlds.objects.living import animal, tree
from jepatlas.worlds.objects.parts import Colour, Dice, Part, fitted
from jepatlas.worlds.objects.vehicles import car, plane

__all__ = ["CATEGORIES", "Category", "build", "floor_colour"]

Category = Literal["animal", "car", "plane", "chair", "lamp", "mug", "tower", "tree"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
GOLDEN = 0.381966  # of the circle: multiples of it never come close to each other for long
BUILDERS: dict[Category, Callable[[Dice], list[Part]]] = {
    "animal": animal,
    "car": car,
    "plane": plane,
    "chair": chair,
    "lamp": lamp,
    "mug": mug,
    "tower": tower,
    "tree": tree,
}


def build(category: Category, instance: int, seed: int) -> list[Part]:
    """An object whose bounding box, its middle at 0, lies in a ball of radius 1."""
    dice = Dice(numpy_generator(seed, f"objects/{category}", instance))
    return fitted(BUILDERS[category](dice), dice.between(0.85, 1.0))


def floor_colour(seed: int, number: int) -> Colour:
    """A pale colour; hues of neighbouring numbers are far apart."""
    start = numpy_generator(seed, "objects/floor").random()
    return colorsys.hsv_to_rgb((start + number * GOLDEN) % 1, 0.3, 0.8)
