"""What is measured of two agents, where what they have in common is known."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from experiments.social_latents import DIM, EACH, GROUPS, agent_result, met, rotation, side, states
from torch import nn
from workflows.vision.tiny_scenes import agent, write_scenes

from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares, r2
from jepatlas.data.images import Shuffle
from jepatlas.experiments import EXPERIMENTS, Result, Trial
from jepatlas.experiments.alignment.pair_noise import SHARES
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.social.charts import NAMES, meet
from jepatlas.experiments.social.light import light_sentence, light_table, of_light
from jepatlas.experiments.social.measures import EFFORT, Effort, measured, translate
from jepatlas.experiments.social.meetings import meetings
from jepatlas.experiments.social.probed import probe_table, probed
from jepatlas.experiments.social.runs import LATENTS, kept_rows, run, train_and_keep
from jepatlas.experiments.social.shift import shifted
from jepatlas.experiments.social.shift_widths import widths
from jepatlas.experiments.social.stress import stressed
from jepatlas.experiments.social.truncations import truncated, truncations_table
from jepatlas.recipes import Augmentation, read_images
from jepatlas.workflows.vision import latents_of

EFFORTS = Effort(19, 10, 80)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_rotation_is_found_beyond_chance_and_controls(rng: np.random.Generator):
    z = states(rng)
    found = measured(met(z, 3 * z @ rotation(rng) + 5, rng), EFFORTS)
    assert found["r2"].value > 0.99 and found["r2_rotation"].value > 0.99 and found["p_r2"].value == 0.05
    assert found["beyond"].low > 0.5 and found["beyond_pixels"].low > 0.5
    assert found["nos_10"].value < 0.05 and found["dsc"].value > 0.99 and found["cka"].value > 0.99
    assert found["kappa"].value < 1.5


def test_a_stretch_is_linear_but_no_rotation(rng: np.random.Generator):
    z = states(rng)
    found = measured(met(z, z * np.geomspace(1, 30, DIM) @ rotation(rng), rng), EFFORTS)
    assert found["r2"].value > 0.99 and found["r2_raw"].value > 0.99
    assert found["r2_rotation"].value < 0.9 and found["cka"].value < 0.6


def test_unrelated_agents_have_nothing_in_common(rng: np.random.Generator):
    found = measured(met(states(rng), states(rng), rng), EFFORTS)
    assert found["r2"].value < 0.05 and found["p_r2"].value > 0.05 and found["cka"].value < 0.1


def test_what_pixels_tell_is_not_the_agents_merit(rng: np.random.Generator):
    """Images that are the state itself: nothing is left beyond PCA, nor beyond pixels of the first view."""
    z = states(rng)
    pair = met(z, z @ rotation(rng), rng)
    pixels = np.pad(z, [(0, 0), (0, 36 - DIM)]).reshape(-1, 6, 6)
    told = replace(pair, a=pair.a | {"raw": pixels}, b=pair.b | {"raw": pixels})
    found = measured(told, EFFORTS)
    assert abs(found["beyond"].value) < 0.01 and abs(found["beyond_pixels"].value) < 0.01


def test_scores_are_those_of_held_out_states_by_the_definition(rng: np.random.Generator):
    z = states(rng)
    pair = met(z, z @ rotation(rng) + 0.5 * states(rng), rng)
    fit, score = pair.split
    found = translate(pair, pair.a["h"], pair.b["h"], 1000)
    told = least_squares(pair.a["h"][fit], pair.b["h"][fit]).apply(pair.a["h"][score])
    every = np.arange(len(score))
    assert found.scores(every, every)["r2_raw"] == pytest.approx(r2(pair.b["h"][score], told), abs=0.02)
    assert len(translate(pair, pair.a["h"], pair.b["h"], 10).target) == 10


def test_agents_meet_by_states_and_must_hold_out_the_same(tmp_path: Path, rng: np.random.Generator):
    z, order = states(rng), rng.permutation(240)[:200]
    a, b = side(z, rng), {name: array[order] for name, array in side(2 * z, rng).items()}
    for arrays in (a, b):  # layers have rows for held-out states alone
        arrays["layer00"] = arrays["h"][arrays["held"]]
    first, second = agent_result(tmp_path / "a", a, 0), agent_result(tmp_path / "b", b, 1)
    found = meet(first, second)
    np.testing.assert_allclose(2 * found.a["h"], found.b["h"])
    np.testing.assert_allclose(2 * found.a["layer00"], found.b["layer00"])
    assert len(found.a["layer00"]) == found.a["held"].sum() == len(found.split.score)
    (pair,) = meetings([first, second], lambda met: measured(met, EFFORT["tiny"]))
    assert pair.at["to"] == DIM and pair.value("r2") > 0.99
    wrong = agent_result(tmp_path / "c", b | {"held": ~b["held"]}, 1)
    with pytest.raises(InputError, match="did not hold out the same"):
        meet(first, wrong)
    (lost,) = meetings([first, replace(second, status="crashed")], lambda met: measured(met, EFFORT["tiny"]))
    assert lost.status == "crashed" and np.isnan(lost.value("r2"))


def test_agents_of_two_views_keep_the_same_states(rng: np.random.Generator):
    names = np.array([f"s{i}" for i in range(100)])
    shuffled = rng.permutation(names)
    assert set(names[kept_rows(names, 30)]) == set(shuffled[kept_rows(shuffled, 30)])
    assert len(kept_rows(names, 30)) == 30 and (kept_rows(names, 100) == np.arange(100)).all()


def test_controls_see_what_the_agent_saw(rng: np.random.Generator):
    """Small images of chosen rows, their patches shuffled as the agent's are."""
    images, rows = rng.integers(0, 256, (5, 16, 16, 3), dtype=np.uint8), np.array([3, 1])
    columns = {"state": np.array(list("abcde")), "view": np.array(["left"] * 5)}
    table = SimpleNamespace(columns=columns, column=columns.__getitem__)
    for shuffle in (None, Shuffle(8, seed=3)):
        one = SimpleNamespace(
            seen=SimpleNamespace(images=images, table=table, held=rows[:0], learnt=rows[:0]),
            recipe=SimpleNamespace(shuffle=shuffle),
            objective=nn.Sequential(nn.Flatten(), nn.Linear(768, 2)),
        )
        found, given = latents_of(one, rows), images[rows] if shuffle is None else shuffle(images[rows], rows)
        np.testing.assert_array_equal(found["raw"], given)
        light = torch.from_numpy(given.transpose(0, 3, 1, 2).copy()) / 255
        np.testing.assert_allclose(found["h"], one.objective(light).detach().numpy(), rtol=1e-5)
        assert found["ids"].tolist() == ["d", "b"]


