"""The momentum encoder of BYOL and MoCo v3 is a moving average without gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from objectives.vision.every_objective import OBJECTIVES, ROWS, STEP, gradients, made, named
from objectives.vision.tiny_vision import crops
from torch import nn

KINDS = {"byol", "moco-v3"}


@pytest.mark.parametrize("config", [c for c in OBJECTIVES if c.kind in KINDS], ids=named)
def test_target_is_a_moving_average_without_gradient(config: Any):
    objective = made(config)
    slow, fast = (dict(m.named_parameters()) for m in (objective.target, nn.Sequential(objective.encoder)))
    before = {name: p.clone() for name, p in slow.items()}
    objective(crops(ROWS), STEP).total.backward()
    assert not any(name.startswith("target") for name in gradients(objective))
    for name, parameter in slow.items():
        assert torch.equal(parameter, before[name])
    objective.momentum = 0.75
    objective.after_step(0)
    for name, parameter in fast.items():
        expected = 0.75 * before[f"network.{name}"] + 0.25 * parameter
        torch.testing.assert_close(slow[f"network.{name}"], expected)
