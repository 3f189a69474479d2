"""Configurations of energy heads and of energy learning. This module does not import torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError, check_count, check_positive

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
    "LeastActionConfig",
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
    """Number of components. The width of the latent must be a multiple of it."""
    alpha: float = 0.5
    """Weight α of the largest component; the mean has weight 1 − α. The initial value if it is learned."""
    learn_alpha: bool = True
    """Whether alpha is learned."""
    floor: float = 0.0
    """Weight c of an added c‖x − y‖, which makes the energy of distinct points positive."""

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.iqe import IQE

        return IQE(width, self)


@dataclass(frozen=True)
class MRNConfig:
    kind: ClassVar[str] = "mrn"

    root: bool = True
    """Whether the symmetric part is a distance. Without the root it is squared, and the head is not a quasimetric."""
    floor: float = 0.0
    """Weight c of an added c‖x − y‖, which makes the energy of distinct points positive."""

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.mrn import MRN

        return MRN(width, self)


@dataclass(frozen=True)
class PQEConfig:
    kind: ClassVar[str] = "pqe"

    chunks: int = 16
    """Number of components. The width of the latent must be a multiple of it."""
    bound: float = 1.0
    """The initial Σ w_i, an upper bound of the energy."""
    floor: float = 0.0
    """Weight c of an added c‖x − y‖, which makes the energy of distinct points positive."""

    def __post_init__(self) -> None:
        check_positive("bound", self.bound)

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.pqe import PQE

        return PQE(width, self)


@dataclass(frozen=True)
class ReluSumConfig:
    kind: ClassVar[str] = "relu-sum"

    chunks: int = 16
    """Number of components. The width of the latent must be a multiple of it."""
    alpha: float = 0.5
    """Weight α of the largest component; the mean has weight 1 − α. The initial value if it is learned."""
    learn_alpha: bool = True
    """Whether alpha is learned."""
    floor: float = 0.0
    """Weight c of an added c‖x − y‖, which makes the energy of distinct points positive."""

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.relu_sum import ReluSum

        return ReluSum(width, self)


@dataclass(frozen=True)
class DeepNormConfig:
    kind: ClassVar[str] = "deep-norm"

    units: int = 64
    """Number of units per layer."""
    layers: int = 2
    """Number of layers. One layer gives a maximum and a mean of half-space functions."""
    alpha: float = 0.5
    """Weight α of the largest unit; the mean has weight 1 − α. The initial value if it is learned."""
    learn_alpha: bool = True
    """Whether alpha is learned."""
    floor: float = 0.0
    """Weight c of an added c‖x − y‖, which makes the energy of distinct points positive."""

    def __post_init__(self) -> None:
        check_count("units", self.units)
        check_count("layers", self.layers)

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.deep_norm import DeepNorm

        return DeepNorm(width, self)


@dataclass(frozen=True)
class L2Config:
    kind: ClassVar[str] = "l2"

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.symmetric_energies import L2

        return L2(width)


@dataclass(frozen=True)
class SquaredL2Config:
    kind: ClassVar[str] = "squared-l2"

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.symmetric_energies import SquaredL2

        return SquaredL2(width)


@dataclass(frozen=True)
class CosineConfig:
    kind: ClassVar[str] = "cosine"

    def build(self, width: int) -> EnergyHead:
        from jepatlas.energy.heads.symmetric_energies import Cosine

        return Cosine(width)


@dataclass(frozen=True)
class QRLConfig:
    kind: ClassVar[str] = "qrl"

    offset: float = 30.0
    """Energy, in steps, beyond which pairs are no longer pushed apart. Choose it well above the longest path."""
    beta: float = 0.1
    """β: sharpness of the transition at the offset."""
    epsilon: float = 0.1
    """ε: root mean square by which steps may exceed their cost."""
    multiplier: float = 0.01
    """Initial value of λ."""
    multiplier_rate: float = 100.0
    """Learning rate of λ relative to that of the network, tuned for 1e-3. If it is too low, steps exceed their cost; if
    it is too high, λ stops the network from learning the geometry."""

    def __post_init__(self) -> None:
        for name in ("offset", "beta", "epsilon", "multiplier", "multiplier_rate"):
            if not 0 < (value := getattr(self, name)) < math.inf:
                raise InputError(f"{name} must be positive and finite, but {value} was given.")

    def build(self, energy: EmbeddedEnergy, unit: float = 1.0) -> QRL:
        """The objective for an energy; `unit` is the typical cost of a step, for example the mean."""
        from jepatlas.energy.learn.qrl import QRL

        return QRL(energy, self, unit)


@dataclass(frozen=True)
class ExpectileConfig:
    kind: ClassVar[str] = "expectile"

    gamma: float = 0.98
    """γ: the discount per step. Paths much longer than 1/(1 − γ) steps cannot be distinguished."""
    tau: float = 0.8
    """τ: the expectile. At ½ the value is that of the observed policy; larger τ gives better steps more weight."""
    target: float | None = None
    """Decay of the moving average that computes V(s', g); by default the energy itself computes it."""

    def __post_init__(self) -> None:
        if not 0 < self.gamma < 1:
            raise InputError(f"gamma must lie strictly between 0 and 1, but {self.gamma} was given.")
        if not 0 < self.tau < 1:
            raise InputError(f"tau must lie strictly between 0 and 1, but {self.tau} was given.")
        if self.target is not None and not 0 <= self.target < 1:
            raise InputError(f"target must lie in [0, 1), but {self.target} was given.")

    def build(self, energy: EmbeddedEnergy, unit: float = 1.0) -> Expectile:
        """The objective for an energy; `unit` is the typical cost of a step, for example the mean."""
        from jepatlas.energy.learn.expectile import Expectile

        return Expectile(energy, self, unit)


@dataclass(frozen=True)
class IEJEPAConfig:
    kind: ClassVar[str] = "ie-jepa"

    mode: Literal["joint", "separate"] = "separate"
    """Whether the gradient of the energy reaches the encoder ("joint") or not ("separate")."""
    weight: float = 1.0
    """Weight of the energy's loss relative to the JEPA's."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_positive("weight", self.weight)

    def build(self, jepa: nn.Module, objective: nn.Module) -> IEJEPA:
        from jepatlas.energy.learn.ie_jepa import IEJEPA

        return IEJEPA(jepa, objective, self)


@dataclass(frozen=True)
class LeastActionConfig:
    """A graph of the observed steps between cells of latents, and its shortest paths. Nothing is trained."""

    kind: ClassVar[str] = "least-action"

    cells: int | None = None
    """Number of cells. By default the distinct states if they are few, otherwise clusters."""
    per_cell: int = 28
    """States per cluster, if the number of cells is not given."""
    most_cells: int = 20_000
    """Largest number of cells that is chosen."""

    def __post_init__(self) -> None:
        if self.cells is not None:
            check_count("cells", self.cells, 2)
        check_count("per_cell", self.per_cell, 2)
        check_count("most_cells", self.most_cells, 2)


HeadConfig = (
    IQEConfig | MRNConfig | PQEConfig | ReluSumConfig | DeepNormConfig | L2Config | SquaredL2Config | CosineConfig
)
"""The configurations of all heads, for the fields of recipes."""

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
"""Head configurations by kind."""
