"""Contract of encoders."""

from __future__ import annotations

from typing import Any

import pytest

from jepatlas.nn import ConvConfig, CouplingConfig, MLPConfig
from jepatlas.testing import check_encoder

IMAGE = (3, 16, 16)


@pytest.mark.parametrize(
    ("config", "in_shape"),
    [
        (MLPConfig(8, 1), 4),
        (MLPConfig(8, 0), 4),
        (CouplingConfig(2), 4),
        (CouplingConfig(2, "affine"), 4),
        (ConvConfig((8, 8), 16), IMAGE),
        (ConvConfig((8, 8), 16, "group"), IMAGE),
        (ConvConfig((8, 8), 16, "none"), IMAGE),
    ],
    ids=str,
)
def test_encoders_keep_the_contract(config: Any, in_shape: Any):
    check_encoder(config, in_shape)
