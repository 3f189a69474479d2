"""Settings of encoders and latent dynamics. Importing this module does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from jepatlas.nn.conv import ConvEncoder
    from jepatlas.nn.dynamics import GRUDynamics, LinearDynamics, ResidualDynamics
    from jepatlas.nn.vit import ViT

__all__ = [
    "GROUP",
    "AnyDynamics",
    "ConvConfig",
    "CouplingConfig",
    "Form",
    "GRUDynamicsConfig",
    "LinearDynamicsConfig",
    "MLPConfig",
    "Norm",
    "Pool",
    "ResidualDynamicsConfig",
    "Rise",
    "ViTConfig",
    "check_momentum",
    "check_transformer",
]

Norm = Literal["batch", "group", "none"]


GROUP = 8  # channels that are normalised together


Pool = Literal["cls", "mean"]


Form = Literal["additive", "affine"]

Rise = Literal["cosine", "line"]
"""How the momentum of a moving average rises to 1."""


def check_momentum(name: str, momentum: float) -> None:
    if not 0 <= momentum <= 1:
        raise InputError(f"{name}'s momentum must be in [0, 1], but is {momentum}.")


def check_transformer(name: str, width: int, depth: int, heads: int) -> None:
    if min(width, depth, heads) < 1 or width % heads or width % 4:
        raise InputError(
            f"{name} needs width, depth and heads >= 1 and a width that 4 and its heads divide, but width {width}, "
            f"depth {depth} and heads {heads} were given."
        )


@dataclass(frozen=True)
class MLPConfig:
    kind: ClassVar[str] = "mlp"

    width: int = 128
    """Units in each hidden layer."""
    depth: int = 4
    """Hidden layers."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 0:
            raise InputError(f"An MLP needs width >= 1 and depth >= 0, but {self.width} and {self.depth} were given.")

    def build(self, in_dim: int, out_dim: int) -> nn.Module:
        from jepatlas.nn.mlp import mlp

        return mlp(in_dim, out_dim, self.width, self.depth)


@dataclass(frozen=True)
class ConvConfig:
    kind: ClassVar[str] = "conv"

    channels: tuple[int, ...] = (32, 64, 64)
    """Of each convolution; the first makes height and width four times smaller, every other one twice."""
    hidden: int = 256
    """Units between the last convolution and the latents."""
    norm: Norm = "batch"
    """What normalises the channels: batch statistics, groups of channels within an image, or nothing."""

    def __post_init__(self) -> None:
        check_literals(self)
        if not self.channels or min(self.channels) < 1 or self.hidden < 1:
            raise InputError(
                f"A convolutional encoder needs positive channels and hidden units, but {self.channels} and "
                f"{self.hidden} were given."
            )
        if self.norm == "group" and any(width % GROUP for width in self.channels):
            raise InputError(
                f"Groups of {GROUP} channels are normalised together, but the channels are "
                f"{self.channels}. Give multiples of {GROUP}, or --norm batch."
            )

    def build(self, in_shape: Sequence[int], out_dim: int) -> ConvEncoder:
        from jepatlas.nn.conv import ConvEncoder

        return ConvEncoder(in_shape, out_dim, self)


@dataclass(frozen=True)
class ViTConfig:
    kind: ClassVar[str] = "vit"

    patch: int = 8
    """Height and width of a patch, in pixels."""
    width: int = 96
    """Of each token, and of the latent."""
    depth: int = 4
    """Transformer blocks."""
    heads: int = 3
    """Of the attention; they share the width."""
    mlp_ratio: float = 4.0
    """Hidden units of a block's perceptron, in widths."""
    pool: Pool = "cls"
    """What the latent is: the class token's last output, or the mean of the patches'."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_transformer("A ViT", self.width, self.depth, self.heads)
        if self.patch < 1 or int(self.width * self.mlp_ratio) < 1:
            raise InputError(
                f"A ViT needs a patch and hidden units of at least 1, but patch {self.patch} and an MLP "
                f"ratio of {self.mlp_ratio} were given."
            )

    @classmethod
    def s16(cls, pool: Pool = "cls") -> Self:
        """ViT-S/16."""
        return cls(patch=16, width=384, depth=12, heads=6, pool=pool)

    @classmethod
    def b16(cls, pool: Pool = "cls") -> Self:
        """ViT-B/16."""
        return cls(patch=16, width=768, depth=12, heads=12, pool=pool)

    @classmethod
    def l16(cls, pool: Pool = "cls") -> Self:
        """ViT-L/16."""
        return cls(patch=16, width=1024, depth=24, heads=16, pool=pool)

    def build(
        self, in_shape: Sequence[int], mean: Sequence[float] | None = None, std: Sequence[float] | None = None
    ) -> ViT:
        from jepatlas.nn.vit import ViT

        return ViT(in_shape, self, mean, std)


@dataclass(frozen=True)
class CouplingConfig:
    kind: ClassVar[str] = "coupling"

    layers: int = 8
    """Coupling layers; as many as the mixing has, to match it."""
    form: Form = "additive"
    """Whether a layer shifts one half (additive, volume preserving) or also scales it (affine)."""

    def build(self, in_dim: int, out_dim: int) -> nn.Module:
        from jepatlas.nn.coupling import CouplingEncoder

        if in_dim != out_dim:
            raise InputError(
                f"A coupling encoder keeps the width, but it would have to go from {in_dim} to {out_dim}. "
                "Use an MLP, or a latent width equal to the observed one."
            )
        return CouplingEncoder(in_dim, self.layers, self.form)


@dataclass(frozen=True)
class ResidualDynamicsConfig:
    kind: ClassVar[str] = "residual"

    width: int = 256
    """Units in each hidden layer."""
    depth: int = 2
    """Hidden layers."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 1:
            raise InputError(f"Dynamics need width and depth >= 1, but {self.width} and {self.depth} were given.")

    def build(self, dim: int, action_dim: int) -> ResidualDynamics:
        from jepatlas.nn.dynamics import ResidualDynamics
        from jepatlas.nn.mlp import mlp

        return ResidualDynamics(mlp(dim + action_dim, dim, self.width, self.depth))


@dataclass(frozen=True)
class LinearDynamicsConfig:
    kind: ClassVar[str] = "linear"

    def build(self, dim: int, action_dim: int) -> LinearDynamics:
        from jepatlas.nn.dynamics import LinearDynamics

        return LinearDynamics(dim, action_dim)


@dataclass(frozen=True)
class GRUDynamicsConfig:
    kind: ClassVar[str] = "gru"

    width: int = 256
    """Units of the memory."""

    def __post_init__(self) -> None:
        if self.width < 1:
            raise InputError(f"The memory of a GRU needs at least 1 unit, but {self.width} were given.")

    def build(self, dim: int, action_dim: int) -> GRUDynamics:
        from jepatlas.nn.dynamics import GRUDynamics

        return GRUDynamics(dim, action_dim, self.width)


AnyDynamics = ResidualDynamicsConfig | GRUDynamicsConfig | LinearDynamicsConfig
