"""Pair distributions against their declared correlation; streams against their joint batch."""

import dataclasses

import numpy as np
import pytest
import torch

from jepatlas.core.config import kind_of
from jepatlas.core.contracts import Batches, World
from jepatlas.core.errors import InputError
from jepatlas.core.records import Pairs
from jepatlas.core.seeding import torch_generator
from jepatlas.data import PairStream, Siblings, Transitions
from jepatlas.worlds import (
    AdditiveGeneralisedNormal,
    BoundedWalk,
    CopulaGeneralisedNormal,
    Coupling,
    LatentWorld,
    OrnsteinUhlenbeck,
    UniformWalk,
)

WORLDS = [
    LatentWorld(OrnsteinUhlenbeck(2, (0.9, 0.5))),
    LatentWorld(AdditiveGeneralisedNormal(2, 0.8, alpha=1.0)),
    LatentWorld(CopulaGeneralisedNormal(2, 0.8, alpha=0.5)),
    LatentWorld(UniformWalk(2, step=0.8)),
    LatentWorld(BoundedWalk(2)),
]
PAIR_LAWS = [Transitions(), Siblings()]


class BareWorld:
    """A third-party world that implements only the required protocol."""

    dim, observed_dim = 1, 1

    def __init__(self, gaussian: bool = True):
        self.gaussian = gaussian
        self.correlation = (0.6,)

    def states(self, count: int, generator: torch.Generator) -> torch.Tensor:
        return torch.randn(count, 1, generator=generator)

    def transition(self, z: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return 0.6 * z + 0.8 * torch.randn(z.shape, generator=generator)

    def observe(self, z: torch.Tensor) -> torch.Tensor:
        return z


@pytest.mark.parametrize("world", [*WORLDS, BareWorld()], ids=lambda w: repr(getattr(w, "law", "bare")))
@pytest.mark.parametrize("pair_law", PAIR_LAWS)
def test_measured_correlation_matches_the_declared_one(pair_law: Transitions | Siblings, world: World):
    pairs = pair_law.draw(world, 100_000, torch.Generator().manual_seed(0))
    assert torch.equal(pairs.x, world.observe(pairs.z)) and torch.equal(pairs.x_next, world.observe(pairs.z_next))
    declared = pair_law.correlation(world)
    if declared is None:
        assert world.correlation is None
        return
    measured = [np.corrcoef(pairs.z[:, i], pairs.z_next[:, i])[0, 1] for i in range(world.dim)]
    np.testing.assert_allclose(measured, declared, atol=0.015)


def test_correlations_by_hand():
    world = LatentWorld(OrnsteinUhlenbeck(2, 0.95))
    assert Transitions().correlation(world) == (0.95, 0.95)
    assert Siblings().correlation(world) == pytest.approx((0.9025, 0.9025))
    assert Siblings().correlation(BareWorld()) == pytest.approx((0.36,))
    assert Siblings().correlation(BareWorld(gaussian=False)) is None
    assert [kind_of(type(law)) for law in PAIR_LAWS] == ["transition", "siblings"]


@pytest.mark.parametrize("pair_law", PAIR_LAWS)
@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_process_slices_form_the_joint_batch(pair_law: Transitions | Siblings, world_size: int):
    world = LatentWorld(OrnsteinUhlenbeck(3, 0.9), Coupling())
    joint = pair_law.draw(world, 16, torch_generator(7, "pairs", 5))
    parts = [PairStream(world, pair_law, 16, 7, rank=r, world_size=world_size)(5) for r in range(world_size)]
    for field in dataclasses.fields(Pairs):
        together = torch.cat([getattr(part, field.name) for part in parts])
        assert torch.equal(together, getattr(joint, field.name))


def test_batch_depends_only_on_its_step():
    stream: Batches = PairStream(LatentWorld(), Transitions(), 8, seed=0)
    first, second, other = stream(3), stream(3), stream(4)
    assert torch.equal(first.x, second.x) and not torch.equal(first.x, other.x)
    assert not torch.equal(first.x, PairStream(LatentWorld(), Transitions(), 8, seed=1)(3).x)


def test_pool_is_a_fixed_set_sampled_without_replacement():
    stream = PairStream(LatentWorld(), Transitions(), 8, seed=0, pool=20)
    batches = [stream(step) for step in range(30)]
    rows = {tuple(row) for batch in batches for row in torch.cat([batch.x, batch.x_next], 1).tolist()}
    assert len(rows) == 20
    assert all(len({tuple(row) for row in batch.x.tolist()}) == 8 for batch in batches)
    assert torch.equal(stream(3).x, PairStream(LatentWorld(), Transitions(), 8, seed=0, pool=20)(3).x)


def test_processes_share_pool_batches():
    joint = PairStream(LatentWorld(), Transitions(), 8, seed=0, pool=20)(5)
    parts = [PairStream(LatentWorld(), Transitions(), 8, seed=0, rank=r, world_size=2, pool=20)(5).x for r in (0, 1)]
    assert torch.equal(torch.cat(parts), joint.x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 10, "world_size": 4}, "batch_size .*10.* 4 "),
        ({"batch_size": 0}, "batch_size .*0"),
        ({"batch_size": 8, "world_size": 2, "rank": 2}, "rank .*2"),
        ({"batch_size": 8, "pool": 7}, "pool=7 .*batch_size=8"),
    ],
)
def test_errors_name_the_argument(options: dict, message: str):
    with pytest.raises(InputError, match=message):
        PairStream(LatentWorld(), Transitions(), seed=0, **options)
