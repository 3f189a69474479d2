"""The heads that losses on crops are taken behind, by the widths of their layers, and what those may be."""

from __future__ import annotations

import math

from torch import nn

from jepatlas.core.errors import InputError
from jepatlas.objectives.vision.heads import perceptron

__all__ = ["check_temperature", "check_widths", "expander", "projector"]


def projector(dim: int, widths: tuple[int, ...]) -> nn.Module:
    """From latents of width `dim`; the latents themselves where no widths are given."""
    return perceptron(dim, *widths) if widths else nn.Identity()


def expander(dim: int, widths: tuple[int, ...]) -> nn.Module:
    """A projector without a last bias, for losses that no shift of the embedding changes: it could learn nothing."""
    head = perceptron(dim, *widths)
    head[-1] = nn.Linear((dim, *widths)[-2], widths[-1], bias=False)
    return head


def check_widths(name: str, widths: tuple[int, ...], *, fewest: int = 1) -> None:
    if len(widths) < fewest or min(widths, default=1) < 1:
        raise InputError(f"{name} needs at least {fewest} layer(s), each of at least 1 unit, but {widths} was given.")


def check_temperature(name: str, temperature: float) -> None:
    if not 0 < temperature < math.inf:
        raise InputError(f"{name} must be positive and finite, but {temperature} was given.")
