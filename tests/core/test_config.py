"""Recipes: what is written can be read back, and what cannot be read says where and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jepatlas.core.config import check_literals, choices, from_plain, kind_of, to_plain
from jepatlas.core.errors import InputError


@dataclass(frozen=True)
class Spiral:
    kind: ClassVar[str] = "spiral"
    turns: float = 1.0


@dataclass(frozen=True)
class Coupling:
    kind: ClassVar[str] = "coupling"
    layers: int = 4
    widths: tuple[int, ...] = (8, 8)


@dataclass(frozen=True)
class World:
    dim: int
    mixing: Spiral | Coupling = field(default_factory=Spiral)
    others: tuple[Spiral | Coupling, ...] = ()


@dataclass(frozen=True)
class Clip:
    norm: float = 1.0


@dataclass(frozen=True)
class Recipe:
    world: World
    name: str = "run"
    rate: Annotated[float, "per step"] = 1e-3
    steps: int = 100
    verbose: bool = False
    clip: Clip | None = None
    probe: Spiral | Coupling | None = None
    seed: int | None = None
    activation: Literal["gelu", "relu"] = "gelu"
    level: Literal[1, 2] = 1
    limits: tuple[float, float] = (0.0, 1.0)
    shape: tuple[int, str] = (3, "square")
    stops: tuple[int | None, ...] = ()
    share: float | Literal["auto"] = "auto"


mixings = st.builds(Spiral, st.floats(allow_nan=False)) | st.builds(
    Coupling, st.integers(), st.lists(st.integers(), max_size=3).map(tuple)
)
recipes = st.builds(
    Recipe,
    world=st.builds(World, st.integers(), mixings, st.lists(mixings, max_size=2).map(tuple)),
    name=st.text(),
    rate=st.floats(allow_nan=False),
    steps=st.integers(),
    verbose=st.booleans(),
    clip=st.none() | st.builds(Clip, st.floats(allow_nan=False)),
    probe=st.none() | mixings,
    seed=st.none() | st.integers(),
    activation=st.sampled_from(["gelu", "relu"]),
    level=st.sampled_from([1, 2]),
    limits=st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False)),
    shape=st.tuples(st.integers(), st.text()),
    stops=st.lists(st.none() | st.integers(), max_size=3).map(tuple),
    share=st.floats(allow_nan=False) | st.just("auto"),
)


@given(recipes)
def test_round_trip_through_yaml(recipe: Recipe):
    text = yaml.safe_dump(to_plain(recipe), sort_keys=False)
    assert from_plain(Recipe, yaml.safe_load(text)) == recipe


def test_plain_data():
    data = to_plain(Recipe(World(2, Coupling(), (Spiral(2.0),)), seed=3))
    assert data["world"] == {
        "dim": 2,
        "mixing": {"kind": "coupling", "layers": 4, "widths": [8, 8]},
        "others": [{"kind": "spiral", "turns": 2.0}],
    }
    assert next(iter(data["world"]["mixing"])) == "kind"
    assert data["clip"] is None and data["limits"] == [0.0, 1.0] and "kind" not in data


def test_defaults_and_short_forms():
    assert from_plain(Recipe, {"world": {"dim": 2}}) == Recipe(World(2))
    assert from_plain(World, {"dim": 2, "mixing": "coupling"}) == World(2, Coupling())
    assert from_plain(Spiral, {"kind": "spiral", "turns": 3}) == from_plain(Spiral, {"turns": 3.0}) == Spiral(3.0)
    assert from_plain(Recipe, {"world": {"dim": 2}, "clip": {}}).clip == Clip()


def test_a_whole_number_is_a_number_and_stays_a_float():
    rate = from_plain(Recipe, {"world": {"dim": 2}, "rate": 1}).rate
    assert rate == 1.0 and type(rate) is float


def test_yaml_takes_1e_3_for_a_text_but_we_do_not():
    data = yaml.safe_load("{world: {dim: 2}, rate: 1e-3, limits: [-2E+1, 3.e2], name: 1e-3}")
    assert data["rate"] == "1e-3"  # the trap
    recipe = from_plain(Recipe, data)
    assert (recipe.rate, recipe.limits, recipe.name) == (1e-3, (-20.0, 300.0), "1e-3")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stepps": 3}, "recipe: there is no key 'stepps'. Did you mean 'steps'?"),
        ({"world": {"dimm": 2}}, "recipe.world: there is no key 'dimm'. Did you mean 'dim'?"),
        ({"world": {"dim": 2, "kind": "x"}}, "recipe.world: there is no key 'kind'"),
        ({7: 1}, "recipe: there is no key '7'"),
        ({"world": {}}, "recipe.world: World.__init__() missing 1 required positional argument: 'dim'"),
        ({"world": 3}, "recipe.world: expected keys and values, but found 3"),
        ({"world": None}, "recipe.world: expected keys and values, but found None"),
        ({"world": {"dim": 2, "mixing": {"turns": 2}}}, "recipe.world.mixing: the key 'kind' is missing. Known: coupl"),
        ({"world": {"dim": 2, "mixing": {"kind": "spirl"}}}, "there is no kind 'spirl'. Did you mean 'spiral'?"),
        ({"world": {"dim": 2, "mixing": "spirall"}}, "there is no kind 'spirall'. Did you mean 'spiral'?"),
        ({"world": {"dim": 2, "mixing": {"kind": ["spiral"]}}}, "there is no kind '['spiral']'"),
        ({"world": {"dim": 2, "mixing": {"kind": "spiral", "layers": 2}}}, "mixing: there is no key 'layers'"),
        ({"world": {"dim": 2, "mixing": None}}, "recipe.world.mixing: expected keys and values, but found None"),
        ({"world": {"dim": 2, "mixing": 5}}, "recipe.world.mixing: expected keys and values, but found 5"),
        ({"world": {"dim": 2, "others": ["spiral", {"kind": "x"}]}}, "recipe.world.others.1: there is no kind 'x'"),
        ({"steps": True}, "recipe.steps: expected a whole number, but found True"),
        ({"steps": 2.0}, "recipe.steps: expected a whole number, but found 2.0"),
        ({"steps": "3"}, "recipe.steps: expected a whole number, but found '3'"),
        ({"rate": True}, "recipe.rate: expected a number, but found True"),
        ({"rate": "fast"}, "recipe.rate: expected a number, but found 'fast'"),
        ({"rate": None}, "recipe.rate: expected a number, but found None"),
        ({"verbose": 1}, "recipe.verbose: expected true or false, but found 1"),
        ({"name": 3}, "recipe.name: expected a text, but found 3"),
        ({"seed": "x"}, "recipe.seed: expected a whole number or null, but found 'x'"),
        ({"activation": "tanh"}, "recipe.activation: expected 'gelu' or 'relu', but found 'tanh'"),
        ({"level": True}, "recipe.level: expected 1 or 2, but found True"),
        ({"level": 1.0}, "recipe.level: expected 1 or 2, but found 1.0"),
        ({"share": "all"}, "recipe.share: expected a number or 'auto', but found 'all'"),
        ({"clip": {"norm": "x"}}, "recipe.clip.norm: expected a number, but found 'x'"),
        ({"limits": [1, 2, 3]}, "recipe.limits: expected a list of length 2, but found [1, 2, 3]"),
        ({"limits": 1}, "recipe.limits: expected a list of length 2, but found 1"),
        ({"shape": ["square", 3]}, "recipe.shape.0: expected a whole number, but found 'square'"),
        ({"stops": [1, 2.5]}, "recipe.stops.1: expected a whole number or null, but found 2.5"),
        ({"stops": 1}, "recipe.stops: expected a list of a whole number or null, but found 1"),
        ({"stops": "12"}, "recipe.stops: expected a list"),
    ],
)
def test_errors_say_where_and_what(change: dict[Any, Any], message: str):
    with pytest.raises(InputError) as caught:
        from_plain(Recipe, {"world": {"dim": 2}} | change)
    assert message in str(caught.value)


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_what_is_not_a_recipe(data):
    with pytest.raises(InputError, match="file: expected keys and values"):
        from_plain(Recipe, data, "file")


def test_a_kind_must_be_the_one_asked_for():
    with pytest.raises(InputError, match="expected the kind 'spiral', but found 'coupling'"):
        from_plain(Spiral, {"kind": "coupling"})


def test_choices():
    assert choices(Spiral | Coupling) == choices(Annotated[Spiral | Coupling | None, "x"])
    assert choices(Spiral | Coupling) == {"spiral": Spiral, "coupling": Coupling}
    assert choices(Clip) == choices(int | None) == {}
    assert kind_of(Coupling) == "coupling"


@dataclass(frozen=True)
class Picky:
    precision: Literal["float32", "bfloat16"] = "float32"
    level: Annotated[Literal[1, 2], "of detail"] = 1
    share: float | Literal["auto"] = "auto"
    track: tuple[Literal["tensorboard", "wandb"], ...] = ()
    pair: tuple[int, str] = (3, "square")

    def __post_init__(self) -> None:
        check_literals(self)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"precision": "bfloat"},
            "precision: there is no 'bfloat'. Did you mean 'bfloat16'? Known: bfloat16, float32.",
        ),
        ({"precision": None}, "precision: there is no 'None'"),
        ({"precision": ("float32",)}, "precision: there is no '('float32',)'"),
        ({"precision": ["float32"]}, "precision: there is no '['float32']'"),
        ({"level": 3}, "level: there is no '3'. Known: 1, 2."),
        ({"track": ("wandb", "tensorbord")}, "track: there is no 'tensorbord'. Did you mean 'tensorboard'?"),
        ({"track": "wandb"}, "track must be a tuple such as ('tensorboard',), but 'wandb' was given"),
    ],
)
def test_what_a_literal_does_not_offer_is_refused_in_python_too(values: dict[str, Any], message: str):
    with pytest.raises(InputError) as caught:
        Picky(**values)
    assert message in str(caught.value)


def test_what_a_literal_offers_is_taken_and_other_fields_are_left_alone():
    Picky("bfloat16", 2, 0.5, ("wandb", "tensorboard"), (1, "round"))
    Picky(share="all")  # pyright: ignore[reportArgumentType]  # a field that takes numbers as well has checks of its own
