"""Races between training methods, shared probes, and the decision rules of both teaching claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from workflows.vision.tiny_scenes import agent, write_scenes

from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.records import Verdict
from jepatlas.experiments import EXPERIMENTS, Finding, Result
from jepatlas.experiments.engine.rules import Outcome, as_verdicts, point_estimates
from jepatlas.experiments.social.decisions import decide_by_scene
from jepatlas.experiments.social.probe_sharing import PROBES, probes_table, share_probe
from jepatlas.experiments.social.race_runs import Curve, Runner, measure_race
from jepatlas.experiments.social.race_trials import prior_cost
from jepatlas.recipes import read_images
from jepatlas.workflows.vision import Cost, VisionAgent, cost_of, load_agent, majority_share

RUNNERS = {
    "scratch": Runner([(0, 0.2), (10, 0.5), (20, 0.7), (30, 0.7)], Cost(100.0)),
    "quick": Runner([(0, 0.4), (10, 1.0), (20, 0.6), (30, 0.9)], Cost(140.0, 10.0), 3000.0),
    "lost": Runner([(0, 0.2), (10, 0.4), (20, 0.6), (30, 0.69)], Cost(200.0)),
}
Numbers = dict[str, float]


def test_race_measures_match_a_calculation_by_hand():
    found = {name: estimate.value for name, estimate in measure_race(RUNNERS, None, 5.0).items()}
    assert found["threshold"] == 0.7 and found["untrained"] == 0.2 and found["gain"] == pytest.approx(0.5)
    assert [found[f"{name}_reached"] for name in RUNNERS] == [1, 1, 0]
    assert [found[f"{name}_epochs"] for name in RUNNERS] == pytest.approx([4, 1, 6])
    assert [found[f"{name}_flops"] for name in RUNNERS] == pytest.approx([2000, 750, 6000])
    assert [found[f"{name}_times"] for name in RUNNERS] == pytest.approx([1, 0.375, 3])
    assert [found[f"{name}_ratio"] for name in RUNNERS] == pytest.approx([1, 0.25, 1.5])
    assert [found[f"{name}_all"] for name in RUNNERS] == pytest.approx([1, 1.875, 3])
    assert [found[f"{name}_final"] for name in RUNNERS] == [0.7, 0.9, 0.69]
    assert found["quick_map"] == pytest.approx(1 / 15) and found["scratch_map"] == 0


def test_a_given_threshold_applies_to_all_runners():
    found = {name: estimate.value for name, estimate in measure_race(RUNNERS, 0.15, 5.0).items()}
    assert all(found[f"{name}_epochs"] == 0.2 for name in RUNNERS)  # reached before the first step counts as one step


@pytest.mark.parametrize(
    ("threshold", "majority", "curve", "learned"),
    [
        (None, 0.3, [(0, 0.2), (30, 0.7)], True),
        (None, 0.71, [(0, 0.2), (30, 0.7)], False),  # not better than the majority class
        (0.85, 0.3, [(0, 0.2), (30, 0.7)], False),  # does not reach the threshold
        (0.85, 0.1, [(0, 0.2), (30, 0.2)], False),  # no gain
        (0.65, 0.3, [(0, 0.2), (30, 0.7)], True),
        (0.15, 0.1, [(0, 0.2), (30, 0.7)], False),  # above the threshold before the first step
    ],
)
def test_learned_requires_a_gain_the_threshold_and_more_than_the_majority_class(
    threshold: float | None, majority: float, curve: Curve, learned: bool
):
    found = measure_race({"scratch": Runner(curve, Cost(1.0))}, threshold, 5.0, majority)
    assert (found["learned"].value == 1) is learned
    assert found["gain"].value == pytest.approx(curve[-1][1] - curve[0][1])


class StripeEncoder(nn.Module):
    """Linear in the contrast of horizontal and vertical stripes, after undoing the colours of a view."""

    def __init__(self, undo: float, mix: Tensor) -> None:
        super().__init__()
        self.undo, self.mix = undo, nn.Parameter(mix)

    def encode(self, x: Tensor) -> Tensor:
        shades = x - 0.5
        shades[:, 1] = shades[:, 1] * self.undo
        horizontal, vertical = shades[:, 1].mean(2).std(1), shades[:, 1].mean(1).std(1)
        return torch.stack([horizontal, vertical, shades[:, 0].std((1, 2))], 1) @ self.mix


def test_a_shared_probe_is_as_good_between_agents_that_differ_by_a_rotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    table = write_scenes(tmp_path / "scenes", groups=12)
    left, right = agent(table, "left"), agent(table, "right")
    turn = torch.tensor([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]])  # swaps horizontal and vertical
    one, other = (
        VisionAgent(left, StripeEncoder(1.0, torch.eye(3)), read_images(left)),
        VisionAgent(right, StripeEncoder(-1.0, turn), read_images(right)),
    )
    shared, lost = share_probe(one, other, 0, 20)
    found = {name: estimate.value for name, estimate in shared.items()}
    assert lost == "" and found["source"] == found["shared"] == found["target"] == found["backwards"] == 1.0
    assert found["majority"] == majority_share(one.seen.table.labels(one.seen.held)) < 1
    assert found["distilled"] >= 0.75 and found["untranslated"] <= 0.5
    blind = VisionAgent(
        right, StripeEncoder(-1.0, torch.diag(torch.tensor([0.0, 0, 1]))), read_images(right)
    )  # has no shape features
    shared, lost = share_probe(one, blind, 0, 20)
    assert np.isnan(shared["shared"].value) and lost
    assert shared["source"].value == 1.0 > shared["backwards"].value  # other probes are still reported


def test_the_mean_of_probes_states_the_number_of_seeds_and_the_reason():
    results = []
    given = (0.2, ""), (0.4, ""), (0.3, ""), (np.nan, "lost")
    for trial, (value, reason) in zip(EXPERIMENTS["social-migration"].trials("small", 0), given, strict=True):
        numbers = dict.fromkeys(PROBES, 0.5) | {"shared": value, "majority": 0.1}
        verdicts = as_verdicts(point_estimates({f"probe_{probe}": one for probe, one in numbers.items()}, 1), "")
        results.append(Result(trial, Path(), "finished", {"verdicts": verdicts, "probe_lost": reason}))
    table = probes_table(results)
    *rows, mean, _ = table.rows
    assert [row[-1] for row in rows] == ["", "", "", "lost"] and mean[:3] == ["mean", "", "0.500"]
    assert mean[table.columns.index(PROBES["shared"])] == "0.300 (3 of 4 seeds)"
    assert len(probes_table(results[:3]).rows[0]) == len(PROBES) + 2, "no column of reasons if every probe has a value"


def concluded(name: str, numbers: Numbers, apart: float = 1e-4, seeds: tuple[Numbers, ...] = ({},) * 4) -> Finding:
    """The finding from given numbers of all trials and of each seed; seeds differ slightly."""
    ways = {
        "social-migration": ("scratch", "migration", "logits", "latents", "shuffled"),
        "social-mutual": ("apart", "alternating", "cross"),
    }[name]
    given = {"threshold": 0.7, "untrained": 0.4, "alone": 0.7, "gain": 0.3, "majority": 0.3, "learned": 1.0}
    for way in ways:
        given |= {f"{way}_{key}": 1.0 for key in ("reached", "epochs", "ratio", "flops", "times", "all", "final")}
        given |= {f"{way}_before": 0.0, f"{way}_map": 0.001, f"{way}_directions": 5.0}
    results = []
    for trial, own in zip(EXPERIMENTS[name].trials("small", 0), seeds, strict=True):
        scale = 1 + apart * float(trial.at["seed"])
        found = given | numbers | own
        found["learned"] = float(found["gain"] > 0)
        for key in found:
            if not key.endswith(("reached", "learned")):
                found[key] *= scale
        curves = {way: [(0, 0.4), (300, 0.7)] for way in ways}
        verdicts = as_verdicts(point_estimates(found, 1), "")
        record = {"verdicts": verdicts, "curves": curves, "epoch": 20}
        results.append(Result(trial, Path(), "finished", record))
    return EXPERIMENTS[name].conclude(results, "small")


def relative_cost(way: str, value: float) -> dict[str, float]:
    return {f"{way}_times": value, f"{way}_flops": value, f"{way}_ratio": value}


@pytest.mark.parametrize(
    ("numbers", "outcome"),
    [
        (relative_cost("migration", 0.5), "holds"),
        (relative_cost("migration", 0.5) | relative_cost("logits", 0.4), "holds in part"),
        (
            relative_cost("migration", 0.5) | relative_cost("shuffled", 0.4),
            "does not hold",
        ),  # mismatched states help as much as the teacher
        (relative_cost("migration", 1.4), "does not hold"),
        (relative_cost("migration", 0.5) | {"migration_reached": 0.0}, "undecided"),  # its cost is a lower bound
        (relative_cost("migration", 1.4) | {"migration_reached": 0.0}, "does not hold"),
        (relative_cost("migration", 0.5) | {"migration_directions": 1.2}, "undecided"),
        (relative_cost("migration", 1.4) | relative_cost("shuffled", 1.4) | {"scratch_directions": 1.2}, "undecided"),
        (relative_cost("shuffled", 0.4) | {"migration_directions": 1.2}, "undecided"),
        (relative_cost("migration", 0.5) | {"shuffled_directions": 1.1}, "undecided"),  # the control collapsed
        (relative_cost("migration", 0.5) | {"logits_directions": 1.1}, "holds in part"),
        (relative_cost("shuffled", 0.4), "does not hold"),  # no cheaper than scratch, and dearer than the control
        (relative_cost("migration", 0.5) | {"gain": -0.1}, "undecided"),  # no gain, so no threshold to reach
    ],
)
def test_migration(numbers: dict[str, float], outcome: str):
    finding = concluded("social-migration", numbers)
    assert finding.outcome == outcome and len(finding.tables) == (2 if "gain" in numbers else 3)
    assert 0 < len(finding.short) <= 66
    assert [len(panel.series) for panel in finding.figures[0].panels] == [
        7,
        7,
    ]  # with the lines of the threshold and the majority class


def test_two_comparisons_need_wider_intervals():
    """As a single comparison, −.2 ± 3.18 s/2 with s = .11 excludes 0; as one of two, ± 4.18 s/2 includes it."""
    logs = -0.2 + 0.11 / np.std([-1.5, -0.5, 0.5, 1.5], ddof=1) * np.array([-1.5, -0.5, 0.5, 1.5])
    seeds = tuple(relative_cost("migration", float(value)) for value in np.exp(logs))
    alone = [found for found in concluded("social-migration", {}, seeds=seeds).verdicts if "times" in found.name]
    assert alone[0].passed and concluded("social-migration", {}, 0.0, seeds).outcome == "undecided"
    closer = tuple(relative_cost("migration", float(value)) for value in np.exp((logs + 0.2) * 0.8 - 0.2))
    assert concluded("social-migration", {}, 0.0, closer).outcome == "holds"


def test_prior_cost_includes_the_training_of_the_teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (trial,) = EXPERIMENTS["social-migration"].trials("tiny", 0)
    record = trial.run(trial.settings, str(tmp_path / "trial"))
    found = {one["name"]: one["value"] for one in record["verdicts"]}
    teacher = load_agent(tmp_path / "trial/teacher")
    training = cost_of(teacher.recipe).step * teacher.recipe.training.steps
    assert found["migration_before"] == prior_cost(teacher) > training > 0 and found["scratch_before"] == 0
    apart = (found["migration_all"] - found["migration_times"]) * found["scratch_flops"]
    assert apart == pytest.approx(prior_cost(teacher))


def test_disagreeing_controls_and_missed_thresholds_are_undecided():
    """Controls are cheaper at some seeds only, or one seed did not reach the threshold."""
    cheap, control = (
        relative_cost("migration", 0.5),
        [relative_cost("shuffled", value) for value in (0.3, 2.0, 1.5, 0.6)],
    )
    assert concluded("social-migration", cheap, seeds=tuple(control)).outcome == "undecided"
    late: Numbers = {"migration_reached": 0.0}
    assert concluded("social-migration", cheap, seeds=({}, late, {}, {})).outcome == "undecided"
    finding = concluded(
        "social-mutual",
        relative_cost("cross", 0.5) | relative_cost("alternating", 0.5),
        seeds=({"cross_reached": 0.0}, {}, {}, {}),
    )
    assert finding.outcome == "holds in part"


def test_verdicts_do_not_pass_if_latents_collapsed_or_the_threshold_was_missed():
    def passed(name: str, numbers: Numbers) -> dict[str, bool | None]:
        return {verdict.name: verdict.passed for verdict in concluded(name, numbers).verdicts}

    cheap = relative_cost("migration", 0.5) | relative_cost("cross", 0.5)
    assert passed("social-migration", cheap)["migration_times_rendered"] is True
    assert passed("social-migration", cheap | {"migration_directions": 1.2})["migration_times_rendered"] is None
    assert passed("social-migration", cheap | {"migration_reached": 0.0})["migration_times_rendered"] is False
    assert passed("social-mutual", cheap | {"cross_directions": 1.2})["cross_epochs_rendered"] is None


def test_a_majority_share_far_below_all_curves_is_noted_but_not_drawn():
    for share, drawn in ((0.3, 7), (0.1, 6)):
        (figure, *_) = concluded("social-migration", {"majority": share}).figures
        assert [len(panel.series) for panel in figure.panels] == [drawn, drawn]
        assert f"{share:.3f}" in figure.note


def test_collapsed_methods_are_excluded():
    quick = relative_cost("cross", 0.5) | relative_cost("alternating", 0.5)
    finding = concluded("social-mutual", quick, seeds=({}, {"cross_directions": 1.4}, {}, {}))
    assert finding.outcome == "holds in part"
    assert concluded("social-mutual", quick | {"apart_directions": 1.4}).outcome == "undecided"


def test_seeds_that_learned_nothing_are_excluded_from_mean_costs():
    """Regression test: table and sentence used different seeds for the mean cost."""
    dear = relative_cost("migration", 100.0) | {"migration_all": 300.0, "migration_before": 2.0}
    learned = [{"migration_all": value, "migration_epochs": value, "migration_before": 2.0} for value in (2.0, 8.0)]
    finding = concluded("social-migration", {}, apart=0.0, seeds=(*learned, *(2 * [dear | {"gain": 0.0}])))
    runs, costs, _ = finding.tables
    shown = [row for row in runs.rows if row[0] == "migration"]
    assert [row[8:11] for row in shown] == [
        ["yes", "2.0", "1.00"],
        ["yes", "8.0", "1.00"],
        *2 * [["–", "nothing learned", "–"]],
    ]
    row = next(row for row in costs.rows if row[0] == "migration")
    assert "2 of 4 seeds" in costs.title and row[1] == "2 of 2"
    assert row[2].startswith("4.0 [") and row[-1].startswith("4.00 [") and row[-2] == "1.00 [1.00, 1.00]"
    assert finding.outcome == "undecided"  # the interval of the mean gain includes 0


@pytest.mark.parametrize("name", ["social-migration", "social-mutual"])
def test_without_a_mean_gain_only_the_gain_is_judged(name: str):
    ways = relative_cost("migration", 0.5) | relative_cost("cross", 0.5) | relative_cost("alternating", 0.5)
    finding = concluded(name, ways, seeds=({"gain": 0.0}, {"gain": -0.1}, {"gain": -0.1}, {}))
    assert finding.outcome == "undecided" and [v.name for v in finding.verdicts if v.passed is not None] == [
        "gain_rendered"
    ]
    assert finding.verdicts[0].passed is False
    assert "×" not in finding.sentence and "epochs" not in finding.sentence


def test_equal_numbers_of_epochs_are_undecided():
    finding = concluded("social-mutual", {}, apart=0.0)
    passed = {verdict.name: verdict.passed for verdict in finding.verdicts if verdict.passed is not None}
    assert finding.outcome == "undecided"
    assert passed == {"gain_rendered": True, "alternating_epochs_rendered": False, "cross_epochs_rendered": False}


def test_seeds_that_disagree_are_undecided():
    assert concluded("social-migration", relative_cost("migration", 0.9), apart=0.3).outcome == "undecided"
    assert (
        concluded("social-mutual", relative_cost("cross", 0.9) | relative_cost("alternating", 0.9), apart=0.3).outcome
        == "undecided"
    )


@pytest.mark.parametrize(
    ("numbers", "outcome"),
    [
        (relative_cost("cross", 0.5) | relative_cost("alternating", 0.7), "holds"),
        (relative_cost("cross", 0.5), "holds in part"),
        (relative_cost("cross", 1.2) | relative_cost("alternating", 1.2), "does not hold"),
        ({"cross_reached": 0.0}, "undecided"),
        (relative_cost("cross", 1.2) | {"cross_reached": 0.0}, "does not hold"),
        (relative_cost("cross", 0.5) | {"gain": 0.0}, "undecided"),
    ],
)
def test_mutual_teaching(numbers: dict[str, float], outcome: str):
    finding = concluded("social-mutual", numbers)
    names = ["gain"] if "gain" in numbers else ["gain", "alternating_epochs", "cross_epochs"]
    names += ["alternating_over_apart", "cross_over_apart"]
    assert finding.outcome == outcome and [v.name for v in finding.verdicts] == [f"{name}_rendered" for name in names]
    assert 0 < len(finding.short) <= 66


def test_final_probe_accuracies_are_compared_even_without_a_gain():
    """The gain is negative at every seed; differences to scratch and to the control are still reported."""
    finals = [
        {"scratch_final": 0.40 + s, "migration_final": 0.52 + 1.1 * s, "shuffled_final": 0.51 + s, "gain": -0.1}
        for s in (0.0, 0.02, 0.04, 0.02)
    ]
    finding = concluded("social-migration", {}, apart=0.0, seeds=tuple(finals))
    by_name = {verdict.name: verdict for verdict in finding.verdicts}
    over = by_name["migration_over_scratch_rendered"]
    assert over.value == pytest.approx(0.122) and 0 < over.low < 0.122 < over.high and over.passed is None
    assert by_name["migration_over_shuffled_rendered"].value == pytest.approx(0.012)
    assert finding.outcome == "undecided"


def test_scenes_are_judged_separately_and_combined():
    """A decision in one scene counts where the other is undecided; a scene without a finished trial is left out."""

    def judge(runs: Sequence[Result]) -> Finding:
        outcomes: dict[str, Outcome] = {"rendered": "undecided", "driving": "holds"}
        scene = runs[0].at["scene"]
        verdict = Verdict.judge("gain", point_estimates({"": len(runs)}, 1)[""], direction="higher", good="")
        figure = Curves(title="Curves", panels=[CurvePanel([], "by epochs")])
        table = Table("Runs", (), ())
        sentence = f"{len(runs)} runs."
        return Finding(outcomes[scene], sentence, "in short", verdicts=(verdict,), figures=(figure,), tables=(table,))

    toys = EXPERIMENTS["social-mutual"].trials("small", 0)
    trials = [*toys, *(replace(trial, at={**trial.at, "scene": "driving"}) for trial in toys)]
    finished = [Result(trial, Path(), "finished", {}) for trial in trials]
    finding = decide_by_scene(finished, judge)
    assert finding.outcome == "holds in part" and finding.short == "driving: in short"
    assert [verdict.name for verdict in finding.verdicts] == ["gain_rendered", "gain_driving"]
    rendered, driving = "Rendered objects, cameras 160° apart", "Driving, left and right camera"
    assert finding.sentence == f"{rendered}: 4 runs. {driving}: 4 runs."
    assert [table.title for table in finding.tables] == [f"{rendered}. Runs", f"{driving}. Runs"]
    panels = [(figure.title, figure.panels[0].title) for figure in finding.figures]
    assert panels == [(f"{rendered}. Curves", "rendered: by epochs"), (f"{driving}. Curves", "driving: by epochs")]
    lost = [replace(one, status="crashed") if one.at["scene"] == "driving" else one for one in finished]
    assert (
        decide_by_scene(lost, judge).outcome == "undecided"
        and decide_by_scene(lost, judge).short == "rendered: in short"
    )


def test_failed_agents_are_listed_in_the_table():
    trial = EXPERIMENTS["social-mutual"].trials("small", 0)[0]
    numbers = measure_race({"apart": RUNNERS["scratch"]}, None, 5.0)
    record = {
        "verdicts": as_verdicts(numbers, ""),
        "ways": {"apart": "finished", "alternating": "finished", "cross": "failed"},
        "curves": {"apart": [(0, 0.1), (4, 0.2)]},
        "epoch": 5.0,
    }
    finding = EXPERIMENTS["social-mutual"].conclude([Result(trial, Path(), "finished", record)] * 2, "small")
    row = next(row for row in finding.tables[0].rows if row[0] == "loss across")
    assert row[2] == "failed" and row[3] == "–" and finding.outcome == "undecided"  # a failed run is no evidence
    assert np.isnan(finding.verdicts[2].value)
