"""The tour in miniature: the same chapters, agents and report, a few steps each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from jepatlas.alignment import load_atlas
from jepatlas.alignment.paired import PairedLatents
from jepatlas.cli import tour
from jepatlas.core.linear import hold_out
from jepatlas.core.linear_map import LinearMap
from jepatlas.reporting import read_chapters
from jepatlas.tour import CHAPTERS, Stage, agents_chapter, energy_chapter
from jepatlas.tour.probe_chapter import PROBE
from jepatlas.tour.stage import SharedStates
from jepatlas.workflows.energy import energy_for, load_energy_file


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer steps; everything else is the tour's own."""
    full = agents_chapter.recipes

    def few(seed: int):
        return {k: replace(r, training=replace(r.training, steps=30)) for k, r in full(seed).items()}

    monkeypatch.setattr(agents_chapter, "recipes", few)
    heads = energy_chapter.recipes

    def brief(*given):
        return {k: replace(r, training=replace(r.training, steps=20)) for k, r in heads(*given).items()}

    monkeypatch.setattr(energy_chapter, "recipes", brief)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_the_tour_plays_every_chapter_and_draws_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = tour.main(["--out", str(tmp_path), "--json", "-"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 0  # thirty steps cannot pass, but that is a result
    assert len(answer["chapters"]) == len(CHAPTERS)
    verdicts = {v["name"]: v for chapter in answer["chapters"] for v in chapter["verdicts"]}
    assert {"ada.r2", "ben.r2", "map.orthogonality", "probe_loss", "probe_price"} <= verdicts.keys()
    probe = next(chapter for chapter in answer["chapters"] if chapter["title"] == "A probe changes agents")
    assert "any linear probe" not in probe["summary"]  # one was trained
    assert verdicts["ada.r2"]["passed"] is False
    assert verdicts["l2.one_way_auc"]["value"] == pytest.approx(0.5, abs=1e-9)  # symmetric, however well trained
    assert verdicts["iqe.triangle"]["passed"] and verdicts["ben.triangle"]["passed"]  # however badly
    assert Path(answer["report"]).stat().st_size > 1_000_000
    assert [chapter.source for chapter in read_chapters(tmp_path)] == [
        f"records/{i:02d}-{chapter.name}.json" for i, chapter in enumerate(CHAPTERS, start=1)
    ]
    page = Path(answer["report"]).read_text()
    assert all(text in page for text in ("# ada", "# ben", "kind: ornstein-uhlenbeck", "kind: lejepa"))
    one_way = energy_for(load_atlas(tmp_path / "atlas"), "ben", "one-way", "ada")
    there = load_energy_file(tmp_path / "energies" / "ben.safetensors")
    x, y = torch.randn(2, 5, 2)
    assert one_way.dim == there.dim == 2 and there.model()(x, y).shape == (5,)
    assert LinearMap.load(tmp_path / "maps" / "ada-ben.safetensors").weight.shape == (2, 2)


def test_the_agents_share_the_law_and_nothing_else() -> None:
    ada, ben = agents_chapter.recipes(seed=3).values()
    assert ada.world.law == ben.world.law
    assert ada.world.mixing != ben.world.mixing
    assert ada.seed != ben.seed
    other = agents_chapter.recipes(seed=4)
    assert not {ada.seed, ben.seed} & {recipe.seed for recipe in other.values()}


@pytest.mark.usefixtures("short")
def test_a_stage_knows_where_its_agents_live(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 0, 1, Console())
    assert stage.agent("ada") == tmp_path / "agents" / "ada"


def test_the_probe_and_the_map_have_different_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two agents that have nothing in common: from the same states, labels would pass from one to the other."""
    rng = np.random.default_rng(0)
    z, ada, ben = (rng.standard_normal((1200, width)) for width in (2, 60, 50))
    ben[:, :2] = z
    shared = SharedStates(z, PairedLatents.of(ada, ben), hold_out(1200, rng))
    monkeypatch.setattr("jepatlas.tour.probe_chapter.shared_states", lambda _: shared)
    monkeypatch.setattr("jepatlas.tour.probe_chapter.sector", lambda z: (z[:, 0] > 0).astype(int))
    record = PROBE.play(Stage(tmp_path, 0, 1, Console(quiet=True)))
    assert (record.provenance["of the probe"], record.provenance["of the map"]) == (300, 300)
    migrated = next(one for one in record.verdicts if one.name == "probe_migrated")
    assert abs(migrated.value - 0.5) < 0.1
