"""Two agents that never show their data, as two processes with folders of their own and one between them."""

from __future__ import annotations

import hashlib
import json
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from training.small import ENV, call, forked_command, until

from jepatlas.alignment import Atlas, ChartLatents, load_atlas
from jepatlas.core.files import read_json
from jepatlas.workflows.vision import latents_of, load_agent

SMALL = [
    "--size",
    "8",
    "--encoder.patch",
    "4",
    "--encoder.depth",
    "1",
    "--encoder.heads",
    "2",
    "--objective",
    "lejepa",
    "--batch-size",
    "8",
    "--steps",
    "2",
    "--log-every",
    "2",
]


def table(folder: Path, toys: range, mirrored: bool) -> Path:
    """One member's own images: toys in three positions, from its side only."""
    folder.mkdir(parents=True)
    lines = ["path,state,view,label,group"]
    for toy in toys:
        colour = np.random.default_rng(toy).integers(80, 255, 3)
        for turn in range(3):
            image = np.zeros((8, 8, 3), np.uint8)
            image[1 + 2 * turn : 4 + 2 * turn, 1 : 3 if toy % 2 else 6] = colour
            Image.fromarray(np.ascontiguousarray(image[:, ::-1] if mirrored else image)).save(
                folder / f"{toy}-{turn}.png"
            )
            lines.append(f"{toy}-{turn}.png,scene-{toy}-{turn},own,label-{toy % 2},toy{toy}")
    (folder / "views.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Ada and Ben, each trained on its own view in its own folder; ten of their toys are the same."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, toys, width in (("ada", range(12), "8"), ("ben", range(2, 14), "12")):
        images = table(tmp_path / name / "images", toys, mirrored=name == "ben")
        words = ["--view", "own", "--encoder.width", width, *SMALL, "--out", tmp_path / name / "run"]
        assert call("train", "vision", images, *words) == 0
    return {name: tmp_path / name / "run" for name in ("ada", "ben")}


def test_two_members_agree_after_one_was_killed_and_restarted(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meet, env = tmp_path / "meet", ENV | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    lines = {
        name: [
            "federate",
            run,
            "--exchange",
            meet,
            "--name",
            name,
            "--part",
            "all",
            "--controls",
            "--timeout",
            "120",
            "--out",
            tmp_path / name / "out",
            "--json",
            tmp_path / name / "answer.json",
        ]
        for name, run in runs.items()
    }
    killed = forked_command(*lines["ben"], env=env)
    until((meet / "1-states" / "ben" / "exchange.json").exists)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    ben = forked_command(*lines["ben"], env=env)
    assert call(*lines["ada"]) == 0  # this process is the other
    out, err = ben.communicate(timeout=240)
    assert ben.returncode == 0, err
    for said in (out, capsys.readouterr().out):
        assert "ada and ben share 30 states." in said and "No images, labels, gradients or weights" in said
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "out" / "atlas").rglob("*.*")} for name in runs
    )
    assert first == second
    _is_what_one_who_sees_all_would_build(load_atlas(tmp_path / "ada" / "out" / "atlas"), runs)
    _is_listed(meet, tmp_path)


def _is_what_one_who_sees_all_would_build(atlas: Atlas, runs: dict[str, Path]) -> None:
    told = {name: latents_of(load_agent(run), "all") for name, run in runs.items()}
    shared = np.intersect1d(told["ada"]["ids"], told["ben"]["ids"])
    rows = {name: [one["ids"].tolist().index(state) for state in shared] for name, one in told.items()}
    whole = Atlas.build([ChartLatents(name, one["h"][rows[name]], shared) for name, one in told.items()])
    ada = told["ada"]["h"][rows["ada"]]
    np.testing.assert_allclose(atlas.translate(ada, "ada", "ben"), whole.translate(ada, "ada", "ben"), atol=1e-3)


def _is_listed(meet: Path, tmp_path: Path) -> None:
    """All that lies in the exchange, and what is not among it."""
    lying = {str(path.relative_to(meet)): path.read_bytes() for path in meet.rglob("*") if path.is_file()}
    record = read_json(tmp_path / "ada" / "out" / "records" / "federation.json")
    page = (tmp_path / "ada" / "out" / "report.html").read_text()
    worth, sent, received, stayed = record["tables"]
    listed = {row[1]: (row[4], row[5]) for table in (sent, received) for row in table["rows"][:-1]}
    assert listed == {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in lying.items()}
    assert all(sha in page for _, sha in listed.values())
    everything = b"".join(lying.values())
    assert not any(word in everything for word in (b"scene-", b"toy", b"label-", b".png"))
    assert ["images", "36 of 6,912 bytes"] in stayed["rows"]
    assert [row[0] for row in worth["rows"]] == ["ada → ben", "ben → ada"] and "not sent" not in str(worth["rows"])
    assert {"beyond_pca.ada.ben", "beyond_untrained.ben.ada"} <= {one["name"] for one in record["verdicts"]}
    assert worth["columns"][4:] == ["PCA of the raw input", "the same networks, untrained"]
    what = {row[1].rsplit("/", 1)[1]: row[2] for row in sent["rows"][:-1]}
    assert "untrained" in what["untrained.safetensors"]
    assert "random.safetensors" not in what, "all have their own before training"


def test_files_of_latents_suffice_and_missing_partners_time_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "ada.npz", h=rng.standard_normal((9, 2)), ids=np.arange(9))
    words = [
        "federate",
        tmp_path / "ada.npz",
        "--exchange",
        tmp_path / "meet",
        "--name",
        "ada",
        "--timeout",
        "0.2",
        "--out",
        tmp_path / "out",
    ]
    assert call(*words) == 1
    assert "after 0.2 s, only ada of 2 members have come" in capsys.readouterr().err
    assert call(*words[:-2], "--out", tmp_path / "meet") == 2
    assert "is the exchange folder" in capsys.readouterr().err
    assert json.loads((tmp_path / "meet" / "1-states" / "ada" / "exchange.json").read_text())["member"] == "ada"


def test_help_states_what_partners_can_learn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("federate", "--help") == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "only members can test whether a guessed id" in said
    assert "without it, everyone with access" in said
    assert "announces guessed ids receives the latents" in said
    assert "latents may reveal the inputs" in said
    assert "can recreate the untrained network and search for inputs" in said  # of --controls