def test_agents_that_see_the_same_images_have_pipelines_for_views(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on ImageNet: without them both would be given the same pictures, which PCA translates without fault."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lines = (write_scenes(tmp_path / "scenes")).read_text().splitlines()
    (tmp_path / "scenes" / "one.csv").write_text("\n".join([lines[0], *(x for x in lines if ",left," in x)]) + "\n")
    raw = {}
    for pipelines in ((), ("A",), ("B",)):
        recipe = replace(
            agent(tmp_path / "scenes" / "one.csv", "left", steps=1), view=None, augmentation=Augmentation(pipelines)
        )
        folder = tmp_path / "".join(["run", *pipelines])
        assert train_and_keep(recipe, 100, folder)["status"] == "finished"
        raw[pipelines] = np.load(folder / LATENTS)["raw"]
    seen = read_images(recipe).images
    assert np.abs(raw[()].astype(int) - np.asarray(seen)).max() == 0  # as they are
    assert not (raw["A",] == raw[()]).all() and not (raw["A",] == raw["B",]).all()


def test_a_shift_costs_what_the_map_changes(rng: np.random.Generator):
    z = states(rng)
    same = met(z, z @ rotation(rng), rng)
    assert abs(shifted(same)["price"].value) < 0.01 and shifted(same)["inside"].value > 0.99
    mugs = (same.a["labels"] == "mug")[:, None]
    other = replace(same, b=same.b | {"h": np.where(mugs, z @ rotation(rng), same.b["h"])})
    found = shifted(other)
    assert found["inside"].value > 0.99 and found["own"].value > 0.99 and found["price"].value > 0.5


def test_a_rectangular_map_tells_what_the_narrow_agent_knows(rng: np.random.Generator):
    z = states(rng)
    assert widths(met(z, z[:, :3], rng), 100)["r2"].value > 0.99
    narrow = widths(met(z[:, :4], z, rng), 100)["r2"].value
    assert 0.3 < narrow < 0.6, "half of the variance"


def test_few_and_mismatched_pairs(rng: np.random.Generator):
    """Least squares with a share ε mismatched keeps (1 − ε²) of R²: 0.09 is lost of a perfect one, and a bit more."""
    z = states(rng)
    noisy = stressed(met(z, z @ rotation(rng) + 0.5 * states(rng), rng))
    assert noisy["gained"].value == noisy["r2_ridge_160"].value - noisy["r2_ridge_50"].value > 0
    found = stressed(met(z, z @ rotation(rng), rng))
    assert 0.05 < found["lost"].value < 0.2
    assert found[f"r2_noise_robust_{SHARES[-1]:g}"].value > 0.99


def test_experiments_share_their_agents():
    """What two of them ask for has one name and one recipe, so it is trained once."""
    jobs = {name: {trial.job.name for trial in EXPERIMENTS[name].trials("small", 0)} for name in EXPERIMENTS}
    views = jobs["social-views"]
    assert jobs["social-pairs"] <= views
    assert len(jobs["social-shift"] - views) == 12
    assert len(jobs["social-paradigms"] & views) == len(jobs["social-structure"] & views) == 6


@pytest.mark.parametrize("name", ["social-views", "social-paradigms", "social-structure", "social-shift"])
def test_no_two_agents_share_a_seed(name: str):
    for trial in EXPERIMENTS[name].trials("small", 0):
        assert trial.settings["recipe"]["seed"] == 2 * int(trial.at["seed"]) + int(trial.at["view"])


def test_what_the_light_alone_aligns_is_told_apart(rng: np.random.Generator):
    """Untrained networks that have nothing in common but the light, and agents that share the state besides."""
    z, bright = states(rng), np.arange(GROUPS * EACH) % 2 == 0
    beam = 5.0 * bright[:, None] * np.ones(DIM)
    pair = met(z + beam, z @ rotation(rng) + beam, rng)
    for one in (pair.a, pair.b):
        one["ids"] = np.array([f"s{i:04d}-{'noon' if lit else 'evening'}" for i, lit in enumerate(bright)])
        one["untrained"] = one["untrained"] + beam
    found = {name: estimate.value for name, estimate in of_light(pair, EFFORTS).items()}
    usual = measured(pair, EFFORTS)
    assert usual["r2"].value > 0.95 and usual["r2_untrained"].value > 0.8, "the light makes strangers alike"
    assert 0.8 < found["r2_light_untrained"] < 0.9 and found["r2_light_pca"] < 0.05
    assert found["r2_within_agents"] > 0.98 and found["r2_within_untrained"] < 0.05
    assert found["r2_raw_within_beyond"] > 0.9 > usual["beyond"].value
    held, fit = pair.split.score, pair.split.fit
    means = np.where(bright[:, None], *(pair.b["h"][fit][bright[fit] == lit].mean(0) for lit in (True, False)))
    assert found["r2_raw_light_agents"] == pytest.approx(r2(pair.b["h"][held], means[held]))
    record = {"verdicts": as_verdicts(of_light(pair, EFFORTS) | usual, "")}
    kinds = {"toys": [Result(Trial({"seed": 0}, run, {}), Path(), "finished", record)]}
    (table,) = light_table(kinds)
    assert [row[1] for row in table["rows"]] == [NAMES[name] for name in ("agents", "untrained", "pca", "pca_16")]
    assert f"in which that is less: toys {found['r2_within_agents']:.2f}, " in light_sentence(kinds)
    assert f"of untrained ones: {found['r2_light_untrained']:.2f}." in light_sentence(kinds)


@pytest.mark.parametrize("name", ["s{}", "s{}-noon", "s-{}"])
def test_without_several_lights_nothing_is_said_of_them(name: str, rng: np.random.Generator):
    pair = met(states(rng), states(rng), rng)
    pair.a["ids"] = pair.b["ids"] = np.array([name.format(i) for i in range(GROUPS * EACH)])
    assert of_light(pair, EFFORTS) == {}
    assert light_table({}) == () and light_sentence({}) == ""


def test_what_a_probe_reads_of_agents_and_of_untrained_ones(rng: np.random.Generator):
    """Agents whose latents hold the label, and untrained ones that know nothing of it."""
    z = states(rng)
    pair = met(z, z, rng)
    for one in (pair.a, pair.b):
        one["h"] = one["h"] + 4.0 * (one["labels"] == "car")[:, None]
    found = {name: estimate.value for name, estimate in probed(pair).items()}
    assert found["probe_h"] == 1.0 and 0.3 < found["probe_untrained"] < 0.7
    held = pair.a["labels"][pair.split.score]
    assert found["probe_majority"] == max((held == kind).mean() for kind in ("car", "mug"))
    record = {"verdicts": as_verdicts(probed(pair), "")}
    (table,) = probe_table({"toys": [Result(Trial({"seed": 0}, run, {}), Path(), "finished", record)]})
    assert table["rows"][0][:2] == ["toys", "1.000"]
    del pair.a["labels"]
    assert probed(pair) == {} and probe_table({}) == ()


def test_truncation_decides_what_an_ill_conditioned_inverse_makes_of_neighbours(rng: np.random.Generator):
    """A faint direction of the map carries noise only: its inverse drowns the rest, the map itself does not."""
    z = states(rng)
    faint = np.where(np.arange(DIM) == 0, 1e-3, 1.0)
    noise = 0.02 * rng.standard_normal(z.shape)
    pair = met(z, (z * faint + noise) @ rotation(rng), rng)
    found = {name: estimate.value for name, estimate in truncated(pair, EFFORTS).items()}
    usual = measured(pair, EFFORTS)
    assert not found.keys() & usual.keys()
    assert found["nos_tau_100_agents"] == pytest.approx(usual["nos_10"].value), "the study's own"
    assert found["dsc_tau_100_agents"] == pytest.approx(usual["dsc"].value)
    assert found["nos_tau_1e+06_agents"] > found["nos_tau_10_agents"] + 0.1 and found["dsc_tau_10_agents"] > 0.8
    assert usual["nos_10_there"].value < 0.2 and usual["dsc_there"].value > 0.9
    record = {"verdicts": as_verdicts(truncated(pair, EFFORTS) | usual, "")}
    table = truncations_table({"toys": [Result(Trial({"seed": 0}, run, {}), Path(), "finished", record)]})
    assert [len(row) for row in table["rows"]] == [len(table["columns"])] * 4
    assert table["rows"][0][-1] == f"{usual['nos_10_there'].value:.3f}"
