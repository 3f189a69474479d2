"""Configs as plain data: round trips, and errors that name the field and the value."""

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


def test_to_plain():
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


def test_whole_number_is_read_as_float():
    rate = from_plain(Recipe, {"world": {"dim": 2}, "rate": 1}).rate
    assert rate == 1.0 and type(rate) is float


def test_exponents_without_dot_are_numbers():
    data = yaml.safe_load("{world: {dim: 2}, rate: 1e-3, limits: [-2E+1, 3.e2], name: 1e-3}")
    assert data["rate"] == "1e-3"  # YAML 1.1 reads this as text
    recipe = from_plain(Recipe, data)
    assert (recipe.rate, recipe.limits, recipe.name) == (1e-3, (-20.0, 300.0), "1e-3")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stepps": 3}, r"recipe: .*'stepps'.*'steps'"),
        ({"world": {"dimm": 2}}, r"recipe\.world: .*'dimm'.*'dim'"),
        ({"world": {"dim": 2, "kind": "x"}}, r"recipe\.world: .*'kind'"),
        ({7: 1}, r"recipe: .*'7'"),
        ({"world": {}}, "'dim'"),
        ({"world": 3}, r"^recipe\.world: .*keys and values.* 3"),
        ({"world": None}, r"^recipe\.world: .*keys and values.* None"),
        ({"world": {"dim": 2, "mixing": {"turns": 2}}}, r"recipe\.world\.mixing: .*'kind'.*coupling"),
        ({"world": {"dim": 2, "mixing": {"kind": "spirl"}}}, r"'spirl'.*'spiral'"),
        ({"world": {"dim": 2, "mixing": "spirall"}}, r"'spirall'.*'spiral'"),
        ({"world": {"dim": 2, "mixing": {"kind": ["spiral"]}}}, r"'\['spiral'\]'"),
        ({"world": {"dim": 2, "mixing": {"kind": "spiral", "layers": 2}}}, r"mixing: .*'layers'"),
        ({"world": {"dim": 2, "mixing": None}}, r"^recipe\.world\.mixing: .*keys and values.* None"),
        ({"world": {"dim": 2, "mixing": 5}}, r"^recipe\.world\.mixing: .*keys and values.* 5"),
        ({"world": {"dim": 2, "others": ["spiral", {"kind": "x"}]}}, r"recipe\.world\.others\.1: .*'x'"),
        ({"steps": True}, r"^recipe\.steps: .*a whole number.* True"),
        ({"steps": 2.0}, r"^recipe\.steps: .*a whole number.* 2\.0"),
        ({"steps": "3"}, r"^recipe\.steps: .*a whole number.* '3'"),
        ({"rate": True}, r"^recipe\.rate: .*a number.* True"),
        ({"rate": "fast"}, r"^recipe\.rate: .*a number.* 'fast'"),
        ({"rate": None}, r"^recipe\.rate: .*a number.* None"),
        ({"verbose": 1}, r"^recipe\.verbose: .*true or false.* 1"),
        ({"name": 3}, r"^recipe\.name: .*a text.* 3"),
        ({"seed": "x"}, r"^recipe\.seed: .*a whole number or null.* 'x'"),
        ({"activation": "tanh"}, r"^recipe\.activation: .*'gelu' or 'relu'.* 'tanh'"),
        ({"level": True}, r"^recipe\.level: .*1 or 2.* True"),
        ({"level": 1.0}, r"^recipe\.level: .*1 or 2.* 1\.0"),
        ({"share": "all"}, r"^recipe\.share: .*a number or 'auto'.* 'all'"),
        ({"clip": {"norm": "x"}}, r"^recipe\.clip\.norm: .*a number.* 'x'"),
        ({"limits": [1, 2, 3]}, r"^recipe\.limits: .*a list of length 2.* \[1, 2, 3\]"),
        ({"limits": 1}, r"^recipe\.limits: .*a list of length 2.* 1"),
        ({"shape": ["square", 3]}, r"^recipe\.shape\.0: .*a whole number.* 'square'"),
        ({"stops": [1, 2.5]}, r"^recipe\.stops\.1: .*a whole number or null.* 2\.5"),
        ({"stops": 1}, r"^recipe\.stops: .*a list of a whole number or null.* 1"),
        ({"stops": "12"}, r"^recipe\.stops: .*list"),
    ],
)
def test_errors_name_the_field_and_the_value(change: dict[Any, Any], message: str):
    with pytest.raises(InputError, match=message):
        from_plain(Recipe, {"world": {"dim": 2}} | change)


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_data_that_is_not_a_mapping_is_rejected(data):
    with pytest.raises(InputError, match=r"^file: "):
        from_plain(Recipe, data, "file")


def test_another_kind_is_rejected():
    with pytest.raises(InputError, match=r"'spiral'.*'coupling'"):
        from_plain(Spiral, {"kind": "coupling"})


def test_choices():
    assert choices(Spiral | Coupling) == choices(Annotated[Spiral | Coupling | None, "x"])
    assert choices(Spiral | Coupling) == {"spiral": Spiral, "coupling": Coupling}
    assert choices(Clip) == choices(int | None) == {}
    assert kind_of(Coupling) == "coupling"


@dataclass(frozen=True)
class Restricted:
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
        ({"precision": "bfloat"}, "precision: .*'bfloat'.*'bfloat16'.* bfloat16, float32"),
        ({"precision": None}, "precision: .*'None'"),
        ({"precision": ("float32",)}, r"precision: .*\('float32',\)"),
        ({"precision": ["float32"]}, r"precision: .*\['float32'\]"),
        ({"level": 3}, "level: .*'3'.* 1, 2"),
        ({"track": ("wandb", "tensorbord")}, "track: .*'tensorbord'.*'tensorboard'"),
        ({"track": "wandb"}, "track .*'wandb' was given"),
    ],
)
def test_values_outside_a_literal_are_rejected(values: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        Restricted(**values)


def test_values_of_a_literal_and_other_fields_are_accepted():
    Restricted("bfloat16", 2, 0.5, ("wandb", "tensorboard"), (1, "round"))
    Restricted(share="all")  # pyright: ignore[reportArgumentType]  # unions with other types are not checked
