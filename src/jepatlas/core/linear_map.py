"""Fitted affine maps between latent spaces. This module does not import torch."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import safetensors.numpy

from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.parsing import parse_safetensors

__all__ = ["CONDITION_LIMIT", "LinearMap"]

CONDITION_LIMIT = 100.0
"""Default condition number above which the inverse of a fitted map is truncated.

Beyond it, errors of a percent in the latents would become as large as the latents themselves.
"""


@dataclass(frozen=True)
class LinearMap:
    """A fitted affine map on rows: y = y_mean + y_scale · W ((x − x_mean) / x_scale).

    The scales are those of the standardisers that W was fitted between, and ones where there were none.

    >>> import numpy as np
    >>> turn = LinearMap(np.array([[0., -1.], [1., 0.]]), np.zeros(2), np.zeros(2))
    >>> turn.compose(turn).apply(np.array([[1., 2.]]))
    array([[-1., -2.]])
    """

    weight: np.ndarray  # (d_out, d_in)
    x_mean: np.ndarray  # (d_in,)
    y_mean: np.ndarray  # (d_out,)
    x_scale: np.ndarray = field(default_factory=lambda: np.ones(1))  # (d_in,)
    y_scale: np.ndarray = field(default_factory=lambda: np.ones(1))  # (d_out,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_scale", np.broadcast_to(self.x_scale, np.shape(self.x_mean)))
        object.__setattr__(self, "y_scale", np.broadcast_to(self.y_scale, np.shape(self.y_mean)))

    @property
    def raw_weight(self) -> np.ndarray:
        """The matrix between the coordinates themselves, with both scales in it."""
        return self.y_scale[:, None] * self.weight / self.x_scale

    def apply(self, x: np.ndarray) -> np.ndarray:
        if np.shape(x)[-1:] != np.shape(self.x_mean):
            raise InputError(f"'x' must have {len(self.x_mean)} columns for this map, but has shape {np.shape(x)}.")
        return (x - self.x_mean) @ self.raw_weight.T + self.y_mean

    def invert(self, limit: float | None = None) -> LinearMap:
        """The inverse, or the pseudo-inverse where W is not square or not of full rank.

        If W's condition number exceeds `limit`, singular values below σ_max / limit are dropped, so that noise in
        directions that the map hardly carries is not amplified. None drops only those at rounding level.
        """
        least = max(self.weight.shape) * np.finfo(np.float64).eps if limit is None else 1 / limit
        back = np.linalg.pinv(self.weight, rcond=least)
        return LinearMap(back, self.y_mean, self.x_mean, self.y_scale, self.x_scale)

    def compose(self, after: LinearMap) -> LinearMap:
        """This map, then `after`."""
        between = self.y_scale / after.x_scale
        y_mean = after.apply(self.y_mean[None])[0]
        return LinearMap((after.weight * between) @ self.weight, self.x_mean, y_mean, self.x_scale, after.y_scale)

    def save(self, path: Path | str) -> None:
        tensors = {part.name: np.ascontiguousarray(getattr(self, part.name)) for part in fields(self)}
        write_bytes(Path(path), safetensors.numpy.save(tensors, metadata={"format": "jepatlas.LinearMap"}))

    @classmethod
    def load(cls, path: Path | str) -> LinearMap:
        try:
            arrays = parse_safetensors(Path(path), path)
        except (OSError, InputError) as error:
            raise InputError(f"{path} is not a saved LinearMap: {error}") from error
        names, optional = {part.name for part in fields(cls)}, {"x_scale", "y_scale"}
        if not names - optional <= set(arrays) <= names:
            raise InputError(
                f"{path} is not a saved LinearMap: it holds the arrays {', '.join(sorted(arrays)) or 'none'}, but a "
                "map has weight, x_mean and y_mean, and x_scale and y_scale where it was standardised."
            )
        try:
            loaded = cls(**arrays)
        except ValueError as error:  # scales of another width
            raise InputError(f"{path} is not a saved LinearMap: {error}") from error
        shapes = [getattr(loaded, key).shape for key in ("weight", "x_mean", "y_mean")]
        if shapes[0] != shapes[2] + shapes[1] or len(shapes[0]) != 2:
            raise InputError(f"{path} is not a saved LinearMap: weight, x_mean and y_mean have shapes {shapes}.")
        return loaded
