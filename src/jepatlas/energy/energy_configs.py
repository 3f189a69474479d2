"""Settings of energy heads and of how energies are learned. Importing this module does not import torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from jepatlas.energy.heads.head import EnergyHead
    from jepatlas.energy.learn.embedded import EmbeddedEnergy
    from jepatlas.energy.learn.expectile import Expectile
    from jepatlas.energy.learn.ie_jepa import IEJEPA
    from jepatlas.energy.learn.qrl import QRL

__all__ = [
    "HEADS",
    "CosineConfig",
    "DeepNormConfig",
    "ExpectileConfig",
    "HeadConfig",
    "IEJEPAConfig",
    "IQEConfig",
    "L2Config",
    "MRNConfig",
    "PQEConfig",
    "QRLConfig",
    "ReluSumConfig",
    "SquaredL2Config",
]


@dataclass(frozen=True)
class IQEConfig:
    kind: ClassVar[str] = "iqe"

    chunks: int = 16
    """Components; the width of the latent must be a multiple."""
    alpha: float = 0.5
    """Weight of the largest component against their mean; where it is learned, its first value."""
    learn_alpha: bool = True
    """Whether this weight is learned."""
    floor: float = 0.0
    """c of an added c‖x − y‖, with which no two distinct points are at distance 0."""

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.iqe import IQE

        return IQE(width, self)


@dataclass(frozen=True)
class MRNConfig:
    kind: ClassVar[str] = "mrn"

    root: bool = True
    """Whether the symmetric part is a distance, or a squared distance: then nothing is guaranteed."""
    floor: float = 0.0
    """c of an added c‖x − y‖, with which no two distinct points are at distance 0."""

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.mrn import MRN

        return MRN(width, self)


@dataclass(frozen=True)
class PQEConfig:
    kind: ClassVar[str] = "pqe"

    chunks: int = 16
    """Components; the width of the latent must be a multiple."""
    bound: float = 1.0
    """Σ w_i before training: no energy is larger."""
    floor: float = 0.0
    """c of an added c‖x − y‖, with which no two distinct points are at distance 0."""

    def __post_init__(self) -> None:
        if not 0 < self.bound < math.inf:
            raise InputError(f"PQE needs a bound that is positive and finite, but {self.bound} was given.")

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.pqe import PQE

        return PQE(width, self)


@dataclass(frozen=True)
class ReluSumConfig:
    kind: ClassVar[str] = "relu-sum"

    chunks: int = 16
    """Components; the width of the latent must be a multiple."""
    alpha: float = 0.5
    """Weight of the largest component against their mean; where it is learned, its first value."""
    learn_alpha: bool = True
    """Whether this weight is learned."""
    floor: float = 0.0
    """c of an added c‖x − y‖, with which no two distinct points are at distance 0."""

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.relu_sum import ReluSum

        return ReluSum(width, self)


@dataclass(frozen=True)
class DeepNormConfig:
    kind: ClassVar[str] = "deep-norm"

    units: int = 64
    """Of each layer."""
    layers: int = 2
    """With one layer it is a maximum and mean of half-spaces alone."""
    alpha: float = 0.5
    """Weight of the largest unit against their mean; where it is learned, its first value."""
    learn_alpha: bool = True
    """Whether this weight is learned."""
    floor: float = 0.0
    """c of an added c‖x − y‖, with which no two distinct points are at distance 0."""

    def __post_init__(self) -> None:
        if self.units < 1 or self.layers < 1:
            raise InputError(
                f"A deep norm needs units >= 1 and layers >= 1, but {self.units} and {self.layers} were given."
            )

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.deep_norm import DeepNorm

        return DeepNorm(width, self)


@dataclass(frozen=True)
class L2Config:
    kind: ClassVar[str] = "l2"

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.controls import L2

        return L2(width)


@dataclass(frozen=True)
class SquaredL2Config:
    kind: ClassVar[str] = "squared-l2"

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.controls import SquaredL2

        return SquaredL2(width)


@dataclass(frozen=True)
class CosineConfig:
    kind: ClassVar[str] = "cosine"

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.controls import Cosine

        return Cosine(width)


@dataclass(frozen=True)
class QRLConfig:
    kind: ClassVar[str] = "qrl"

    offset: float = 30.0
    """Where pairs are no longer pushed apart, in steps. Well above the longest way that is to be told from no way."""
    beta: float = 0.1
    """β: how sharply the push ends at the offset."""
    epsilon: float = 0.1
    """ε: how far, in root mean square, steps may exceed their cost."""
    multiplier: float = 0.01
    """The first λ."""
    multiplier_rate: float = 100.0
    """Learning rate of λ over that of the network; found with 1e-3 for the latter. Too slow, and steps stay too long;
    too fast, and λ freezes the geometry before it is found."""

    def __post_init__(self) -> None:
        for name in ("offset", "beta", "epsilon", "multiplier", "multiplier_rate"):
            if not 0 < (value := getattr(self, name)) < math.inf:
                raise InputError(f"{name} must be positive and finite, but {value} was given.")

    def build(self, energy: EmbeddedEnergy, unit: float = 1.0) -> QRL:
        """`unit` is a typical step's cost, for example the mean."""
        from jepatlas.energy.learn.qrl import QRL

        return QRL(energy, self, unit)


