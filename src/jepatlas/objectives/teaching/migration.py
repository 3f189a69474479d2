"""Migration of representations: a student is drawn to where the teacher's latents can be read off its own.

    β · ‖z_T − W z_S‖² / Σ Var(z_T),   W fitted in closed form to the pairs so far, in turn with the student's steps

W goes from the student to the teacher, as published: it asks that the student know what the teacher knows. The other
way, ‖z_S − W z_T‖², asks that it know nothing else, and a student that says nothing at all would do; it is offered for
comparison. Widths may differ, and labels are not needed.

Reference: "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models", section 3.7.
"""

from __future__ import annotations

from torch import Tensor, nn

from jepatlas.objectives.teaching.running_map import RunningMap
from jepatlas.objectives.teaching.teaching_configs import MigrationConfig

__all__ = ["Migration"]


class Migration(nn.Module):
    def __init__(self, dim: int, told_dim: int, config: MigrationConfig | None = None) -> None:
        super().__init__()
        config = config or MigrationConfig()
        self.forwards = config.through == "student-to-teacher"
        widths = (dim, told_dim) if self.forwards else (told_dim, dim)
        self.map = RunningMap(*widths, config.map)

    def forward(self, h: Tensor, told: Tensor) -> Tensor:
        pair = (h, told) if self.forwards else (told, h)
        self.map.watch(*pair)
        return self.map(*pair)

    def after_step(self, step: int) -> None:
        self.map.after_step(step)
