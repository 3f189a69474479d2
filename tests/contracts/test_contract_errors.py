"""The contract suites find parts that break one rule, and say which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import jepatlas as ja
from jepatlas.core.records import Loss, Plan
from jepatlas.energy.heads import SquaredL2Config
from jepatlas.nn import MLPConfig
from jepatlas.objectives import LeJEPAConfig, PairObjective
from jepatlas.planning import ShootingConfig
from jepatlas.testing import ContractError
from jepatlas.worlds import LinearQuadratic


@dataclass(frozen=True)
class Objective(ja.Plugin):
    wrong: str = ""

    def build(self, parts: Any) -> PairObjective:
        return Loosened(parts.encoder, self.wrong)


class Loosened(PairObjective):
    """Mean squared difference and an identity covariance, with one thing wrong."""

    def __init__(self, encoder: nn.Module, wrong: str) -> None:
        super().__init__(encoder)
        self.wrong = wrong
        self.unused = nn.Parameter(torch.ones(())) if wrong == "unused parameter" else None

    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss:
        unit = torch.eye(h_bd.shape[1], dtype=h_bd.dtype)
        total = (h_bd - h_next_bd).square().mean() + (h_bd.T @ h_bd / len(h_bd) - unit).square().sum()
        if self.wrong == "global generator":
            total = total + torch.randn(()).to(total)
        if self.wrong == "constant":
            total = total * 0
        if self.wrong == "wrong gradient":
            total = total + 0.1 * (h_bd.detach() * h_bd).mean()
        term = total if self.wrong == "attached term" else total.detach()
        return Loss(total, {"all": term})


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ("unused parameter", "gives_a_finite_loss_with_gradients"),
        ("attached term", "gives_a_finite_loss_with_gradients"),
        ("constant", "gives_a_finite_loss_with_gradients"),
        ("wrong gradient", "gradients_match_finite_differences"),
        ("global generator", "gradients_match_finite_differences|randomness_depends_on_seed_and_step_only"),
    ],
)
def test_wrong_objectives_are_found(wrong: str, rule: str):
    ja.testing.check_objective(Objective())
    with pytest.raises(ContractError, match=rule):
        ja.testing.check_objective(Objective(wrong))


@dataclass(frozen=True)
class Encoder(MLPConfig):
    def build(self, in_dim: int, out_dim: int) -> nn.Module:
        return nn.Sequential(nn.Linear(in_dim, out_dim), nn.Softmax(dim=0))  # over rows


def test_an_encoder_that_mixes_rows_is_found():
    with pytest.raises(ContractError, match="gives_one_vector_per_row"):
        ja.testing.check_encoder(Encoder())


@dataclass(frozen=True)
class Boastful(SquaredL2Config):
    def build(self, width: int) -> Any:
        head = super().build(width)
        head.guaranteed_quasimetric = True
        return head


def test_a_head_that_breaks_the_triangle_inequality_is_found():
    with pytest.raises(ContractError, match="satisfies_the_triangle_inequality_if_declared"):
        ja.testing.check_energy(Boastful())


@dataclass(frozen=True)
class Drifting(LinearQuadratic):
    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return super().step(states, actions) + states.mean(0)


def test_a_world_whose_rows_depend_on_each_other_is_found():
    with pytest.raises(ContractError, match="rows_are_independent"):
        ja.testing.check_world(Drifting())


@dataclass(frozen=True)
class Unbounded(ShootingConfig):
    def build(self, box: Any) -> Any:
        planner = super().build(box)

        def plan(cost: Any, info: Any, generator: Any, warm: Any = None) -> Plan:
            actions = 10 * planner(cost, info, generator, warm).actions
            return Plan(actions, cost(info, actions[:, None])[:, 0])

        return plan


def test_a_planner_that_leaves_its_box_is_found():
    with pytest.raises(ContractError, match="actions_stay_within_each_bound"):
        ja.testing.check_planner(Unbounded(8), factor=1e6)


def test_the_message_names_the_part_and_the_rule():
    with pytest.raises(ContractError, match=r"Objective.*attached term.*gives_a_finite.*'all'.*detach"):
        ja.testing.check_objective(Objective("attached term"))
    ja.testing.check_objective(LeJEPAConfig())
