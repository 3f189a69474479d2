"""How the samples of a scatter plot are marked: a colour for the place or the number that stands behind each, or a
colour and a shape for its name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.arrays import check_rows
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.reporting.colours import hues, ramp, wheel
from jepatlas.reporting.drawing import Arrays, ColourKey, KeyName, Spec

__all__ = ["Marks", "marks_of", "named", "pick"]

NAMES = 12  # more cannot be told apart
SHAPES = {"circle": "●", "square": "■", "diamond": "◆"}


@dataclass(frozen=True)
class Marks:
    """Of each sample; without colours the theme has one for all."""

    colours: list[str] | None = None
    symbols: list[str] | str = "circle"
    keys: tuple[ColourKey, ...] = ()

    def rows(self, index: np.ndarray) -> Marks:
        """Those of some samples."""
        colours = self.colours and [self.colours[i] for i in index]
        symbols = self.symbols if isinstance(self.symbols, str) else [self.symbols[i] for i in index]
        return replace(self, colours=colours, symbols=symbols)


def marks_of(part: Spec, arrays: Arrays, points: np.ndarray) -> Marks:
    """By `color`, an array of one or two columns of numbers, or of names."""
    name = part.get("color")
    if name is None:
        return Marks()
    flat = name in arrays and arrays[name].ndim == 1
    label = str(part.get("color_label", name))
    if flat and arrays[name].dtype.kind == "U":
        check_rows({part["x"]: points, name: arrays[name]})
        return _by_name(arrays[name], label)
    columns = part.get("color_columns", [0] if flat else [0, 1])
    truth = pick(arrays, name, columns)
    check_rows({part["x"]: points, name: truth})
    labels = [label] if flat else named(label, columns)
    if truth.shape[1] == 2:
        text = f"Colour: direction and distance of ({labels[0]}, {labels[1]}) from the mean."
        return Marks(wheel(truth), keys=(ColourKey("wheel", text),))
    if truth.shape[1] == 1:
        text = f"Colour: {labels[0]}, from {np.nanmin(truth):.4g} to {np.nanmax(truth):.4g}."
        return Marks(ramp(truth[:, 0]), keys=(ColourKey("ramp", text),))
    raise InputError(f"a colour stands for one or two columns, but 'color_columns' is {columns}.")


def _by_name(names: np.ndarray, label: str) -> Marks:
    """Each name has its colour and, since neighbours on the wheel are alike, its shape; many have a ramp."""
    each, number = np.unique(names, return_inverse=True)
    if len(each) > NAMES:
        text = f"Colour: {label}, {len(each)} of them in the order of the alphabet, from {each[0]} to {each[-1]}."
        return Marks(ramp(number.astype(float)), keys=(ColourKey("ramp", text),))
    colours, shapes = hues(len(each)), [list(SHAPES)[i % len(SHAPES)] for i in range(len(each))]
    entries = tuple(KeyName(str(one), colours[i], SHAPES[shapes[i]]) for i, one in enumerate(each))
    key = ColourKey("names", f"{label[0].upper()}{label[1:]}:", entries)
    return Marks([colours[i] for i in number], [shapes[i] for i in number], (key,))


def pick(arrays: Arrays, name: str, columns: list[int]) -> np.ndarray:
    """Some columns of an array of numbers."""
    if name not in arrays:
        raise InputError(f"there is no array '{name}'. {did_you_mean(str(name), arrays)}")
    array = arrays[name].reshape(len(arrays[name]), -1)
    if array.dtype.kind not in "fiub":
        raise InputError(f"array '{name}' does not hold numbers but {array.dtype}.")
    if not all(isinstance(column, int) and 0 <= column < array.shape[1] for column in columns):
        raise InputError(f"array '{name}' has {array.shape[1]} columns, so there are no columns {columns}.")
    return array[:, columns].astype(float)


def named(name: str, columns: list[int]) -> list[str]:
    """What columns are called on an axis."""
    return [f"{name}[{column}]" for column in columns]
