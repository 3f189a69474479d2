"""Least action against paths by relaxation, in a plane with a one-way wall, and by the contract of energies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from energy.least_action.observed import by_relaxation, one_way_walks, table_walks, tabular_costs

from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience
from jepatlas.energy import LeastAction, LeastActionConfig, fit_least_action
from jepatlas.energy.audit import audit
from jepatlas.testing.contract import check_rules
from jepatlas.testing.energy_contract import ENERGY_RULES


def rows(experience: Experience, mask: np.ndarray) -> Experience:
    parts = (getattr(experience, name)[mask] for name in ("x", "x_next", "cost", "episode"))
    return Experience(*parts)


@pytest.fixture(scope="module")
def walks() -> Experience:
    return one_way_walks(300, 40, seed=0)


@pytest.fixture(scope="module")
def plane(walks: Experience) -> LeastAction:
    return fit_least_action(walks)


@pytest.mark.parametrize("seed", range(3))
def test_tables_have_the_cheapest_ways_found_by_relaxation(seed: int):
    costs = tabular_costs(40, seed)
    steps, latents = table_walks(costs, seed)
    energies = fit_least_action(steps).all_pairs(torch.from_numpy(latents).double()).numpy()
    wanted = by_relaxation(costs)
    assert np.isinf(wanted).any()
    np.testing.assert_allclose(energies, wanted, rtol=1e-9)


def test_adding_episodes_to_a_table_gives_the_energy_of_all_episodes():
    costs = tabular_costs(30, 5)
    steps, latents = table_walks(costs, 5)
    first = steps.episode < len(steps.cost) // 2
    points = torch.from_numpy(latents).double()
    grown = fit_least_action(rows(steps, first)).add(rows(steps, ~first))
    np.testing.assert_allclose(grown.all_pairs(points).numpy(), by_relaxation(costs), rtol=1e-9)


def test_a_one_way_wall_is_not_crossed_backwards(plane: LeastAction, walks: Experience):
    """Cells at the wall hold states of both sides. If these were joined, a way back would open."""
    assert walks.z is not None
    rng = np.random.default_rng(1)
    inner = (np.abs(walks.z[:, 0]) > 0.15) & (np.abs(walks.z) < 0.9).all(1)
    some = rng.choice(np.flatnonzero(inner), 200, replace=False)
    z, x = walks.z[some], torch.from_numpy(walks.x[some])
    energies = plane.all_pairs(x).numpy()
    left = z[:, 0] < 0
    assert np.isinf(energies[np.ix_(~left, left)]).mean() > 0.99
    assert np.isfinite(energies[np.ix_(left, ~left)]).mean() > 0.95
    same = np.ix_(left, left)
    straight = np.linalg.norm(z[left][:, None] - z[left][None], axis=-1) / 0.1
    finite = np.isfinite(energies[same])
    assert finite.mean() > 0.95
    assert np.corrcoef(energies[same][finite], straight[finite])[0, 1] > 0.97


def test_without_dividing_cells_the_wall_leaks(plane: LeastAction, walks: Experience):
    """The same steps with every cell joined: the reason why cells are divided."""
    assert walks.z is not None and plane.graph.divided.any()
    graph = plane.graph
    joined = graph.cell_of
    everything = replace(
        graph,
        visits=graph.visits[:0],
        visited=graph.visited[:0],
        divided=np.zeros_like(graph.divided),
        typical=np.arange(len(graph.centres)),
        states=np.bincount(joined, graph.states),
        source=joined[graph.source],
        target=joined[graph.target],
    )
    source, target = everything.source, everything.target
    order = np.unique(source * len(graph.centres) + target, return_index=True)[1]
    order = order[source[order] != target[order]]
    parts = {name: getattr(everything, name)[order] for name in ("source", "target", "steps", "paid", "length")}
    leaky = LeastAction(replace(everything, **parts), 0.0)
    inner = np.flatnonzero(np.abs(walks.z[:, 0]) > 0.15)[::50]
    left = walks.z[inner, 0] < 0
    energies = leaky.all_pairs(torch.from_numpy(walks.x[inner])).numpy()
    assert np.isfinite(energies[np.ix_(~left, left)]).mean() > 0.5


def test_it_is_a_quasimetric_everywhere(plane: LeastAction, walks: Experience):
    rng = np.random.default_rng(2)
    points = walks.x[rng.choice(len(walks.x), 150, replace=False)] + 0.02 * rng.standard_normal((150, 6))
    assert audit(plane, points.astype(np.float32)).failed_axioms == []
    assert plane.guaranteed_quasimetric and not plane.pseudo


def test_energies_at_cells_are_those_of_the_graph(plane: LeastAction):
    cells = plane.anchors[:60].double()
    between = plane.all_pairs(cells)
    middle = (between[:, :, None] + between[None]).amin(1)
    torch.testing.assert_close(between, middle, rtol=1e-9, atol=1e-9)
    assert torch.equal(between.diagonal(), torch.zeros(60, dtype=torch.float64))


@dataclass(frozen=True)
class AroundTheClock:
    """Builds the energy of random walks that reach everything, for the contract."""

    def build(self, width: int) -> LeastAction:
        if width < 1:
            raise InputError(f"width must be at least 1, but {width} was given.")
        rng = np.random.default_rng(0)
        walk = np.cumsum(rng.standard_normal((40, 60, width)) * 0.3, 1)
        walk = 2 * np.sin(walk)
        parts = (walk[:, :-1].reshape(-1, width), walk[:, 1:].reshape(-1, width))
        steps = Experience(*parts, np.ones(len(parts[0])), np.repeat(np.arange(40), 59))
        return fit_least_action(steps, LeastActionConfig(cells=20))


def test_contract_of_energies():
    check_rules(AroundTheClock(), ENERGY_RULES, 4)


def test_new_places_become_new_cells(plane: LeastAction, walks: Experience):
    far = replace(rows(walks, walks.episode < 3), x=walks.x[walks.episode < 3] + 10)
    far = replace(far, x_next=walks.x_next[walks.episode < 3] + 10)
    grown = plane.add(far)
    start, end = torch.from_numpy(far.x[:1]), torch.from_numpy(far.x_next[3:4])
    assert torch.isinf(plane(torch.from_numpy(walks.x[:1]), end)) or plane(start, end) > 20 * grown(start, end)
    assert torch.isfinite(grown(start, end))


def test_choices_are_reported(plane: LeastAction):
    found = {verdict.name: verdict for verdict in plane.verdicts}
    assert found["ways_cheap"].passed
    assert found["ways_cheap"].value > found["ways_cheap"].null
    assert 0 < found["reversed_cheap"].value <= 1


def test_unusable_steps_are_refused(plane: LeastAction, walks: Experience):
    with pytest.raises(InputError, match="episode"):
        fit_least_action(replace(rows(walks, walks.episode == 0)))
    with pytest.raises(InputError, match="dimensions"):
        plane.add(Experience(walks.z, walks.z_next, walks.cost, walks.episode))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="cells"):
        LeastActionConfig(cells=1)
