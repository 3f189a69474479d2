"""Decision rules of the claims on pairs of agents: outcomes from given measures."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jepatlas.core.records import Estimate
from jepatlas.core.stats import mean_interval
from jepatlas.experiments import Finding, Result, Trial
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.experiments.engine.seed_tables import (
    geometric_mean_and_interval,
    mean_and_interval,
    mean_and_interval_with_groups,
)
from jepatlas.experiments.social import mismatched_pairs, paradigms, shift, structure, views
from jepatlas.experiments.social.agent_pairs import NAMES
from jepatlas.experiments.social.decisions import decide, simultaneous
from jepatlas.experiments.social.shift_measures import r2_per_doubling
from jepatlas.experiments.social.trained_agents import run_agent

USUAL = {"scene": "rendered", "objective": "ijepa", "shuffle": "none", "width": 96, "to": 96}
SCORES = {"r2_raw": 0.8, "dsc": 0.8, "nos_10": 0.3, "r2_rotation": 0.79, "p_r2": 0.05, "directions": 9.0} | {
    f"{key}_{name}": 0.5 for name in NAMES if name != "agents" for key in ("r2", "r2_raw")
}
BEYOND = ("beyond", "beyond_raw")


def pairs(numbers: Callable[[dict], Mapping[str, float]], *places: Mapping[str, str | int]) -> list[Result]:
    """Three slightly different seeds of each kind of pair. Measures without an inverse default to those with one."""
    made = []
    for place in places:
        for seed in range(3):
            at: dict[str, str | int | float] = {**USUAL, **place, "seed": seed}
            given = numbers(at)
            there = {f"{key}_there": given[key] for key in ("dsc", "nos_10", "beyond_nos_10") if key in given}
            found = {name: Estimate(v + 1e-3 * seed, v, v, 9) for name, v in (there | dict(given)).items()}
            made.append(Result(Trial(at, run_agent, {}), Path(), "finished", {"verdicts": as_verdicts(found, "")}))
    return made


@pytest.mark.parametrize(
    ("beyond", "changed", "outcome"),
    [
        ((0.2, 0.2), {}, "holds"),
        ((0.2, 0.2), {"r2_rotation": 0.4}, "holds in part"),  # linear, but not an isometry
        ((0.2, -0.1), {}, "holds in part"),  # one of two scenes
        ((-0.1, -0.1), {}, "does not hold"),  # pixels align better
        ((0.2, 0.2), {"beyond_raw": -0.1}, "does not hold"),  # with raw instead of standardised latents
        ((0.2, 0.2), {"beyond_raw": 0.0}, "undecided"),  # no evidence for or against
        ((0.2, 0.2), {"p_r2": 0.3}, "undecided"),  # not better than chance
        ((0.2, 0.2), {"directions": 1.1}, "undecided"),  # collapsed latents are excluded
    ],
)
def test_views(beyond: tuple[float, float], changed: dict[str, float], outcome: str):
    gains = dict(zip(("rendered", "driving"), beyond, strict=True))
    made = pairs(
        lambda at: SCORES | {"r2": 0.8, "p_r2": 0.04} | dict.fromkeys(BEYOND, gains[at["scene"]]) | changed,
        *({"scene": scene} for scene in gains),
    )
    finding = views.judge(made)
    assert finding.outcome == outcome and 0 < len(finding.short) <= 66


def test_one_seed_is_undecided():
    made = pairs(lambda at: SCORES | {"r2": 0.8} | dict.fromkeys(BEYOND, 0.2), {})[:1]
    assert views.judge(made).outcome == "undecided"
    assert not views.judge(made).verdicts[0].passed


def test_intervals_widen_with_the_number_of_comparisons():
    """A difference that is significant as a single comparison, but not as one of three."""
    seeds, others = np.array([0.028, 0.037, 0.046]), np.array([-0.1, 0.0, 0.1])
    alone, among = mean_interval(seeds), simultaneous({"r2": seeds, "dsc": others, "nos_10": others})["r2"]
    assert decide([alone]) == "holds" and decide([among]) == "undecided" and among.value == alone.value
    quantile = {1: 4.3027, 3: 7.6488}  # Student's with 2 degrees of freedom, at .975 and at 1 − .025/3
    for count, found in ((1, alone), (3, among)):
        assert found.high - found.value == pytest.approx(quantile[count] * 0.009 / np.sqrt(3), rel=1e-4)
    made = pairs(lambda at: {"r2": 0.5}, {})
    for wider in (mean_and_interval, geometric_mean_and_interval, mean_and_interval_with_groups):
        assert wider(made, "r2", among=3).low < wider(made, "r2").low < 0.501 < wider(made, "r2", among=3).high


def test_agreement_of_seeds_does_not_hide_the_interval_over_objects():
    """Three seeds agree within .002, but the interval over objects is −.1 to .3."""
    made = pairs(lambda at: SCORES | {"r2": 0.8, "p_r2": 0.01} | dict.fromkeys(BEYOND, 0.1), {})
    assert views.judge(made).outcome == "holds"
    for one in made:
        for verdict in one.record["verdicts"]:
            if verdict["name"] in BEYOND:
                verdict |= {"low": -0.1, "high": 0.3}
    found = mean_and_interval_with_groups(made, "beyond")
    assert found.low == pytest.approx(0.101 - np.hypot(0.201, 0.0025), abs=1e-3)
    assert views.judge(made).outcome == "undecided"


def paradigm_pairs(mae: float, simclr: float, flat: tuple[str, ...] = ()) -> list[Result]:
    """Results in which the latents of the objectives in `flat` collapsed at seed 0."""
    scores = {"ijepa": 0.8, "mae": mae, "simclr": simclr}

    def numbers(at: dict) -> dict[str, float]:
        lost = at["objective"] in flat and at["seed"] == 0
        return SCORES | {
            "r2": scores[at["objective"]],
            "beyond": 0.1,
            "beyond_raw": 0.1,
            "flops": 1e12,
            "cka": 0.5,
            "directions": 1.7 if lost else 9.0,
        }

    return pairs(numbers, *({"objective": name} for name in scores))


@pytest.mark.parametrize(
    ("mae", "simclr", "flat", "outcome"),
    [
        (0.6, 0.5, (), "holds"),
        (0.8, 0.5, (), "holds in part"),
        (0.95, 0.5, (), "does not hold"),
        (0.8, 0.8, (), "undecided"),
        (0.6, 0.5, ("ijepa",), "undecided"),  # collapsed latents are excluded
        (0.95, 0.5, ("ijepa",), "undecided"),  # collapsed latents do not refute the claim
        (0.95, 0.5, ("mae",), "holds in part"),  # the objective above I-JEPA collapsed
        (0.6, 0.5, ("mae",), "holds in part"),  # only simclr remains for comparison
        (0.6, 0.5, ("mae", "simclr"), "undecided"),
    ],
)
def test_paradigms(mae: float, simclr: float, flat: tuple[str, ...], outcome: str):
    finding = paradigms.judge(paradigm_pairs(mae, simclr, flat))
    assert finding.outcome == outcome and 0 < len(finding.short) <= 66
    table = finding.tables[0]
    assert table.rows[1][-2:] == ["0.882 0.845 0.31", "0.409 0.45 0.028"], "published values follow the measured ones"
    assert table.rows[1][1] == f"{mae + 1e-3:.3f} ± 0.001", "mean ± standard deviation"


def test_collapsed_objectives_are_excluded_and_marked():
    finding = paradigms.judge(paradigm_pairs(0.9, 0.5, ("ijepa", "mae")))
    assert finding.sentence.endswith("Excluded because latents collapsed: ijepa, mae.")
    assert "best control: simclr." in finding.sentence
    assert [row[0] for row in finding.tables[0].rows] == [
        "ijepa (collapsed at seed 0)",
        "mae (collapsed at seed 0)",
        "simclr",
    ]
    assert finding.figures[0].names == ["ijepa*", "mae*", "simclr"]
    assert [verdict.passed for verdict in finding.verdicts] == [None, None]
    assert [verdict.threshold for verdict in finding.verdicts] == [None, None]


def test_collapsed_pairs_are_listed():
    made = pairs(lambda at: SCORES | {"r2": 0.8, "directions": 1.2, "flops": 1.0}, {}, {"objective": "mae"})
    assert len(paradigms.judge(made).tables[1].rows) == 6


def structure_pairs(r2: float, nos: float, flat: tuple[str, ...]) -> list[Result]:
    """Results in which the latents of the shuffles in `flat` collapsed at seed 1."""

    def numbers(at: dict) -> dict[str, float]:
        broken, lost = at["shuffle"] != "none", at["shuffle"] in flat and at["seed"] == 1
        return SCORES | {
            "r2": r2 if broken else 0.8,
            "dsc": r2 if broken else 0.8,
            "nos_10": nos if broken else 0.3,
            "beyond": 0.0,
            "beyond_raw": 0.0,
            "directions": 1.7 if lost else 9.0,
        }

    return pairs(numbers, *({"shuffle": name} for name in ("none", "patches", "pixels")))


@pytest.mark.parametrize(
    ("r2", "nos", "flat", "outcome"),
    [
        (0.3, 0.8, (), "holds"),
        (0.85, 0.8, (), "holds in part"),
        (0.85, 0.1, (), "does not hold"),
        (0.3, 0.8, ("patches",), "holds in part"),  # one of two shuffles remains
        (0.85, 0.1, ("patches",), "does not hold"),
        (0.3, 0.8, ("patches", "pixels"), "undecided"),  # no evidence for the claim
        (0.85, 0.1, ("patches", "pixels"), "undecided"),  # no evidence against the claim
        (0.3, 0.8, ("none",), "undecided"),  # no baseline
    ],
)
def test_structure(r2: float, nos: float, flat: tuple[str, ...], outcome: str):
    finding = structure.judge(structure_pairs(r2, nos, flat))
    assert finding.outcome == outcome and 0 < len(finding.short) <= 66
    losses = {verdict.name: verdict.value for verdict in finding.verdicts}
    assert losses["r2_lost_pixels"] == pytest.approx(0.8 - r2)


def test_collapsed_shuffles_are_excluded():
    finding = structure.judge(structure_pairs(0.3, 0.8, ("patches",)))
    assert finding.sentence.endswith("Excluded because latents collapsed: patches shuffled (seed 1).")
    assert [verdict.passed for verdict in finding.verdicts] == [None] * 3 + [True] * 3
    assert finding.tables[0].rows[1][0] == "patches shuffled (collapsed at seed 1)"
    assert finding.figures[0].names == ["unshuffled", "patches shuffled*", "pixels shuffled"]
    assert "Excluded" not in structure.judge(structure_pairs(0.3, 0.8, ())).sentence


@pytest.mark.parametrize(
    ("gained", "lost", "growth", "flat", "outcome"),
    [
        (0.3, 0.2, 80.0, (), "holds"),
        (0.3, 0.2, 1.1, (), "holds in part"),
        (-0.1, -0.1, 1.1, (), "does not hold"),
        (0.3, 0.2, 80.0, ("driving",), "holds in part"),  # a collapsed scene is not counted
        (0.3, 0.2, 80.0, ("rendered", "driving"), "undecided"),
        (-0.1, -0.1, 1.1, ("rendered", "driving"), "undecided"),
    ],
)
def test_pairs(gained: float, lost: float, growth: float, flat: tuple[str, ...], outcome: str):
    given = {"gained": gained, "lost": lost, "growth": growth, "r2_ridge_50": 0.1, "r2_ridge_900": 0.8}
    made = pairs(
        lambda at: given | {"directions": 1.5 if at["scene"] in flat and at["seed"] else 9.0},
        {"scene": "rendered"},
        {"scene": "driving"},
    )
    finding = mismatched_pairs.judge(made)
    assert finding.outcome == outcome and 0 < len(finding.short) <= 66
    assert [row[1] for row in finding.tables[0].rows] == ["50", "900"] * 2
    assert ("driving, left and right camera (seeds 1, 2)" in finding.sentence) == ("driving" in flat)
    assert finding.tables[0].columns[-1] == finding.tables[1].columns[-1] == "directions"


@pytest.mark.parametrize(
    ("price", "other", "flat", "outcome"),
    [
        (0.04, 0.6, (), "holds"),
        (0.3, 0.6, (), "holds in part"),
        (0.3, 0.9, (), "does not hold"),
        (0.1, 0.8, (), "undecided"),  # the price is close to its limit
        (0.04, 0.6, ("scene",), "holds in part"),  # collapsed latents are excluded
        (0.04, 0.6, ("widths",), "holds in part"),
        (0.3, 0.9, ("scene", "widths"), "undecided"),
    ],
)
def test_shift(price: float, other: float, flat: tuple[str, ...], outcome: str):
    few = {name: 1.7 if name in flat else 9.0 for name in ("scene", "widths")}
    moved = pairs(
        lambda at: {
            "inside": 0.8,
            "own": 0.8,
            "outside": 0.8 - price,
            "price": price,
            "pairs": 9.0,
            "directions": few["scene"],
        },
        {},
    )
    wide = pairs(
        lambda at: {"r2": 0.8 if at["width"] == at["to"] else other, "directions": few["widths"]},
        *({"width": one, "to": two} for one in (48, 96) for two in (48, 96)),
    )
    finding = shift.judge(moved, wide, 96)
    assert finding.outcome == outcome and 0 < len(finding.short) <= 66
    assert finding.figures[1].matrix[0][1] == pytest.approx(other + 1e-3)
    assert np.isfinite(finding.figures[0].series[1].y).all()
    verdict = next(verdict for verdict in finding.verdicts if verdict.name == "price_rendered")
    assert verdict.passed is (None if "scene" in flat else price < 0.1)
    assert ("apart (seeds 0, 1, 2)" in finding.sentence, "widths (seeds" in finding.sentence) == tuple(
        name in flat for name in few
    )
    assert [finding.tables[0].rows[0][-1], finding.tables[1].rows[0][-1][:3]] == [str(few[name]) for name in few]


def test_r2_per_doubling_is_the_slope_over_doublings_of_the_width():
    falls = {0: 0.9, 1: 0.8, 2: 0.7}  # R² by doublings of the width
    wide = pairs(
        lambda at: {"r2": falls[abs(int(np.log2(at["to"] / at["width"])))]},
        *({"width": one, "to": two} for one in (24, 48, 96) for two in (24, 48, 96)),
    )
    assert r2_per_doubling(wide).value == pytest.approx(0.1) and r2_per_doubling(wide).low > 0
    assert r2_per_doubling(pairs(lambda at: {"r2": 0.9}, {})).n == 0


def test_missing_scenes_and_shuffles_limit_the_outcome_to_in_part():
    """Places without finished pairs do not test the claim."""
    made = pairs(
        lambda at: SCORES | {"r2": 0.8, "p_r2": 0.01} | dict.fromkeys(BEYOND, 0.2),
        *({"scene": scene} for scene in ("rendered", "driving")),
    )
    assert views.judge(made).outcome == "holds"
    assert views.judge(lost(made, scene="driving")).outcome == "holds in part"
    level = {"none": 0.9, "patches": 0.5, "pixels": 0.4}
    made = pairs(
        lambda at: (
            SCORES
            | {
                "r2": level[at["shuffle"]],
                "dsc": level[at["shuffle"]],
                "nos_10": 1 - level[at["shuffle"]],
                "beyond": 0.1,
                "beyond_raw": 0.1,
            }
        ),
        *({"shuffle": name} for name in level),
    )
    assert structure.judge(made).outcome == "holds"
    finding = structure.judge(lost(made, shuffle="pixels"))
    assert finding.outcome == "holds in part" and "3 excluded" in finding.short


def lost(made: list[Result], **place: str) -> list[Result]:
    """The pairs, with those at `place` crashed."""
    return [
        replace(one, status="crashed", record={}) if all(one.at[key] == value for key, value in place.items()) else one
        for one in made
    ]


def test_neighbours_must_get_worse_with_and_without_the_inverse():
    """A loss only in scores that use the inverse of the map may be caused by the inverse."""
    level = {"none": 0.9, "patches": 0.5, "pixels": 0.4}

    def finding_with_forward_score(there: Mapping[str, float]) -> Finding:
        return structure.judge(
            pairs(
                lambda at: (
                    SCORES
                    | {
                        "r2": 0.8,
                        "dsc": 0.8,
                        "nos_10": 1 - level[at["shuffle"]],
                        "beyond": 0.1,
                        "nos_10_there": 1 - there[at["shuffle"]],
                        "beyond_raw": 0.1,
                    }
                ),
                *({"shuffle": name} for name in level),
            )
        )

    assert finding_with_forward_score(level).outcome == "holds in part"
    assert finding_with_forward_score(dict.fromkeys(level, 0.9)).outcome == "undecided"
    assert finding_with_forward_score({"none": 0.4, "patches": 0.5, "pixels": 0.9}).outcome == "undecided"
