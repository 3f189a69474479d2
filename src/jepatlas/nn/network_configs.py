"""Configurations of encoders and latent dynamics. Importing this module does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError, check_argument, check_count, check_share

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
    "check_widths",
]

GROUP = 8  # channels per group of group normalisation

Norm = Literal["batch", "group", "none"]
Pool = Literal["cls", "mean"]
Form = Literal["additive", "affine"]
Rise = Literal["cosine", "line"]
"""How the momentum of a moving average rises to 1."""


def check_widths(name: str, widths: tuple[int, ...], *, minimum: int = 1) -> None:
    valid = len(widths) >= minimum and min(widths, default=1) >= 1
    check_argument(name, widths, valid, f"at least {minimum} layer(s) of at least 1 unit")


def check_momentum(name: str, momentum: float) -> None:
    check_share(f"{name}'s momentum", momentum)


def check_transformer(name: str, width: int, depth: int, heads: int) -> None:
    if min(width, depth, heads) < 1 or width % heads or width % 4:
        raise InputError(
            f"{name} needs width, depth and heads >= 1 and a width divisible by 4 and by heads, but width is {width}, "
            f"depth {depth} and heads {heads}."
        )


@dataclass(frozen=True)
class MLPConfig:
    kind: ClassVar[str] = "mlp"

    width: int = 128
    """Units in each hidden layer."""
    depth: int = 4
    """Hidden layers."""

    def __post_init__(self) -> None:
        check_count("width", self.width)
        check_count("depth", self.depth, minimum=0)

    def build(self, in_dim: int, out_dim: int) -> nn.Module:
        from jepatlas.nn.mlp import mlp

        return mlp(in_dim, out_dim, self.width, self.depth)


@dataclass(frozen=True)
class ConvConfig:
    kind: ClassVar[str] = "conv"

    channels: tuple[int, ...] = (32, 64, 64)
    """Channels of each convolution. The first reduces height and width by 4, the others by 2."""
    hidden: int = 256
    """Units of the hidden layer between the last convolution and the latents."""
    norm: Norm = "batch"
    """Normalisation: batch, groups of channels, or none."""

    def __post_init__(self) -> None:
        check_literals(self)
        valid = bool(self.channels) and min(self.channels) >= 1
        check_argument("channels", self.channels, valid, "at least one positive number")
        check_count("hidden", self.hidden)
        if self.norm == "group" and any(width % GROUP for width in self.channels):
            raise InputError(
                f"channels must be multiples of {GROUP} for group normalisation, but are {self.channels}. Change "
                "them, or use --norm batch."
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
    """Width of the tokens and of the latent."""
    depth: int = 4
    """Transformer blocks."""
    heads: int = 3
    """Attention heads."""
    mlp_ratio: float = 4.0
    """Hidden units of the MLP blocks, relative to the width."""
    pool: Pool = "cls"
    """The latent: the class token, or the mean of the patch tokens."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_transformer("A ViT", self.width, self.depth, self.heads)
        if self.patch < 1 or int(self.width * self.mlp_ratio) < 1:
            raise InputError(
                f"A ViT needs patch >= 1 and at least 1 hidden unit, but patch is {self.patch} and mlp_ratio "
                f"{self.mlp_ratio}."
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
    """Coupling layers; use as many as the mixing has."""
    form: Form = "additive"
    """Additive (volume preserving) or affine coupling."""

    def build(self, in_dim: int, out_dim: int) -> nn.Module:
        from jepatlas.nn.coupling import CouplingEncoder

        if in_dim != out_dim:
            raise InputError(
                f"A coupling encoder needs equal input and output widths, but they are {in_dim} and {out_dim}. Use an "
                "MLP, or set the latent width to the observed one."
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
        check_count("width", self.width)
        check_count("depth", self.depth)

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
    """Units of the GRU."""

    def __post_init__(self) -> None:
        check_count("width", self.width)

    def build(self, dim: int, action_dim: int) -> GRUDynamics:
        from jepatlas.nn.dynamics import GRUDynamics

        return GRUDynamics(dim, action_dim, self.width)


AnyDynamics = ResidualDynamicsConfig | GRUDynamicsConfig | LinearDynamicsConfig
