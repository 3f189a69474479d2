import math

import numpy as np
import torch
from objectives.vision.tiny_crops import DIM, double, on_crops
from objectives.vision.tiny_vision import crops

from jepatlas.core.records import Crops, Pairs
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import LeJEPA, LeJEPAConfig, SIGRegConfig
from jepatlas.objectives.sigreg import draw_slices
from jepatlas.objectives.vision.joint_embedding_configs import CropLeJEPAConfig

SIGREG = SIGRegConfig(slices=6, knots=9, limit=2.5)


def epps_pulley_slowly(values: np.ndarray, knots: int, limit: float) -> float:
    """n ∫ |φ̂(t) − e^{−t²/2}|² e^{−t²/2} dt by the trapezoid rule, on both sides of 0."""
    t = np.linspace(-limit, limit, 2 * knots - 1)
    seen = np.array([np.mean(np.exp(1j * s * values)) for s in t])
    height = np.abs(seen - np.exp(-(t**2) / 2)) ** 2 * np.exp(-(t**2) / 2)
    return len(values) * float(np.trapezoid(height, t))


def test_loss_matches_the_definition():
    """(1/V) Σ_v of (1 − λ) mean ‖z_v − μ‖²/d + λ SIGReg(z_v), μ the mean of the two large crops."""
    objective = on_crops(CropLeJEPAConfig(LeJEPAConfig(0.2, sigreg=SIGREG), projector=())).double()
    batch = double(crops(6))
    z = [objective.encode(crop).detach().numpy() for crop in batch.all]
    assert [crop.shape[-1] for crop in batch.all] == [16, 16, 8, 8]
    slices = draw_slices(DIM, 6, torch_generator(0, "slices", 5), SIGREG.design).double().numpy()
    invariance, gauss = 0.0, 0.0
    for view in z:
        for row in range(6):
            mean = (z[0][row] + z[1][row]) / 2
            invariance += np.sum((view[row] - mean) ** 2) / DIM / (4 * 6)
        for a in slices.T:
            gauss += epps_pulley_slowly(view @ a, 9, 2.5) / (4 * 6)
    loss = objective(batch, 5)
    assert math.isclose(loss.terms["invariance"], invariance, rel_tol=1e-9)
    assert math.isclose(loss.terms["sigreg"], gauss, rel_tol=1e-9)
    assert math.isclose(loss.total.detach(), 0.8 * invariance + 0.2 * gauss, rel_tol=1e-9)


def test_two_large_crops_match_the_loss_of_pairs():
    for config in (LeJEPAConfig(0.3, sigreg=SIGREG), LeJEPAConfig(0.3, "additive", SIGREG)):
        objective = on_crops(CropLeJEPAConfig(config, projector=()))
        batch = crops(8, local=0)
        pairs = Pairs(*batch.all, *batch.all)
        expected = LeJEPA(objective.encoder, config, seed=objective.seed)(pairs, 4)
        loss = objective(batch, 4)
        torch.testing.assert_close(loss.total, expected.total)
        assert loss.terms.keys() == expected.terms.keys()
        for name, term in expected.terms.items():
            torch.testing.assert_close(loss.terms[name], term)


def test_loss_is_independent_of_crop_order():
    objective = on_crops(CropLeJEPAConfig(projector=(16, 8))).double()
    first, second, third, fourth = double(crops(6)).all
    one, other = (
        objective(Crops(first, (second, third, fourth)), 0),
        objective(Crops(second, (fourth, first, third)), 0),
    )
    torch.testing.assert_close(one.total, other.total)
