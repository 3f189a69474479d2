"""Records and films of planning."""

from dataclasses import replace

import imageio_ffmpeg
import numpy as np
import pytest
import torch
from workflows.plan.small import run, tracking_agent

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Film
from jepatlas.planning import MPPIConfig
from jepatlas.recipes import WalkedWorld
from jepatlas.workflows.plan import (
    DrivingConfig,
    Tasks,
    agent_of,
    certify_world_model,
    check_film,
    drive,
    driven_films,
    film_rows,
    imagined_films,
    load_world_model,
    planning_record,
    write_film,
)
from jepatlas.worlds import LinearQuadratic, Rooms

WORLD = Rooms()
STARTS = np.array([[-0.7, -0.5], [-0.3, -0.8], [-0.8, 0.2]])
GOALS = np.array([[-0.2, -0.5], [0.3, -0.8], [-0.4, 0.7]])  # the second is behind the wall


class Pairwise:
    """Dynamics of two steps planned as one, without walls."""

    def rollout(self, h: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        return h[:, None] + 0.1 * actions.unflatten(-1, (2, 2)).sum(2).cumsum(1)


def driven():
    config = DrivingConfig(MPPIConfig(horizon=5, samples=64, iterations=3), steps=20)
    return drive(WORLD, tracking_agent(WORLD, 0.1), Tasks(STARTS, GOALS), config)


def test_record_has_success_chance_and_path_lengths():
    one = driven()
    record = planning_record("Planning", WORLD, {"ada": one, "ben": one}, np.array([True, False, False]), seed=0)
    found = {verdict.name: verdict for verdict in record.verdicts}
    assert (found["success"].value, found["success"].n) == (2 / 3, 3) and found["success"].null == 1 / 3
    assert 1 <= found["detour"].value < 2
    assert "2 of 3" in record.summary and "+0 percentage points" in record.summary
    rows = record.tables[0].rows
    assert [row[:2] for row in rows] == [["ada", "2 of 3"], ["ben", "2 of 3"], ["random actions", "1 of 3"]]


def test_films_include_failures():
    one = driven()
    arrays, figure = driven_films(WORLD, one, 2)
    assert len(figure.panels) == 2 and "not reached in 20 steps" in str(figure.panels)
    assert np.array_equal(arrays["driven-1"][0], WORLD.observe(STARTS[1:2])[0])
    assert np.array_equal(arrays["goal-1"], WORLD.observe(GOALS[1:2]))


def test_imagined_frames_start_with_the_real_one(tmp_path):
    model = load_world_model(run(tmp_path / "run"))
    arrays, figure = imagined_films(model, agent_of(model), 1, steps=5)
    number = int(model.data.held[0])
    assert arrays[f"real-{number}"].shape == arrays[f"imagined-{number}"].shape == (6, 64, 64, 3)
    assert np.array_equal(arrays[f"real-{number}"][0], arrays[f"imagined-{number}"][0]), (
        "the first frame is in the library"
    )
    assert len(figure.panels) == 1


def test_driven_films_show_the_imagined_trajectory():
    """Dynamics without walls imagine a path through the wall; frames are the nearest ones of the library."""
    one = driven()
    arrays, figure = driven_films(WORLD, one, 3, tracking_agent(WORLD, WORLD.step_length))
    assert [strip.name for strip in figure.panels[1].strips] == ["driven", "imagined", "goal"]
    real, imagined = arrays["driven-1"], arrays["foreseen-1"]
    assert real.shape == imagined.shape and np.array_equal(real[0], imagined[0])
    agent = tracking_agent(WORLD, WORLD.step_length)
    walked = STARTS[1] + WORLD.step_length * one.actions[1].cumsum(0)
    seen = agent.encode(imagined[1:]).numpy()
    inside = (np.abs(walked) < 0.9).all(1) & (
        np.abs(walked[:, 0]) > 0.15
    )  # away from walls, where the library has states
    assert inside.sum() > 5 and np.linalg.norm(seen - walked, axis=1)[inside].max() < 0.12
    assert np.linalg.norm(agent.encode(real[-1:]).numpy() - walked[-1]) > 0.2, "the wall stops the real agent"
    rows, goals = film_rows(arrays)
    assert list(rows) == ["driven", "imagined: same start, same actions"] and len(goals) == 3


def test_imagined_films_respect_the_stride():
    agent = replace(tracking_agent(WORLD, 0.1), dynamics=Pairwise(), stride=2)
    config = DrivingConfig(MPPIConfig(horizon=4, samples=64, iterations=3), steps=20)
    one = drive(WORLD, agent, Tasks(STARTS[:1], GOALS[:1]), config)
    arrays, _ = driven_films(WORLD, one, 1, agent)
    seen = agent.encode(arrays["foreseen-0"]).numpy()
    steps = int(one.steps[0])
    for time in range(2, steps + 1):
        assert np.linalg.norm(seen[time] - one.states[0, time // 2 * 2]) < 0.12


def test_unreachable_goals_are_counted():
    agent = replace(tracking_agent(WORLD, 0.1), energy=lambda h, goal: torch.full_like((h + goal)[..., 0], torch.inf))
    one = drive(WORLD, agent, Tasks(STARTS, GOALS), DrivingConfig(MPPIConfig(horizon=3, samples=8), steps=6))
    record = planning_record("Planning", WORLD, {"ada": one}, np.zeros(3, bool), seed=0, agent=agent)
    assert record.tables[0].rows[0][-1] == "3" and "3 of the goals" in record.summary
    film = record.figures[0]
    assert isinstance(film, Film)
    titles = [panel.title for panel in film.panels]
    assert titles[0] == "Task 1: not reached in 6 steps (the agent's energy was +∞)"
    assert all(cell for row in record.tables[0].rows for cell in row), "no empty cells"
    assert [figure.kind for figure in record.figures] == ["film"], "no energy curve if all energies are +∞"


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_film_file_has_all_frames_and_blended_goals(tmp_path, suffix):
    films = [np.zeros((3, 16, 16, 3), np.uint8), np.full((5, 16, 16, 3), 200, np.uint8)]
    films[1][::2] = 90  # a GIF drops equal consecutive frames
    goals = [np.full((1, 16, 16, 3), 100, np.uint8)] * 2
    write_film(tmp_path / f"film.{suffix}", {"driven": films, "imagined": films[::-1]}, goals)
    frames = list(imageio_ffmpeg.read_frames(str(tmp_path / f"film.{suffix}")))
    about, first = frames[0], np.frombuffer(frames[1], np.uint8).reshape(136, 108, 3).astype(int)
    assert about["source_size"] == (108, 136) and len(frames) - 1 == 5 + 9
    assert abs(first[41, 27, 0] - 30) < 8, "a black frame blended with 30% of the goal"
    assert abs(first[109, 81, 0] - 30) < 8, "the same, on the right of the second row"
    assert first[68:82, :, 0].mean() > first[68:82, :, 2].mean() + 100, "the second row has an orange band"
    assert first[:14].max() > 200 and first[68:82, 60:, 2].max() < 60, "the name is on the left of the band"


def test_invalid_films_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.gif or \.mp4"):
        write_film(tmp_path / "film.avi", {"driven": [np.zeros((1, 8, 8, 3), np.uint8)]}, [np.zeros((1, 8, 8, 3))])
    with pytest.raises(InputError, match="'linear-quadratic'"):
        check_film(tmp_path / "film.gif", LinearQuadratic())


def test_a_world_model_is_certified_on_held_out_episodes(tmp_path):
    folder = run(tmp_path / "run", source=WalkedWorld(WORLD, episodes=40, length=10))
    record = certify_world_model(folder)
    found = {verdict.name: verdict for verdict in record.verdicts}
    assert found["r2"].n > 0 and record.provenance["held-out episodes"] == 4
    assert (folder / "records" / "certificate.json").is_file()
