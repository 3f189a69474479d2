"""Evidence of the weakest edge on a way, and the confidence that there is none."""

from __future__ import annotations

import numpy as np
import torch
from energy.least_action.observed import one_way_walks, table_walks, tabular_costs

from jepatlas.core.records import Experience
from jepatlas.energy import fit_least_action
from jepatlas.energy.least_action import no_way_confidence, weakest_evidence
from jepatlas.worlds import OneWayGrid


def test_ways_have_the_evidence_of_their_weakest_edge():
    energy = fit_least_action(one_way_walks(100, 30, seed=3))
    points = energy.anchors[:40]
    found = weakest_evidence(energy, points, points)
    ways = energy.all_pairs(points).isfinite().numpy()
    assert ((found > 0) == ways).all() and (found.diagonal() == 1).all()
    assert found[ways].min() >= energy.level
    several = (found < 1) & ways
    assert several.any() and not np.isclose(found[several], found[several][0]).all()


def test_tables_have_certain_edges():
    steps, latents = table_walks(tabular_costs(25, 0), 0)
    energy = fit_least_action(steps)
    found = weakest_evidence(energy, torch.from_numpy(latents), torch.from_numpy(latents))
    assert set(np.unique(found)) == {0.0, 1.0}


def test_more_walks_make_no_way_more_certain_and_true():
    world = OneWayGrid(6, 6, wall=3)
    points = torch.as_tensor(world.observe(world.positions))
    stated, held = [], []
    for count in (6, 60):
        walks = world.walk(2 * count, 20, 0)
        first = walks.episode < np.unique(walks.episode)[count]
        energy = fit_least_action(part(walks, first))
        confidence = no_way_confidence(energy, points, points)
        none = np.isfinite(confidence)
        assert (none == energy.all_pairs(points).isinf().numpy()).all()
        assert ((confidence[none] >= 0) & (confidence[none] <= 1)).all()
        later = energy.add(part(walks, ~first)).all_pairs(points).isinf().numpy()
        stated.append(confidence[none].mean())
        held.append(later[none].mean())
    assert stated[0] < stated[1] and held[1] == 1
    assert stated[1] > 0.95


def part(walks: Experience, mask: np.ndarray) -> Experience:
    return Experience(walks.x[mask], walks.x_next[mask], walks.cost[mask], walks.episode[mask])
