"""A latent world delegates to its law and its mixing, and can be saved in a recipe."""

import itertools
import typing

import pytest
import torch

from jepatlas.core.config import choices, from_plain, to_plain
from jepatlas.core.contracts import World
from jepatlas.core.errors import InputError
from jepatlas.worlds import AnyLaw, AnyMixing, Coupling, LatentWorld, Lift, OrnsteinUhlenbeck, Spiral, UniformWalk

PAIRS = list(itertools.product(typing.get_args(AnyLaw), typing.get_args(AnyMixing)))


def test_delegation():
    world: World = LatentWorld(OrnsteinUhlenbeck(3, (0.9, 0.8, 0.7)), Lift(observed=5))
    law, mixing = OrnsteinUhlenbeck(3, (0.9, 0.8, 0.7)), Lift(observed=5)
    assert (world.dim, world.observed_dim, world.gaussian, world.correlation) == (3, 5, True, (0.9, 0.8, 0.7))
    z = world.states(10, torch.Generator().manual_seed(0))
    assert torch.equal(z, law.states(10, torch.Generator().manual_seed(0)))
    z_next = world.transition(z, torch.Generator().manual_seed(1))
    assert torch.equal(z_next, law.transition(z, torch.Generator().manual_seed(1)))
    assert torch.equal(world.observe(z), mixing(z))


def test_the_default_is_the_published_world():
    assert LatentWorld() == LatentWorld(OrnsteinUhlenbeck(2, 0.95), Spiral())


def test_incompatible_law_and_mixing_are_refused():
    with pytest.raises(InputError, match=r"'spiral'.*dim is 3"):
        LatentWorld(OrnsteinUhlenbeck(dim=3))
    with pytest.raises(InputError, match="observed is 2"):
        LatentWorld(UniformWalk(dim=3), Lift(observed=2))


@pytest.mark.parametrize(("law", "mixing"), PAIRS)
def test_recipe_round_trip(law: type, mixing: type):
    world = LatentWorld(law(), mixing())
    plain = to_plain(world)
    assert plain["law"]["kind"] == law.kind and plain["mixing"]["kind"] == mixing.kind
    assert from_plain(LatentWorld, plain) == world


def test_recipes_keep_rho_per_dimension_and_report_typos():
    world = from_plain(LatentWorld, {"law": {"kind": "ornstein-uhlenbeck", "rho": [0.9, 0.5]}, "mixing": "coupling"})
    assert world == LatentWorld(OrnsteinUhlenbeck(2, (0.9, 0.5)), Coupling())
    with pytest.raises(InputError, match="spiral"):
        from_plain(LatentWorld, {"mixing": "spirl"})


def test_every_kind_is_a_choice_once():
    hints = typing.get_type_hints(LatentWorld)
    for name, union in (("law", AnyLaw), ("mixing", AnyMixing)):
        assert len(choices(hints[name])) == len(typing.get_args(union))
