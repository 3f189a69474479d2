"""The heads that losses on crops are taken behind, by the widths of their layers, and what those may be."""

from __future__ import annotations

from torch import nn

from jepatlas.objectives.vision.heads import perceptron

__all__ = ["expander", "projector"]


def projector(dim: int, widths: tuple[int, ...]) -> nn.Module:
    """From latents of width `dim`; the latents themselves where no widths are given."""
    return perceptron(dim, *widths) if widths else nn.Identity()


def expander(dim: int, widths: tuple[int, ...]) -> nn.Module:
    """A projector without a last bias, for losses that no shift of the embedding changes: it could learn nothing."""
    head = perceptron(dim, *widths)
    head[-1] = nn.Linear((dim, *widths)[-2], widths[-1], bias=False)
    return head
