"""What came of planning, as a record and as films."""

import imageio_ffmpeg
import numpy as np
import pytest
from planning.small import all_seeing, run

from jepatlas.base.errors import InputError
from jepatlas.plan import MPPIConfig
from jepatlas.planning import (
    DrivingConfig,
    Tasks,
    agent_of,
    certify_world_model,
    drive,
    driven_films,
    imagined_films,
    load_world_model,
    planning_record,
    write_film,
)
from jepatlas.recipes import WalkedWorld
from jepatlas.worlds import Rooms

WORLD = Rooms()
STARTS = np.array([[-0.7, -0.5], [-0.3, -0.8], [-0.8, 0.2]])
GOALS = np.array([[-0.2, -0.5], [0.3, -0.8], [-0.4, 0.7]])  # the second is behind the wall


def driven():
    config = DrivingConfig(MPPIConfig(horizon=5, samples=64, iterations=3), steps=20)
    return drive(WORLD, all_seeing(WORLD, 0.1), Tasks(STARTS, GOALS), config)


def test_success_stands_beside_chance_and_the_shortest_way():
    one = driven()
    record = planning_record("Planning", WORLD, {"ada": one, "ben": one}, np.array([True, False, False]), seed=0)
    found = {verdict.name: verdict for verdict in record.verdicts}
    assert (found["success"].value, found["success"].n) == (2 / 3, 3) and found["success"].null == 1 / 3
    assert 1 <= found["detour"].value < 2
    assert record.summary.startswith("Ada reached 2 of 3 goals") and "Ada less ben: +0 points" in record.summary
    rows = record.tables[0]["rows"]
    assert [row[:2] for row in rows] == [["ada", "2 of 3"], ["ben", "2 of 3"], ["random actions", "1 of 3"]]


def test_films_show_what_was_driven_and_failures_among_it():
    one = driven()
    arrays, figure = driven_films(WORLD, one, 2)
    assert len(figure["panels"]) == 2 and "not reached in 20 steps" in str(figure["panels"])
    assert np.array_equal(arrays["driven-1"][0], WORLD.observe(STARTS[1:2])[0])
    assert np.array_equal(arrays["goal-1"], WORLD.observe(GOALS[1:2]))


def test_imagined_frames_begin_with_the_real_one(tmp_path):
    model = load_world_model(run(tmp_path / "run"))
    arrays, figure = imagined_films(model, agent_of(model), 1, steps=5)
    number = int(model.data.held[0])
    assert arrays[f"real-{number}"].shape == arrays[f"imagined-{number}"].shape == (6, 64, 64, 3)
    assert np.array_equal(arrays[f"real-{number}"][0], arrays[f"imagined-{number}"][0]), "the library holds it"
    assert len(figure["panels"]) == 1


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_a_film_has_all_frames_and_the_goal_shines_through(tmp_path, suffix):
    films = [np.zeros((3, 16, 16, 3), np.uint8), np.full((5, 16, 16, 3), 200, np.uint8)]
    films[1][::2] = 90  # or a GIF would keep one of equal frames
    goals = [np.full((1, 16, 16, 3), 100, np.uint8)] * 2
    write_film(tmp_path / f"film.{suffix}", films, goals)
    frames = list(imageio_ffmpeg.read_frames(str(tmp_path / f"film.{suffix}")))
    about, first = frames[0], np.frombuffer(frames[1], np.uint8).reshape(54, 108, 3)
    assert about["source_size"] == (108, 54) and len(frames) - 1 == 5 + 9
    assert abs(int(first[27, 27, 0]) - 30) < 8, "a black frame, and three tenths of the goal"


def test_other_films_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.gif or \.mp4"):
        write_film(tmp_path / "film.avi", [np.zeros((1, 8, 8, 3), np.uint8)], [np.zeros((1, 8, 8, 3), np.uint8)])


def test_a_world_model_is_certified_on_held_out_episodes(tmp_path):
    folder = run(tmp_path / "run", source=WalkedWorld(WORLD, episodes=40, length=10))
    record = certify_world_model(folder)
    found = {verdict.name: verdict for verdict in record.verdicts}
    assert found["r2"].n > 0 and record.provenance["held-out episodes"] == 4
    assert (folder / "records" / "certificate.json").is_file()
