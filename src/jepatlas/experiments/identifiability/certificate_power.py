"""Answers of `certify` on synthetic latents with a known answer: a claim about jepatlas itself.

Latents are certified with the true state (by the quick certificate, whose diagnosis has the same rules), and with ρ
alone or with neither, in turn. A *false pass* is a corrupted latent that passes although what is given shows the
corruption; a *false alarm* is an intact latent that fails. Undecided is neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from jepatlas.core.figures import Bars, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import success_rate
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, combined, decide
from jepatlas.experiments.engine.seed_tables import bars, cell, finished_only
from jepatlas.experiments.identifiability.adversarial_latents import CASES, Answer, adversarial_cases
from jepatlas.workflows.certify import certify_arrays

__all__ = ["EXPERIMENT", "run"]

FALSE_PASSES = 0.02
FALSE_ALARMS = 0.05
RIGHT_NAMES = 0.9
SEEDS = {"tiny": 1, "small": 3, "paper": 20}
GIVEN = ("truth", "rho", "nothing")
TINY = ("rotation", "noise", "missing")

CLAIM = Claim(
    statement=f"`jepatlas certify` passes at most {FALSE_PASSES:.0%} of corrupted latents and fails at most "
    f"{FALSE_ALARMS:.0%} of intact ones, and names the corruption.",
    source="jepatlas, of its own certificate",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    every = []
    for name, case, dim, s in adversarial_cases(SEEDS[scale]):
        if scale == "tiny" and (name not in TINY or dim != 2):
            continue
        asked = [given for given in case.passes if given in ("truth", GIVEN[1 + s % 2])]
        if scale == "small" and dim != case.dims[s // 2 % len(case.dims)]:
            asked = [given for given in asked if given == "truth" and s == 0]  # one dimension of each further seed
        if not asked:
            continue
        settings = {"case": name, "dim": dim, "seed": seed + s, "asked": asked}
        every.append(Trial({"latents": name, "dim": dim, "seed": seed + s}, run, settings))
    return every


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Whether the latents pass, with each of what may be given, and the diagnosis."""
    del folder  # nothing is trained
    case = CASES[settings["case"]]
    arrays = case.make(settings["dim"], case.rows, settings["seed"])
    answers = {given: asdict(_answer(*case.asked(arrays, given), settings["seed"])) for given in settings["asked"]}
    return {"status": "finished", "verdicts": [], "answers": answers}


def _answer(arrays: dict[str, np.ndarray], rho: float | None, seed: int) -> Answer:
    record = certify_arrays("Certificate", arrays, rho=rho, seed=seed, quick="z" in arrays)
    return Answer(record.passed, record.diagnosis.kind if record.diagnosis else None)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """The intervals of both rates must lie below their limits, and that of right names above theirs."""
    del scale
    passes = []
    alarms = []
    names = []
    for result in finished_only(results):
        case = CASES[str(result.at["latents"])]
        for given, plain in result.record["answers"].items():
            answer = Answer(**plain)
            if case.intact:
                alarms.append(answer.passed is False)
            else:
                passes.append(answer.passed is True)
            if given == "truth" and case.kinds:
                names.append(answer.kind in case.kinds)
    false_pass = _rate(passes)
    false_alarm = _rate(alarms)
    named = _rate(names)
    outcomes = [
        decide([false_pass], threshold=FALSE_PASSES, direction="lower"),
        decide([false_alarm], threshold=FALSE_ALARMS, direction="lower"),
        decide([named], threshold=RIGHT_NAMES),
    ]
    return Finding(
        combined(outcomes),
        f"False passes {cell(false_pass)}, false alarms {cell(false_alarm)}, right names {cell(named)}.",
        criteria=(
            Criterion("false passes", cell(false_pass), f"below {FALSE_PASSES}", outcomes[0] == "holds"),
            Criterion("false alarms", cell(false_alarm), f"below {FALSE_ALARMS}", outcomes[1] == "holds"),
            Criterion("right names", cell(named), f"above {RIGHT_NAMES}", outcomes[2] == "holds"),
        ),
        verdicts=(
            _verdict("false_passes", false_pass, FALSE_PASSES, "corrupted latents that pass"),
            _verdict("false_alarms", false_alarm, FALSE_ALARMS, "intact latents that fail"),
        ),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _rate(outcomes: Sequence[bool]) -> Estimate:
    return success_rate(np.array(outcomes)) if outcomes else Estimate.undefined(0)


def _verdict(name: str, rate: Estimate, limit: float, what: str) -> Verdict:
    return Verdict.judge(name, rate, direction="lower", threshold=limit, good=f"Share of {what}.")


def _figure(results: Sequence[Result]) -> Bars:
    rates = {"passes": [], "undecided": [], "fails": []}
    groups = [f"{'intact' if intact else 'corrupted'}, {given}" for intact in (True, False) for given in GIVEN]
    for intact in (True, False):
        for given in GIVEN:
            found = [
                Answer(**result.record["answers"][given]).passed
                for result in finished_only(results)
                if CASES[str(result.at["latents"])].intact == intact and given in result.record["answers"]
            ]
            for name, value in (("passes", True), ("undecided", None), ("fails", False)):
                rates[name].append(_rate([one is value for one in found]))
    return Bars(
        title="Answers of certify",
        y_label="share of latents",
        names=groups,
        series=[bars(name, estimates) for name, estimates in rates.items()],
        note="Corrupted latents are counted only where what is given shows the corruption. 95% intervals.",
    )


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for result in finished_only(results):
        case = CASES[str(result.at["latents"])]
        answers = {given: Answer(**plain) for given, plain in result.record["answers"].items()}
        right = case.is_right(answers)
        cells = [str(answers[given]) if given in answers else "–" for given in GIVEN]
        where = [str(result.at["latents"]), str(result.at["dim"]), str(result.at["seed"])]
        rows.append([*where, "intact" if case.intact else "corrupted", *cells, "yes" if right else "no"])
    columns = ["latents", "dim", "seed", "truly", *(f"answer, {given}" for given in GIVEN), "right"]
    return Table("All answers", columns, rows)


EXPERIMENT = Experiment("certificate-power", "False passes and false alarms of certify", CLAIM, trials, conclude)
