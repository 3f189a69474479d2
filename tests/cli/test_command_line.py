"""The command line: help, exit codes, bad input, and what goes where."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from training.small import ENV, WORDS, call, command

import jepatlas as ja
from jepatlas import __version__
from jepatlas.cli import VERBS
from jepatlas.cli.certify import Certify
from jepatlas.core.figures import Curves
from jepatlas.core.files import finite
from jepatlas.core.records import Verdict
from jepatlas.core.verdict_names import plain_name
from jepatlas.training import SweepResult
from jepatlas.workflows.sweep_results import sweep_record

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], env=ENV, capture_output=True, text=True, check=False)


def test_help_imports_no_heavy_modules():
    """So it comes at once."""
    code = (
        "import sys; from jepatlas.cli import main; assert main(['--help']) == 0; print(*sys.modules, file=sys.stderr)"
    )
    done = python(code)
    assert done.returncode == 0
    assert all(verb in done.stdout for verb in VERBS)
    assert not {"torch", "numpy", "scipy", "tyro", "rich", "yaml", "sklearn"} & set(done.stderr.split())


@pytest.mark.parametrize("words", [(), ("-h",), ("help",)])
def test_help_can_be_requested_in_several_ways(words: tuple[str, ...], capsys: Captured):
    assert call(*words) == 0
    assert "usage: jepatlas VERB" in capsys.readouterr().out


def test_the_version(capsys: Captured):
    assert call("--version") == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_has_help_with_an_example(verb: str, capsys: Captured):
    assert call(verb, "--help") == 0
    out, err = capsys.readouterr()
    assert f"Example: jepatlas {verb} " in out
    options = {"completion": ("--json",), "export": ("--out", "--json")}.get(verb, ("--seed", "--out", "--json"))
    assert all(option in out for option in options)
    assert err == ""


def test_the_examples_of_the_help_are_valid(capsys: Captured):
    """Each is parsed as it stands; those that could run at once are only asked for help."""
    for verb in VERBS:
        assert call(verb, "--help") == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Example: jepatlas ")]
        assert all(call(*line.removeprefix("Example: jepatlas ").split(), "--help") == 0 for line in lines)
        capsys.readouterr()


@pytest.mark.parametrize("width", ["60", "90"])
def test_paragraphs_of_the_help_fill_the_terminal(width: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", width)
    assert call("certify", "--help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= int(width) for line in lines if not line.startswith("Example: "))
    words = " ".join(" ".join(lines).split())
    about = inspect.getdoc(Certify)
    assert about is not None and " ".join(about.split()) in words
    assert "Half of them fit maps, half score them." in words


def test_completion_lists_the_commands_and_their_options(capsys: Captured, elsewhere: Path):
    assert call("completion", "bash") == 0
    (elsewhere / "completion.sh").write_text(capsys.readouterr().out)

    def completed(*words: str) -> set[str]:
        given = " ".join(f"'{word}'" for word in words)
        code = f"source completion.sh; COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _jepatlas; "
        done = subprocess.run(
            ["bash", "-c", code + 'printf "%s\n" "${COMPREPLY[@]}"'],
            cwd=elsewhere,
            capture_output=True,
            text=True,
            check=True,
        )
        return set(done.stdout.split())

    assert completed("jepatlas", "") == set(VERBS)
    assert completed("jepatlas", "migrate", "p") == {"probe", "planner"}
    assert completed("jepatlas", "train", "world-model", "--ste") == {"--steps"}
    assert completed("jepatlas", "certify", "--q") == {"--quick"}
    assert completed("jepatlas", "certify", "comp") == {"completion.sh"}
    for shell in ("zsh", "fish"):
        assert call("completion", shell) == 0
        assert "world-model" in capsys.readouterr().out


def test_the_literature_name_of_an_option(capsys: Captured):
    small = [*WORDS, "--steps", "1"]
    assert call("train", *small, "--objective.lambda", "0.02", "--out", "named") == 0
    assert call("train", *small, "--objective.weight", "0.02", "--out", "plain") == 0
    assert Path("named/recipe.yaml").read_text() == Path("plain/recipe.yaml").read_text()


def test_the_help_of_a_choice_shows_its_options(capsys: Captured):
    assert call("train", "--mixing", "lift", "--objective", "vicreg", "--help") == 0
    out = capsys.readouterr().out
    assert "--mixing.observed" in out
    assert "--objective.invariance" in out
    assert "--objective.weight FLOAT" not in out


BAD = [
    (["tran"], "Did you mean 'train'?"),
    (["--josn", "-"], "there is no such verb"),
    (["train", "--stesp", "5"], "--steps"),
    (["train", "--encoder.wdth", "5"], "--encoder.width"),
    (["train", "--steps", "five"], "--steps"),
    (["train", "--steps", "0"], "steps"),
    (["train", "--lr=-1"], "lr "),
    (["train", "--mixing", "spirl"], "--mixing: there is no kind 'spirl'. Did you mean 'spiral'?"),
    (["train", "--mixing=spirl"], "Did you mean 'spiral'?"),
    (["train", "--mixing"], "'--mixing'"),
    (["train", "--objective", "lejepa", "--objective.invariance", "3"], "--objective"),
    (["train", "--recipe", "missing.yaml"], "There is no recipe file missing.yaml"),
    (["train", "--resume", "nowhere"], "nowhere is not a run folder"),
    (["train", "--resume", "nowhere", "--seed", "1"], "leave out --seed."),
    (["train", "--resume", "nowhere", "--out", "here"], "leave out --out."),
    (["train", "--resume", "nowhere", "--steps", "4000"], "leave out --steps."),  # the default
    (["train", "--resume=nowhere", "--mixing=spiral", "--track"], "leave out --mixing, --track."),
    (["train", "--resume", "no where", "--lr=1e-2"], "jepatlas train --recipe 'no where/"),
    (["train", "--resume", "nowhere", "--full"], "leave out --full."),
    (["train", "vision", "nowhere"], "jepatlas train vision: "),
    (["migrate", "probe", "--probe", "nowhere"], "jepatlas migrate probe: "),
    (["train", "--device", "cuda:99"], "device 'cuda:99'"),
    (["train", "--device", "meta"], "device 'meta'"),
    (["train", "--objective.weight", "nan"], "nan"),
    (["train", "--objective.sigreg.limit", "nan"], "nan"),
    (["train", "--objective", "infonce", "--objective.width", "nan"], "nan"),
    (["train", "--objective", "vicreg", "--objective.covariance", "nan"], "nan"),
    (["train", "--schedule.first", "nan"], "nan"),
    (["train", "--schedule", "cosine", "--schedule.floor", "nan"], "nan"),
    (["train", "--law.dim", "3"], "'spiral'"),
    (["train", "--latent-dim", "-1"], "latent_dim"),
    (["train", "--objective", "whitening", "--latent-dim", "8", "--batch-size", "4"], "4"),
    (["train", "--objective.weight", "2"], "weight"),
    (["certify"], "PATH"),
    (["certify", "nowhere"], "There is no run folder and no file nowhere"),
    (["certify", "."], ". is not a run folder: it has no recipe.yaml. Train one with"),
    (["certify", ".", "--rho", "0.9"], "rho is 0.9, but"),
    (["certify", "nowhere", "--sampels", "5"], "--samples"),
    (["align", "nowhere.npy"], "Missing from jepatlas align: PATH The target"),
    (["align", "nowhere.npy", "nowhere.npy"], "There is no file nowhere.npy"),
    (["align", "nowhere.npy", "nowhere.npy", "--ids", "nowhere.npy"], "--ids takes two files, of A and of B, but 1"),
    (["align", "nowhere.npy", "nowhere.npy", "--raw-b", "nowhere.npy"], "give --raw-a and --raw-b"),
    (["align", "nowhere.npy", "nowhere.npy", "--map", "rigde"], "--map"),
    (["atlas", "biuld"], "there is no command 'biuld'. Did you mean 'build'?"),
    (["atlas", "build"], "at least 2 files of latents, but 0 was given"),
    (["atlas", "build", "nowhere.npy"], "at least 2 files of latents, but 1 was given"),
    (["atlas", "add", "nowhere"], "name a file of latents to add, or probes or energies with"),
    (["atlas", "add", "nowhere", "ada.npy"], "There is no folder nowhere"),
    (["atlas", "show", "nowhere"], "There is no folder nowhere"),
    (["atlas", "show", "."], "There is no file atlas.json"),
    (["atlas", "translate", "nowhere", "ada", "ben", "nowhere.npy"], "There is no folder nowhere"),
    (["migrate", "prob"], "there is no command 'prob'. Did you mean 'probe'?"),
    (["migrate", "probe"], "give paired latents of two models, or a saved --probe and a saved --map"),
    (["migrate", "probe", "nowhere.npy"], "the latents of both models, A and B, but 1 file was given"),
    (["migrate", "probe", "--probe", "nowhere", "--map", "nowhere"], "nowhere is not a saved LinearProbe"),
    (["report"], "name at least one run folder"),
    (["report", "nowhere"], "nowhere"),
    (["sweep", "--vary", "seed"], "expected NAME=VALUE,VALUE"),
    (["sweep", "--vary", "seed=0,0"], "--vary seed=0,0"),
    (["sweep", "--vary", "seed=0,1", "--vary", "seed=2"], "seed=0,1 seed=2"),
    (["sweep", "--vary", "mixing=spiral,spirl"], "Did you mean 'spiral'?"),
    (["sweep", "--vary", "sede=1"], "--seed"),
    (["sweep", "--workers", "0"], "workers"),
    (["doctor", "--sed", "1"], "--seed"),
    (["tour", "--wrokers", "1"], "--workers"),
]


@pytest.mark.parametrize(
    ("words", "message"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_invalid_input_gives_one_message_and_writes_nothing(
    words: list[str], message: str, capsys: Captured, elsewhere: Path
):
    assert call(*words) == 2
    out, err = capsys.readouterr()
    assert message in " ".join(err.split())  # some are broken into lines
    assert "Traceback" not in err
    assert out == ""
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trainning: {}", "Did you mean 'training'?"),
        ("training: {steps: five}", "training.steps: expected a whole number, but found 'five'"),
        ("{", "is not a recipe in YAML"),
    ],
)
def test_a_bad_recipe_file_is_named(text: str, message: str, capsys: Captured, elsewhere: Path):
    Path("mine.yaml").write_text(text)
    assert call("train", "--recipe", "mine.yaml") == 2
    err = capsys.readouterr().err
    assert "mine.yaml" in err
    assert message in err
    assert [path.name for path in elsewhere.iterdir()] == ["mine.yaml"]


def test_debug_shows_the_traceback(capsys: Captured):
    assert call("certify", "nowhere", "--debug") == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("jepatlas certify: There is no run folder and no file nowhere.\n")


def test_only_one_process_reports(capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RANK", "1")
    assert call("certify", "nowhere") == 2
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("words", [("train", "--help"), ("reproduce", "--list")])
def test_a_closed_pipe_is_not_a_failed_check(words: tuple[str, ...], elsewhere: Path):
    """The pipe is closed before a word is written; a shell would call that 141."""
    read, write = os.pipe()
    os.close(read)
    words = (sys.executable, "-m", "jepatlas", *words)
    done = subprocess.run(words, env=ENV, cwd=elsewhere, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_help_mentions_only_options_that_the_command_takes(capsys: Captured):
    """All take --json; atlas show writes and draws nothing, and atlas translate draws nothing."""
    assert call("--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "All commands take --json PATH" in said and "randomised commands take --seed" in said
    for words, lacking in ((("atlas", "show"), {"--seed", "--out"}), (("atlas", "translate"), {"--seed"})):
        assert call(*words, "--help") == 0
        out = capsys.readouterr().out
        assert {option for option in ("--seed", "--out", "--json") if option not in out} == lacking


@pytest.fixture
def run(elsewhere: Path, capsys: Captured) -> Path:
    assert call("train", *WORDS, "--steps", "5", "--out", "run") == 0
    assert "Next: jepatlas certify run" in capsys.readouterr().out
    return elsewhere / "run"


def test_json_is_the_only_standard_output(run: Path, capsys: Captured):
    answers = {}
    for words in (
        ["train", *WORDS, "--steps", "5", "--out", "other"],
        ["certify", run, "--samples", "600"],
        ["report", run],
    ):
        assert call(*words, "--json", "-") == 0
        answers[words[0]] = json.loads(capsys.readouterr().out)
    assert answers["train"] == {"run": "other", "status": "finished", "step": 5, "verdicts": []}
    assert {"subject", "verdicts", "provenance"} <= answers["certify"].keys()
    assert Path(answers["report"]["report"]).stat().st_size > 1000


def test_json_and_record_go_to_the_given_places(run: Path, capsys: Captured):
    assert call("certify", run, "--samples", "600", "--seed", "3", "--out", "kept", "--json", "kept/answer.json") == 0
    assert "linear R²" in capsys.readouterr().out
    answer = json.loads(Path("kept/answer.json").read_text())
    assert answer["provenance"]["seed"] == 3
    assert Path("kept/records/certificate.json").exists()
    assert not (run / "records" / "certificate.json").exists()
    assert call("report", run, "kept", "--out", "page") == 0
    assert Path("page/report.html").exists()
    assert call("report", run, "kept", "--out", "pages/both.html") == 0
    assert Path("pages/both.html").is_file()


def test_the_default_run_folder_follows_from_the_recipe(capsys: Captured):
    words = ["--mixing", "coupling", "--objective", "vicreg", "--encoder.width", "8", "--steps", "2", "--seed", "7"]
    assert call("train", *words) == 0
    assert Path("runs/coupling-vicreg-s7/recipe.yaml").exists()
    capsys.readouterr()
    assert call("train", *words) == 2
    assert "--resume runs/coupling-vicreg-s7" in capsys.readouterr().err


def test_a_saved_recipe_reproduces_the_weights(run: Path):
    assert call("train", "--recipe", run / "recipe.yaml", "--out", "again") == 0
    assert call("train", "--recipe", run / "recipe.yaml", "--seed", "1", "--out", "other") == 0
    states = [Path(name, "checkpoints/step-5/state.safetensors").read_bytes() for name in ("run", "again", "other")]
    assert states[0] == states[1] != states[2]
    assert Path("again/recipe.yaml").read_text() == (run / "recipe.yaml").read_text()


def test_options_change_a_given_recipe(run: Path):
    words = ["--recipe", run / "recipe.yaml", "--objective", "infonce", "--objective.width", "0.5", "--track"]
    assert call("train", *words, "--out", "changed") == 0
    text = Path("changed/recipe.yaml").read_text()
    assert "kind: infonce" in text
    assert "width: 0.5" in text
    assert "steps: 5" in text  # as it was


def test_a_run_without_a_checkpoint_cannot_be_certified(capsys: Captured, run: Path):
    (run / "checkpoints" / "step-5").rename(run / "checkpoints" / ".step-5.1.part")
    assert call("certify", run) == 2
    assert f"{run} has no checkpoint" in (error := capsys.readouterr().err)
    assert f"jepatlas train --resume {run}" in error


def test_too_few_samples_are_rejected(capsys: Captured, run: Path):
    for samples in ("0", "3"):
        assert call("certify", run, "--samples", samples) == 2
        assert re.search(r"samples|rows", capsys.readouterr().err)
    assert not (run / "records" / "certificate.json").exists()


def test_a_certificate_can_be_required(run: Path):
    assert call("certify", run, "--samples", "600") == 0
    assert call("certify", run, "--samples", "600", "--require") == 1  # five steps cannot pass


def test_an_unwritable_result_gives_no_traceback(run: Path, capsys: Captured):
    Path("file").touch()
    assert call("certify", run, "--samples", "600", "--json", "file/answer.json") == 2
    err = capsys.readouterr().err
    assert "Could not write" in err
    assert call("train", *WORDS, "--steps", "2", "--out", "file/run") == 2
    assert "Could not write" in capsys.readouterr().err


@pytest.mark.slow
def test_json_of_a_sweep_and_of_a_crash_in_it(capsys: Captured):
    """A leftover run of another recipe makes one of the two crash; the other is kept."""
    assert call("train", *WORDS, "--steps", "2", "--out", "grid/lr=0.01") == 0
    capsys.readouterr()
    words = ["sweep", *WORDS, "--vary", "lr=0.01,0.001", "--steps", "3", "--workers", "1", "--out", "grid"]
    assert call(*words, "--json", "-") == 1
    out, err = capsys.readouterr()
    crashed, finished = json.loads(out)["runs"]
    assert (crashed["name"], crashed["status"]) == ("lr=0.01", "crashed")
    assert "another recipe" in crashed["error"]
    assert (finished["name"], finished["status"]) == ("lr=0.001", "finished")
    assert "r2" in {verdict["name"] for verdict in finished["verdicts"]}
    assert "lr=0.001: finished" in err
    table = Path("grid/sweep.csv").read_text().splitlines()
    columns = table[0].split(",")
    row = dict(zip(columns, table[2].split(","), strict=True))
    assert (row["run"], row["status"], row["lr"]) == ("lr=0.001", "finished", "0.001")
    r2 = next(verdict for verdict in finished["verdicts"] if verdict["name"] == "r2")
    assert float(row["r2.value"]) == r2["value"]


@pytest.mark.slow
def test_the_doctor_passes_as_a_process(elsewhere: Path):
    process = command("doctor", "--json", "-", "--out", elsewhere / "kept", cwd=elsewhere)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    answer = json.loads(out)
    assert answer["jepatlas"] == __version__
    assert answer["self_test"]["passed"] is True
    assert "cpu" in answer["devices"]
    assert all(answer["requirements"].values())
    assert {"track", "cluster", "vision"} <= answer["extras"].keys()
    assert answer["rendering"]["works"] or "apt-get install libegl1" in answer["rendering"]["reason"]
    assert json.loads((elsewhere / "kept" / "doctor.json").read_text()) == answer
    assert [path.name for path in elsewhere.iterdir()] == ["kept"]
    assert "self-test" in err


@pytest.fixture
def latents(elsewhere: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A rotated world, with one file for each array."""
    rng = np.random.default_rng(0)
    z, noise = rng.standard_normal((2, 1200, 2))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    h, h_next = z @ turn.T, (0.9 * z + np.sqrt(1 - 0.9**2) * noise) @ turn.T
    for name, array in {"h": h, "h_next": h_next, "z": z}.items():
        np.save(elsewhere / f"{name}.npy", array)
    return h, h_next, z


