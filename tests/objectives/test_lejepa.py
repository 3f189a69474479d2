"""LeJEPA's two forms against their formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import LeJEPA, LeJEPAConfig, SIGReg
from jepatlas.objectives.lejepa import invariance

H, H_NEXT = torch.randn(2, 20, 3, dtype=torch.float64, generator=torch_generator(0, "h"))


def slow_invariance() -> float:
    views = np.stack([H.numpy(), H_NEXT.numpy()])
    return float(np.mean((views - views.mean(0)) ** 2))


def test_invariance_is_the_variance_of_views_about_their_mean():
    assert float(invariance(H, H_NEXT)) == pytest.approx(slow_invariance(), rel=1e-12)
    assert float(invariance(H, H)) == 0


@pytest.mark.parametrize("weight", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("form", ["convex", "additive"])
def test_total_matches_the_formula(form, weight: float):
    loss = LeJEPA(nn.Identity(), LeJEPAConfig(weight, form), seed=3).loss(H, H_NEXT, 5)
    gauss = float(SIGReg(seed=3)(H, H_NEXT, 5))
    keep = 1 - weight if form == "convex" else 1
    assert float(loss.total) == pytest.approx(keep * slow_invariance() + weight * gauss, rel=1e-12)
    assert float(loss.terms["invariance"]) == pytest.approx(slow_invariance())
    assert float(loss.terms["sigreg"]) == pytest.approx(gauss)
    assert loss.terms.keys() == {"invariance", "sigreg", "sigreg_null"}


def test_additive_form_accepts_any_weight():
    assert LeJEPAConfig(7.0, "additive").weight == 7.0
