"""Methods of the value-guided study and two of ours: the loss of the encoder, and the cost of the planner.

    contrastive, regressive, VCReg, EMA, LeJEPA:   the planner's cost is ‖h − g‖
    value, quasi value:   E = −V is learned by an expectile, as ‖h − g‖ or by the IQE; alone (Sep), or with prediction
    IE-JEPA:              LeJEPA with the largest quasimetric that no step exceeds

Values act on the latents themselves and shape them. An energy with SIGReg has an embedding of its own, because latents
cannot be N(0, I) and have path lengths as distances; it is learned jointly, so it shapes the encoder through its
embedding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from jepatlas.energy import ExpectileConfig, HeadConfig, IQEConfig, L2Config, QRLConfig
from jepatlas.nn import MLPConfig
from jepatlas.objectives import AnyShaping, Contrastive, Regressive, SIGRegShaping, VCRegShaping, WorldModelConfig
from jepatlas.recipes import LatentEnergy

__all__ = ["FOUR", "METHODS", "Method"]


@dataclass(frozen=True)
class Method:
    published: tuple[float, float, float] | None = None
    """Success in small rooms, big rooms and the maze; None if the study does not have the method."""
    shaping: AnyShaping | None = None
    prediction: Literal["joint", "separate"] = "joint"
    average: float | None = None
    head: HeadConfig | None = None
    """Head of the learned energy; without one the planner uses Euclidean distance."""
    learning: ExpectileConfig | QRLConfig | None = None
    embedded: bool = False
    """Whether the energy has an embedding of its own."""

    def settings(self, offset: float, embedding: MLPConfig) -> tuple[WorldModelConfig, LatentEnergy | None]:
        """Losses and energy; `offset` exceeds the longest path, in steps."""
        loss = WorldModelConfig(self.shaping, self.prediction, self.average)
        if self.head is None or self.learning is None:
            return loss, None
        learning = replace(self.learning, offset=offset) if isinstance(self.learning, QRLConfig) else self.learning
        width = embedding.width if self.embedded else LatentEnergy().width
        return loss, LatentEnergy(self.head, learning, embedding if self.embedded else None, width)


VALUE = ExpectileConfig(gamma=0.98, tau=0.8)

METHODS = {
    "contrastive": Method((0.49, 0.59, 0.50), Contrastive()),
    "regressive": Method((0.54, 0.57, 0.46), Regressive()),
    "prediction + VCReg": Method((0.55, 0.89, 0.54), VCRegShaping()),
    "prediction + EMA": Method((0.46, 0.43, 0.04), average=0.99),
    "value (Sep)": Method((0.63, 0.94, 0.49), prediction="separate", head=L2Config(), learning=VALUE),
    "quasi value (Sep)": Method((0.71, 0.96, 0.63), prediction="separate", head=IQEConfig(), learning=VALUE),
    "value (joint)": Method((0.55, 0.75, 0.49), head=L2Config(), learning=VALUE),
    "quasi value (joint)": Method((0.61, 0.85, 0.43), head=IQEConfig(), learning=VALUE),
    "LeJEPA": Method(shaping=SIGRegShaping()),
    "IE-JEPA": Method(shaping=SIGRegShaping(), head=IQEConfig(), learning=QRLConfig(), embedded=True),
}
FOUR = ("prediction + VCReg", "LeJEPA", "quasi value (Sep)", "IE-JEPA")
"""The methods of scale `small`: with and without a learned energy, published and ours."""
