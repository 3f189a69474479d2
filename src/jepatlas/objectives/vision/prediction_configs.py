"""Configurations of objectives that predict hidden or all patches: I-JEPA, MAE and the autoencoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from jepatlas.core.config import check_literals
from jepatlas.core.errors import check_argument, check_count
from jepatlas.core.records import CropKind
from jepatlas.nn.network_configs import Rise, check_momentum, check_transformer
from jepatlas.objectives.vision.masks import AnyBlockMasks, BlockMasks

if TYPE_CHECKING:
    from jepatlas.objectives.vision.autoencoder import Autoencoder
    from jepatlas.objectives.vision.crop_objective import VisionParts
    from jepatlas.objectives.vision.ijepa import IJEPA, LinearPredictor, MLPPredictor, NarrowPredictor
    from jepatlas.objectives.vision.mae import MAE

__all__ = [
    "AnyPredictor",
    "AutoencoderConfig",
    "DecoderConfig",
    "IJEPAConfig",
    "LinearPredictorConfig",
    "MAEConfig",
    "MLPPredictorConfig",
    "NarrowPredictorConfig",
]


@dataclass(frozen=True)
class DecoderConfig:
    width: int = 64
    """Width of the tokens."""
    depth: int = 2
    """Transformer blocks."""
    heads: int = 4
    """Attention heads."""

    def __post_init__(self) -> None:
        check_transformer("A decoder", self.width, self.depth, self.heads)

    @classmethod
    def published(cls) -> Self:
        """The decoder of the published MAE."""
        return cls(512, 8, 16)


@dataclass(frozen=True)
class NarrowPredictorConfig:
    kind: ClassVar[str] = "narrow"

    width: int = 48
    """Width of the tokens, smaller than the encoder's. Published: 384."""
    depth: int = 2
    """Transformer blocks. Published: 6 for ViT-B, 12 for larger models."""
    heads: int = 3
    """Attention heads. Published: as many as the encoder has."""

    def __post_init__(self) -> None:
        check_transformer("I-JEPA's predictor", self.width, self.depth, self.heads)

    @classmethod
    def published(cls, depth: int = 12, heads: int = 12) -> Self:
        return cls(384, depth, heads)

    def build(self, dim: int) -> NarrowPredictor:
        from jepatlas.objectives.vision.ijepa import NarrowPredictor

        return NarrowPredictor(dim, self)


@dataclass(frozen=True)
class MLPPredictorConfig:
    kind: ClassVar[str] = "mlp"

    width: int = 2048
    """Units of the hidden layer."""

    def __post_init__(self) -> None:
        check_count("width", self.width)

    def build(self, dim: int) -> MLPPredictor:
        from jepatlas.objectives.vision.ijepa import MLPPredictor

        return MLPPredictor(dim, self)


@dataclass(frozen=True)
class LinearPredictorConfig:
    kind: ClassVar[str] = "linear"

    def build(self, dim: int) -> LinearPredictor:
        from jepatlas.objectives.vision.ijepa import LinearPredictor

        return LinearPredictor(dim)


AnyPredictor = NarrowPredictorConfig | MLPPredictorConfig | LinearPredictorConfig


@dataclass(frozen=True)
class IJEPAConfig:
    kind: ClassVar[str] = "ijepa"
    crops: ClassVar[CropKind] = "one"

    predictor: AnyPredictor = field(default_factory=NarrowPredictorConfig)
    distance: Literal["squared", "smooth-l1"] = "squared"
    """Distance of prediction and target: squared, as in the papers, or smooth L1, as in published code."""
    masks: AnyBlockMasks = field(default_factory=BlockMasks)
    momentum: float = 0.996
    """Initial momentum of the target encoder; it rises to 1."""
    rise: Rise = "cosine"
    """Schedule of the momentum: cosine, or a line as published for I-JEPA."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_momentum("I-JEPA", self.momentum)

    def build(self, parts: VisionParts) -> IJEPA:
        from jepatlas.objectives.vision.ijepa import IJEPA

        return IJEPA(parts, self)


@dataclass(frozen=True)
class MAEConfig:
    kind: ClassVar[str] = "mae"
    crops: ClassVar[CropKind] = "one"

    hidden: float = 0.75
    """Share of masked patches."""
    normal: bool = True
    """Standardise the pixels of each target patch."""
    decoder: DecoderConfig = field(default_factory=DecoderConfig)

    def __post_init__(self) -> None:
        check_argument("hidden", self.hidden, 0 < self.hidden < 1, "between 0 and 1")

    def build(self, parts: VisionParts) -> MAE:
        from jepatlas.objectives.vision.mae import MAE

        return MAE(parts, self)


@dataclass(frozen=True)
class AutoencoderConfig:
    kind: ClassVar[str] = "autoencoder"
    crops: ClassVar[CropKind] = "one"

    patch: int = 8
    """Height and width of the reconstructed patches in pixels; may differ from the encoder's."""
    decoder: DecoderConfig = field(default_factory=DecoderConfig)

    def __post_init__(self) -> None:
        check_count("patch", self.patch)

    def build(self, parts: VisionParts) -> Autoencoder:
        from jepatlas.objectives.vision.autoencoder import Autoencoder

        return Autoencoder(parts, self)
