"""Measures of pairs of agents, on synthetic latents with a known relation."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from experiments.social.synthetic_agents import DIM, EACH, GROUPS, agent_result, rotation, side, states, synthetic_pair
from torch import nn
from workflows.vision.tiny_scenes import agent, write_scenes

from jepatlas.alignment import PairedLatents
from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares, r2
from jepatlas.core.records import Estimate
from jepatlas.data.images import Shuffle
from jepatlas.experiments import EXPERIMENTS, Result, Trial
from jepatlas.experiments.alignment.pair_noise import SHARES
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.experiments.social.agent_pairs import NAMES, held_out_layers, pair_latents, pair_results, split_of
from jepatlas.experiments.social.map_quality import measure_budgets_and_noise
from jepatlas.experiments.social.pair_measures import EFFORT, Effort, measure_pair, translate
from jepatlas.experiments.social.sensitivity import (
    light_table,
    measure_light,
    measure_probe,
    measure_truncation,
    probe_table,
    truncation_table,
)
from jepatlas.experiments.social.shift_measures import measure_shift, measure_widths
from jepatlas.experiments.social.trained_agents import LATENTS, run_agent, stored_rows, train_and_store
from jepatlas.recipes import Augmentation, read_images
from jepatlas.workflows.vision import latents_of

QUICK = Effort(19, 10, 80)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def values(found: dict[str, Estimate]) -> dict[str, float]:
    return {name: estimate.value for name, estimate in found.items()}


def as_result(found: dict[str, Estimate]) -> dict[str, list[Result]]:
    record = {"verdicts": as_verdicts(found, "")}
    return {"toys": [Result(Trial({"seed": 0}, run_agent, {}), Path(), "finished", record)]}


def change(pair: PairedLatents, **arrays: np.ndarray) -> PairedLatents:
    """The pair with arrays replaced on both sides."""
    return replace(pair, a=replace(pair.a, **arrays), b=replace(pair.b, **arrays))


def test_a_rotation_exceeds_chance_and_controls(rng: np.random.Generator):
    z = states(rng)
    found = measure_pair(synthetic_pair(z, 3 * z @ rotation(rng) + 5, rng), QUICK)
    assert found["r2"].value > 0.99 and found["r2_rotation"].value > 0.99 and found["p_r2"].value == 0.05
    assert found["beyond"].low > 0.5 and found["beyond_pixels"].low > 0.5
    assert found["nos_10"].value < 0.05 and found["dsc"].value > 0.99 and found["cka"].value > 0.99
    assert found["kappa"].value < 1.5


def test_a_stretch_is_linear_but_not_a_rotation(rng: np.random.Generator):
    z = states(rng)
    found = values(measure_pair(synthetic_pair(z, z * np.geomspace(1, 30, DIM) @ rotation(rng), rng), QUICK))
    assert found["r2"] > 0.99 and found["r2_raw"] > 0.99
    assert found["r2_rotation"] < 0.9 and found["cka"] < 0.6


def test_unrelated_agents_do_not_align(rng: np.random.Generator):
    found = values(measure_pair(synthetic_pair(states(rng), states(rng), rng), QUICK))
    assert found["r2"] < 0.05 and found["p_r2"] > 0.05 and found["cka"] < 0.1


def test_margins_are_zero_if_the_images_are_the_state(rng: np.random.Generator):
    z = states(rng)
    pixels = np.pad(z, [(0, 0), (0, 36 - DIM)]).reshape(-1, 6, 6)
    found = measure_pair(change(synthetic_pair(z, z @ rotation(rng), rng), raw=pixels), QUICK)
    assert abs(found["beyond"].value) < 0.01 and abs(found["beyond_pixels"].value) < 0.01


def test_scores_follow_the_definition_on_held_out_states(rng: np.random.Generator):
    z = states(rng)
    pair = synthetic_pair(z, z @ rotation(rng) + 0.5 * states(rng), rng)
    fit, score = split_of(pair)
    found = translate(pair, pair.a.h, pair.b.h)
    predicted = least_squares(pair.a.h[fit], pair.b.h[fit]).apply(pair.a.h[score])
    assert found.scores(score, score)["r2_raw"] == pytest.approx(r2(pair.b.h[score], predicted), abs=0.02)


def test_agents_are_paired_by_states_and_need_the_same_held_out_states(tmp_path: Path, rng: np.random.Generator):
    z, order = states(rng), rng.permutation(240)[:200]
    a, b = side(z, rng), {name: array[order] for name, array in side(2 * z, rng).items()}
    for arrays in (a, b):  # layers are stored for held-out states
        arrays["layer00"] = arrays["h"][arrays["held"]]
    first, second = agent_result(tmp_path / "a", a, 0), agent_result(tmp_path / "b", b, 1)
    found = pair_latents(first, second)
    np.testing.assert_allclose(2 * found.a.h, found.b.h)
    assert found.ids is not None
    held = found.ids[split_of(found).score]
    (layer_a,), (layer_b,) = (held_out_layers(result, held) for result in (first, second))
    np.testing.assert_allclose(2 * layer_a, layer_b)
    assert len(layer_a) == len(held)
    (pair,) = pair_results([first, second], lambda pair: measure_pair(pair, EFFORT["tiny"]))
    assert pair.at["to"] == DIM and pair.value("r2") > 0.99
    wrong = agent_result(tmp_path / "c", b | {"held": ~b["held"]}, 1)
    with pytest.raises(InputError, match="hold out"):
        pair_latents(first, wrong)
    crashed = replace(second, status="crashed")
    (lost,) = pair_results([first, crashed], lambda pair: measure_pair(pair, EFFORT["tiny"]))
    assert lost.status == "crashed" and np.isnan(lost.value("r2"))


def test_agents_of_two_views_store_the_same_states(rng: np.random.Generator):
    names = np.array([f"s{i}" for i in range(100)])
    shuffled = rng.permutation(names)
    assert set(names[stored_rows(names, 30)]) == set(shuffled[stored_rows(shuffled, 30)])
    assert len(stored_rows(names, 30)) == 30 and (stored_rows(names, 100) == np.arange(100)).all()


def test_stored_images_are_the_images_that_the_agent_encodes(rng: np.random.Generator):
    """Images of the given rows, shuffled if the agent trains on shuffled patches."""
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
        x = torch.from_numpy(given.transpose(0, 3, 1, 2).copy()) / 255
        np.testing.assert_allclose(found["h"], one.objective(x).detach().numpy(), rtol=1e-5)
        assert found["ids"].tolist() == ["d", "b"]


def test_stored_images_are_augmented_by_the_pipeline_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents of the same images (ImageNet) would otherwise store equal pixels, which PCA aligns perfectly."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lines = (write_scenes(tmp_path / "scenes")).read_text().splitlines()
    (tmp_path / "scenes" / "one.csv").write_text("\n".join([lines[0], *(x for x in lines if ",left," in x)]) + "\n")
    raw = {}
    for pipelines in ((), ("A",), ("B",)):
        recipe = replace(
            agent(tmp_path / "scenes" / "one.csv", "left", steps=1), view=None, augmentation=Augmentation(pipelines)
        )
        folder = tmp_path / "".join(["run", *pipelines])
        assert train_and_store(recipe, 100, folder)["status"] == "finished"
        raw[pipelines] = np.load(folder / LATENTS)["raw"]
    images = read_images(recipe).images
    assert np.abs(raw[()].astype(int) - np.asarray(images)).max() == 0
    assert not (raw["A",] == raw[()]).all() and not (raw["A",] == raw["B",]).all()


def test_shift_price_is_zero_for_one_map_and_large_for_two(rng: np.random.Generator):
    z = states(rng)
    same = synthetic_pair(z, z @ rotation(rng), rng)
    assert abs(measure_shift(same)["price"].value) < 0.01 and measure_shift(same)["inside"].value > 0.99
    assert same.labels is not None
    mugs = (same.labels == "mug")[:, None]
    other = replace(same, b=replace(same.b, h=np.where(mugs, z @ rotation(rng), same.b.h)))
    found = values(measure_shift(other))
    assert found["inside"] > 0.99 and found["own"] > 0.99 and found["price"] > 0.5


def test_a_map_from_a_narrow_agent_explains_the_shared_variance(rng: np.random.Generator):
    z = states(rng)
    assert measure_widths(synthetic_pair(z, z[:, :3], rng), 100)["r2"].value > 0.99
    narrow = measure_widths(synthetic_pair(z[:, :4], z, rng), 100)["r2"].value
    assert 0.3 < narrow < 0.6, "half of the variance"


def test_mismatched_pairs_lower_the_r2_of_least_squares_only(rng: np.random.Generator):
    """With a share ε of mismatched pairs, least squares keeps at most 1 − ε² of R²: it loses at least 0.09."""
    z = states(rng)
    noisy = values(measure_budgets_and_noise(synthetic_pair(z, z @ rotation(rng) + 0.5 * states(rng), rng)))
    assert noisy["gained"] == noisy["r2_ridge_160"] - noisy["r2_ridge_50"] > 0
    found = values(measure_budgets_and_noise(synthetic_pair(z, z @ rotation(rng), rng)))
    assert 0.05 < found["lost"] < 0.2
    assert found[f"r2_noise_robust_{SHARES[-1]:g}"] > 0.99


def test_experiments_share_their_agents():
    """Agents that several experiments need have one name and one recipe, so they are trained once."""
    jobs = {name: {trial.job.name for trial in EXPERIMENTS[name].trials("small", 0)} for name in EXPERIMENTS}
    views = jobs["social-views"]
    assert jobs["social-pairs"] <= views
    assert len(jobs["social-shift"] - views) == 12
    assert len(jobs["social-paradigms"] & views) == len(jobs["social-structure"] & views) == 6


@pytest.mark.parametrize("name", ["social-views", "social-paradigms", "social-structure", "social-shift"])
def test_the_two_agents_of_a_pair_have_different_seeds(name: str):
    for trial in EXPERIMENTS[name].trials("small", 0):
        assert trial.settings["recipe"]["seed"] == 2 * int(trial.at["seed"]) + int(trial.at["view"])


def test_light_analysis_separates_the_shared_light_from_the_shared_state(rng: np.random.Generator):
    """Untrained networks share only the light; agents share the state as well."""
    z, bright = states(rng), np.arange(GROUPS * EACH) % 2 == 0
    beam = 5.0 * bright[:, None] * np.ones(DIM)
    ids = np.array([f"s{i:04d}-{'noon' if lit else 'evening'}" for i, lit in enumerate(bright)])
    pair = synthetic_pair(z + beam, z @ rotation(rng) + beam, rng)
    assert pair.a.untrained is not None and pair.b.untrained is not None
    pair = replace(
        pair,
        a=replace(pair.a, ids=ids, untrained=pair.a.untrained + beam),
        b=replace(pair.b, ids=ids, untrained=pair.b.untrained + beam),
    )
    light, usual = measure_light(pair, QUICK), measure_pair(pair, QUICK)
    found = values(light)
    assert usual["r2"].value > 0.95 and usual["r2_untrained"].value > 0.8, "the light aligns untrained networks"
    assert 0.8 < found["r2_light_untrained"] < 0.9 and found["r2_light_pca"] < 0.05
    assert found["r2_within_agents"] > 0.98 and found["r2_within_untrained"] < 0.05
    assert found["r2_raw_within_beyond"] > 0.9 > usual["beyond"].value
    fit, held = split_of(pair)
    means = np.where(bright[:, None], *(pair.b.h[fit][bright[fit] == lit].mean(0) for lit in (True, False)))
    assert found["r2_raw_light_agents"] == pytest.approx(r2(pair.b.h[held], means[held]))
    (table,) = light_table(as_result(light | usual))
    assert [row[1] for row in table.rows] == [NAMES[name] for name in ("agents", "untrained", "pca", "pca_16")]
    assert [len(row) for row in table.rows] == [len(table.columns)] * 4


@pytest.mark.parametrize("name", ["s{}", "s{}-noon", "s-{}"])
def test_light_analysis_needs_several_lights(name: str, rng: np.random.Generator):
    ids = np.array([name.format(i) for i in range(GROUPS * EACH)])
    pair = change(synthetic_pair(states(rng), states(rng), rng), ids=ids)
    assert measure_light(pair, QUICK) == {} and light_table({}) == ()


def test_probes_decode_labels_of_trained_agents_only(rng: np.random.Generator):
    """Latents of the agents contain the label; latents of untrained networks do not."""
    z = states(rng)
    labels = side(z, rng)["labels"]
    pair = synthetic_pair(z + 4.0 * (labels == "car")[:, None], z + 4.0 * (labels == "car")[:, None], rng)
    probes = measure_probe(pair)
    found = values(probes)
    assert found["probe_h"] == 1.0 and 0.3 < found["probe_untrained"] < 0.7
    held = labels[split_of(pair).score]
    assert found["probe_majority"] == max((held == kind).mean() for kind in ("car", "mug"))
    (table,) = probe_table(as_result(probes))
    assert table.rows[0][:2] == ["toys", "1.000"]
    unlabelled = replace(pair, a=replace(pair.a, labels=None), b=replace(pair.b, labels=None))
    assert measure_probe(unlabelled) == {} and probe_table({}) == ()


def test_truncation_regularises_an_ill_conditioned_inverse(rng: np.random.Generator):
    """One direction of the map contains only noise, which dominates the inverse but not the map."""
    z = states(rng)
    faint = np.where(np.arange(DIM) == 0, 1e-3, 1.0)
    noise = 0.02 * rng.standard_normal(z.shape)
    pair = synthetic_pair(z, (z * faint + noise) @ rotation(rng), rng)
    truncated, usual = measure_truncation(pair, QUICK), measure_pair(pair, QUICK)
    found = values(truncated)
    assert not truncated.keys() & usual.keys()
    assert found["nos_tau_100_agents"] == pytest.approx(usual["nos_10"].value), "the default condition limit"
    assert found["dsc_tau_100_agents"] == pytest.approx(usual["dsc"].value)
    assert found["nos_tau_1e+06_agents"] > found["nos_tau_10_agents"] + 0.1 and found["dsc_tau_10_agents"] > 0.8
    assert usual["nos_10_there"].value < 0.2 and usual["dsc_there"].value > 0.9
    table = truncation_table(as_result(truncated | usual))
    assert [len(row) for row in table.rows] == [len(table.columns)] * 4
    assert table.rows[0][-1] == f"{usual['nos_10_there'].value:.3f}"
