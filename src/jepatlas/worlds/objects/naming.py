"""States in words: what a multi-view table says of them."""

from __future__ import annotations

import numpy as np

from jepatlas.worlds.objects.catalogue import CATEGORIES
from jepatlas.worlds.objects.lights import LIGHT_NAMES

__all__ = ["state_columns"]


def state_columns(states: np.ndarray) -> dict[str, list[str]]:
    """Columns of a table from rows (category, instance, azimuth, elevation, light); an object is a group.

    >>> state_columns(np.array([[1.0, 3.0, 90.0, 40.0, 1.0]]))["state"]
    ['car03-a90-e40-noon']
    """
    rows = [_words(*state) for state in states.tolist()]
    names = ("state", "label", "group", "instance", "azimuth", "elevation", "lighting")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _words(category: float, instance: float, azimuth: float, elevation: float, light: float) -> tuple[str, ...]:
    label, number, lighting = CATEGORIES[int(category)], f"{instance:02.0f}", LIGHT_NAMES[int(light)]
    turned, high = f"{azimuth:.10g}", f"{elevation:.10g}"
    return f"{label}{number}-a{turned}-e{high}-{lighting}", label, f"{label}{number}", number, turned, high, lighting
