"""Planners ported to another camera: known maps, records, and incompatible runs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from workflows.plan.small import recipe, run

from jepatlas.alignment.paired import PairedLatents
from jepatlas.core.errors import InputError
from jepatlas.planning import MPPIConfig
from jepatlas.recipes import EpisodeSource, WalkedWorld
from jepatlas.workflows.plan import (
    DrivingConfig,
    TrainedModel,
    fit_port,
    load_world_model,
    port_planner,
    same_world,
    shared_latents,
    shuffled_pairs,
)
from jepatlas.worlds import Camera, Maze, Rooms

NIGHT = Rooms(camera=Camera(angle=90.0, mirror=True, palette="night"))
SHORT = DrivingConfig(MPPIConfig(horizon=3, samples=8, iterations=1), steps=6)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainedModel, TrainedModel]:
    place = tmp_path_factory.mktemp("porting")
    night = WalkedWorld(NIGHT, episodes=12, length=20)
    return load_world_model(run(place / "day")), load_world_model(run(place / "night", source=night, seed=1))


def turned(rows: int, seed: int = 0) -> PairedLatents:
    """Latents that differ by a rotation and a shift."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(np.random.default_rng(9).standard_normal((4, 4)))[0]
    b = rng.standard_normal((rows, 4))
    return PairedLatents.of(b @ rotation.T + 2.0, b)


@pytest.mark.parametrize("kind", ["ridge", "procrustes"])
def test_fit_port_maps_b_to_a_and_scores_held_out_pairs(kind: Any):
    pairs, apart = turned(60), turned(40, seed=1)
    found, score = fit_port(kind, pairs, apart, seed=0)
    assert np.allclose(found.apply(apart.b.h), apart.a.h, atol=1e-2) and score.value > 0.999 and score.n == 40
    nothing, chance = fit_port(kind, shuffled_pairs(pairs, np.random.default_rng(2)), apart, seed=0)
    assert chance.value < 0.3 and not np.allclose(nothing.apply(apart.b.h), apart.a.h, atol=0.5)


def test_shared_latents_are_of_the_same_states(two: tuple[TrainedModel, TrainedModel]):
    shared = shared_latents(*two, 5, seed=3)
    states = NIGHT.states(5, np.random.default_rng(0))
    assert shared.a.h.shape == shared.b.h.shape == (5, 8) and not np.allclose(shared.a.h, shared.b.h)
    again = shared_latents(*two, 5, seed=3)
    assert np.array_equal(shared.a.h, again.a.h)
    assert not np.array_equal(shared.a.h, shared_latents(*two, 5, seed=4).a.h)
    assert same_world(*two) == NIGHT and not np.array_equal(NIGHT.observe(states), Rooms().observe(states))


def test_porting_a_model_to_itself_changes_nothing(two: tuple[TrainedModel, TrainedModel]):
    """Ported through the map from a model to itself, the planner takes the same actions in every task."""
    day, _ = two
    through, record = port_planner(day, day, kind="least-squares", states=400, tasks=5, driving=SHORT)
    assert np.allclose(through.raw_weight, np.eye(8), atol=1e-4)
    found = {verdict.name: verdict for verdict in record.verdicts}
    assert found["lost"].value == 0 and found["map_r2"].value == pytest.approx(1, abs=1e-6)


def test_record_lists_all_agents(two: tuple[TrainedModel, TrainedModel]):
    _, record = port_planner(*two, states=60, tasks=4, driving=SHORT, names=("day", "night"), seed=1)
    who = [row[0] for row in record.tables[0].rows]
    assert who == ["day's planner", "night's own planner", "shuffled pairs", "random actions"]
    assert record.provenance["shared states"] == 60 and record.title == "The planner of day, ported to night"
    assert {"success", "lost", "map_r2"} <= {verdict.name for verdict in record.verdicts}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": WalkedWorld(Rooms(door=0.1))}, "camera"),
        ({"source": WalkedWorld(Maze())}, "'rooms' and 'maze'"),
        ({"source": EpisodeSource("episodes.h5")}, "world"),
        ({"stride": 2}, r"1 \(A\) and 2 \(B\)"),
    ],
)
def test_runs_of_different_worlds_are_refused(
    changes: dict[str, Any], message: str, two: tuple[TrainedModel, TrainedModel]
):
    other = replace(two[1], recipe=replace(recipe(), **changes))
    with pytest.raises(InputError, match=message):
        same_world(two[0], other)


def test_runs_with_other_observations_are_refused(two: tuple[TrainedModel, TrainedModel]):
    blind = replace(two[1], data=replace(two[1].data, x="state"))
    with pytest.raises(InputError, match=r"\(2,\).*'rooms'.*\(3, 64"):
        same_world(two[0], blind)


def test_one_shared_state_is_refused(two: tuple[TrainedModel, TrainedModel]):
    with pytest.raises(InputError, match="states is 1"):
        port_planner(*two, states=1)


def test_encoding_does_not_depend_on_the_batch(two: tuple[TrainedModel, TrainedModel]):
    """Otherwise a ported planner would encode differently in one task than in the fit of the map."""
    seen = NIGHT.observe(NIGHT.states(3, np.random.default_rng(4)))
    assert torch.allclose(two[1].encode(seen)[:1], two[1].encode(seen[:1]), atol=1e-5)