@dataclass(frozen=True)
class ExpectileConfig:
    kind: ClassVar[str] = "expectile"

    gamma: float = 0.98
    """γ: what a step ahead still counts. Ways much longer than 1/(1 − γ) steps look alike."""
    tau: float = 0.8
    """τ: above ½ better steps count for more; at ½ the value is that of the policy that was observed."""
    target: float | None = None
    """Decay of a moving average of the energy that V(s', g) is taken from; the energy itself where not given."""

    def __post_init__(self) -> None:
        if not 0 < self.gamma < 1:
            raise InputError(f"gamma must lie between 0 and 1, but {self.gamma} was given.")
        if not 0 < self.tau < 1:
            raise InputError(f"tau must lie between 0 and 1, but {self.tau} was given.")
        if self.target is not None and not 0 <= self.target < 1:
            raise InputError(f"target is a decay, at least 0 and below 1, but {self.target} was given.")

    def build(self, energy: EmbeddedEnergy, unit: float = 1.0) -> Expectile:
        """`unit` is a typical step's cost, for example the mean."""
        from jepatlas.energy.learn.expectile import Expectile

        return Expectile(energy, self, unit)


@dataclass(frozen=True)
class IEJEPAConfig:
    kind: ClassVar[str] = "ie-jepa"

    mode: Literal["joint", "separate"] = "separate"
    """Whether the energy shapes the encoder."""
    weight: float = 1.0
    """Weight of the energy's loss beside the JEPA's."""

    def __post_init__(self) -> None:
        check_literals(self)
        if not 0 < self.weight < math.inf:
            raise InputError(f"The energy's weight must be positive and finite, but {self.weight} was given.")

    def build(self, jepa: nn.Module, objective: nn.Module) -> IEJEPA:
        from jepatlas.energy.learn.ie_jepa import IEJEPA

        return IEJEPA(jepa, objective, self)


HeadConfig = (
    IQEConfig | MRNConfig | PQEConfig | ReluSumConfig | DeepNormConfig | L2Config | SquaredL2Config | CosineConfig
)
"""The choice of a recipe's head."""

HEADS: dict[str, type[HeadConfig]] = {
    config.kind: config
    for config in (
        IQEConfig,
        MRNConfig,
        PQEConfig,
        ReluSumConfig,
        DeepNormConfig,
        L2Config,
        SquaredL2Config,
        CosineConfig,
    )
}
"""Settings by kind; each builds its head for a width."""