def test_latents_in_separate_files(latents: tuple[np.ndarray, ...], capsys: Captured):
    assert call("certify", "h.npy", "h_next.npy", "z.npy", "--rho", "0.9", "--quick", "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    h, h_next, z = latents
    expected = ja.certify(h, h_next, z, rho=0.9, quick=True)
    assert found["diagnosis"]["kind"] == "rotation"
    assert found["verdicts"] == json.loads(json.dumps(finite([verdict.to_json() for verdict in expected.verdicts])))
    assert call("certify", "h.npy", "--quick") == 2
    assert "h_next" in capsys.readouterr().err


def test_a_certificate_without_truth_has_a_page_with_figures(latents: tuple[np.ndarray, ...], capsys: Captured):
    assert call("certify", "h.npy", "h_next.npy", "--out", "certified", "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    assert [figure["kind"] for figure in found["figures"]] == ["scatter", "curves"]
    spectrum = found["figures"][1]["series"][0]
    assert spectrum["name"] == "direction" and spectrum["y"][0] == pytest.approx(0.9, abs=0.05)
    page = Path("certified/report.html").read_text()
    assert found["figures"][0]["title"] in page and found["figures"][1]["title"] in page


def test_quick_leaves_out_the_spectrum(latents: tuple[np.ndarray, ...], capsys: Captured):
    names = {}
    for option in ("--quick", "--no-quick"):
        assert call("certify", "h.npy", "h_next.npy", "--rho", "0.9", option, "--json", "-") == 0
        found = json.loads(capsys.readouterr().out)
        names[option] = {verdict["name"] for verdict in found["verdicts"]}
        assert ("Left out: the spectrum" in found["summary"]) == (option == "--quick")
    assert names["--no-quick"] - names["--quick"] == {"bound_rates", "dimension", "paired", "rho"}


def test_undecided_checks_are_neither_passed_nor_failed(elsewhere: Path, capsys: Captured):
    rng = np.random.default_rng(0)
    z, noise = rng.standard_normal((2, 60, 2))
    np.save("h.npy", z)
    np.save("h_next.npy", 0.9 * z + np.sqrt(1 - 0.9**2) * noise)
    assert call("certify", "h.npy", "h_next.npy", "--rho", "0.9", "--out", "few") == 0
    out = " ".join(capsys.readouterr().out.split())
    record = ja.load("few/records/certificate.json")
    assert isinstance(record, ja.Result)
    states = [verdict.status for verdict in record.verdicts]
    assert states.count("undecided") > 0
    assert f"{states.count('undecided')} undecided" in out
    for verdict in record.verdicts:
        if verdict.status == "undecided":
            assert plain_name(verdict.name) in out and " ".join(verdict.advice.split()) in out
    page = Path("few/report.html").read_text()
    assert f"</span> {states.count('undecided')} undecided" in page


def test_results_of_a_sweep_are_a_record_with_curves(elsewhere: Path, capsys: Captured):
    def result(lr: str, seed: str, value: float) -> SweepResult:
        verdict = Verdict("r2", value, value - 0.1, value + 0.1, 9, None, 0.8, "higher", value > 0.8, "Train longer.")
        return SweepResult(f"lr={lr}_seed={seed}", "finished", {"verdicts": [verdict.to_json()]})

    settings = [{"lr": lr, "seed": seed} for lr in ("0.1", "0.01") for seed in ("0", "1")]
    values = [0.2, 0.4, 0.5, 0.9]
    results = [result(*chosen.values(), value) for chosen, value in zip(settings, values, strict=True)]
    record = sweep_record(results, settings, "r2", seed=0)
    (curves,) = record.figures
    assert isinstance(curves, Curves) and curves.series is not None
    (curve,) = curves.series
    assert curve.x == [0.01, 0.1]
    assert curve.y == pytest.approx([0.7, 0.3]) and curve.low == [0.5, 0.2] and curve.high == [0.9, 0.4]
    assert "1 of 4" in record.summary
    record.save(elsewhere / "grid", "sweep")
    assert call("report", "grid") == 0
    assert f"{plain_name('r2')} over lr" in Path("grid/report.html").read_text()
    single = sweep_record(results[::2], settings[::2], "r2", seed=0).figures[0]
    assert (
        isinstance(single, Curves) and single.series is not None and single.series[0].low == pytest.approx([0.4, 0.1])
    )


THREADS = """
import sys
from jepatlas.cli import main
try:
    main(sys.argv[1:])
finally:
    import threadpoolctl
    print(max(pool["num_threads"] for pool in threadpoolctl.threadpool_info()))
"""


@pytest.mark.parametrize(
    ("words", "environment", "count"), [((), {}, 1), (("--threads", "2"), {}, 2), ((), {"OMP_NUM_THREADS": "2"}, 2)]
)
def test_threads_are_one_unless_asked_for(words: tuple[str, ...], environment: dict[str, str], count: int):
    """Also where the machine has more cores; numpy is imported by the command."""
    known = {name: value for name, value in os.environ.items() if not name.endswith("_THREADS")}
    command = [sys.executable, "-c", THREADS, "align", "absent.npy", "absent.npy", *words]
    done = subprocess.run(command, env=known | environment, capture_output=True, text=True, check=False)
    assert int(done.stdout.split()[-1]) == min(count, os.cpu_count() or 1)
