"""The slow twin that BYOL and MoCo v3 tell: it follows the encoder, and learns nothing itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from objectives.vision.every_objective import OBJECTIVES, ROWS, STEP, gradients, made, named
from objectives.vision.tiny_vision import crops
from torch import nn

TWINS = {"byol", "moco-v3"}


@pytest.mark.parametrize("config", [c for c in OBJECTIVES if c.kind in TWINS], ids=named)
def test_the_slow_twin_follows_and_no_gradient_reaches_it(config: Any):
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
