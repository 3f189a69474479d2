"""Accuracy of a migrated probe beside that of other heads, on the same held-out rows.

The other heads are the source probe on its own model, the source probe applied to the target without a map, a head
distilled from its logits, and a probe trained on the target. The majority class is the chance level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jepatlas.alignment.nulls import half_sample_intervals
from jepatlas.alignment.paired import check_pairs
from jepatlas.alignment.probes.linear_probe import LinearProbe, check_classes
from jepatlas.alignment.probes.probe_migration import Support, check_widths, distil, migrate, migrate_back, support
from jepatlas.alignment.splits import group_labels
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.records import Estimate, Verdict

__all__ = ["MigrationReport", "migration_report"]

ILL_CONDITIONED = 30.0
"""κ above which the inverse of a map is the first suspect: errors of a few percent become as large as latents."""


@dataclass(frozen=True)
class MigrationReport:
    """Held-out accuracies with intervals from half samples of groups, and the rate of the majority class."""

    source: Estimate  # the probe on a
    untranslated: Estimate | None  # the same probe on b without a map; None if the widths differ
    migrated: Estimate  # the migrated probe on b
    target: Estimate  # a probe trained on b
    loss: Estimate  # source − migrated, on the same rows
    price: Estimate  # target − migrated, on the same rows
    beyond: Estimate  # migrated − majority class, on the same rows
    majority: float
    support: Support
    distilled: Estimate | None = None  # a head on b fitted to the probe's logits; None if no rows were given for it
    backwards: bool = False  # whether the probe was migrated through a map b → a instead of an inverse
    inverse: Estimate | None = None  # then: migrated through the inverse; None if that carries too little

    @property
    def below_majority(self) -> bool:
        """Whether the migrated probe is at or below the majority class, also at the upper end of its interval."""
        return self.beyond.high <= 0

    @property
    def remedy(self) -> str:
        """What to do if the migrated probe is no better than the majority class."""
        amplification = min(self.support.condition, self.support.limit)
        if self.source.low <= self.majority:
            return "The source probe is not significantly better on its own model, so there is nothing to migrate."
        if not self.backwards and amplification > ILL_CONDITIONED:
            return (
                f"The inverse of the map amplifies errors by up to {amplification:.3g} (κ = "
                f"{self.support.condition:.3g}). Migrate the probe through a map fitted backwards, from the target to "
                f"its own model, or truncate the inverse at a limit of {ILL_CONDITIONED:g}."
            )
        return "Fit the map on more pairs, or robustly, or train a probe on the target."

    def verdicts(self) -> list[Verdict]:
        """Verdicts against the majority class, and costs of the migration."""
        return [
            self._against_majority(
                "probe_source",
                self.source,
                good="Accuracy of the source probe on its own model.",
                bad="The source probe is not significantly better than the majority class on its own model. There is "
                "nothing to migrate.",
            ),
            *self._informative(),
            self._against_majority(
                "probe_migrated",
                self.migrated,
                good="Accuracy of the migrated probe on the target, without training.",
                bad=f"The migrated probe is not significantly better than the majority class. {self.remedy}",
            ),
            self._against_majority(
                "probe_target",
                self.target,
                good="Accuracy of a probe trained on the target, for reference.",
                bad="Even a probe trained on the target is not significantly better than the majority class: the "
                "target's latents do not show the labels.",
            ),
            self._loss_verdict(),
            *self._costs(),
        ]

    def _against_majority(self, name: str, accuracy: Estimate, *, good: str, bad: str) -> Verdict:
        judged = Verdict.judge(
            name, accuracy, direction="higher", threshold=self.majority, null=self.majority, good=good, bad=bad
        )
        undecided = judged.passed is False and accuracy.high > self.majority
        return replace(judged, passed=None) if undecided else judged

    def _informative(self) -> list[Verdict]:
        """Heads that are reported without a threshold."""
        heads = {
            "untranslated": (self.untranslated, "Accuracy of the source probe on the target without a map."),
            "distilled": (
                self.distilled,
                "Knowledge distillation: accuracy of a linear head on the target, fitted to the probe's logits on "
                "pairs of the same states. It carries this one probe only.",
            ),
            "inverse": (
                self.inverse,
                "Accuracy of the probe migrated through the inverse of the map A → B instead of a map B → A.",
            ),
        }
        return [
            Verdict.judge(f"probe_{name}", accuracy, direction="higher", null=self.majority, good=good)
            for name, (accuracy, good) in heads.items()
            if accuracy is not None
        ]

    def _loss_verdict(self) -> Verdict:
        judged = Verdict.judge(
            "probe_loss",
            self.loss,
            direction="lower",
            null=self.source.value - self.majority,
            good="Accuracy that the migrated probe loses against the source probe, on the same rows.",
        )
        if not self.loss.high < 0:
            return judged
        gained = (
            "The migrated probe is significantly better than its source. Either the target's latents show the labels "
            "more clearly, or labels leaked through the map: fit probe and map on different rows."
        )
        return replace(judged, passed=False, advice=gained)

    def _costs(self) -> list[Verdict]:
        s, n = self.support, self.migrated.n
        way = "the inverse of the map (which was not used)" if self.backwards else "the inverse of the map"
        return [
            Verdict.judge(
                "probe_price",
                self.price,
                direction="lower",
                null=self.target.value - self.majority,
                good="Accuracy that a probe trained on the target has more, on the same rows.",
            ),
            Verdict.judge(
                "probe_unread",
                Estimate.exact(s.lost, n),
                direction="lower",
                null=1.0,
                good=f"Share of the logits' variance that {way} does not restore. The map carries {s.carried} of "
                f"{s.width} directions; {s.truncated} were truncated.",
            ),
            Verdict.judge(
                "probe_condition",
                Estimate.exact(s.condition, n),
                direction="lower",
                good=f"κ(W): largest factor by which {way} amplifies errors. A lower limit truncates more.",
            ),
        ]


def migration_report(
    probe: LinearProbe,
    translation: LinearMap,
    a: np.ndarray,
    b: np.ndarray,
    labels: np.ndarray,
    *,
    split: Split,
    rng: np.random.Generator,
    limit: float = CONDITION_LIMIT,
    back: LinearMap | None = None,
    groups: np.ndarray | None = None,
    distilled: np.ndarray | None = None,
    replicates: int = 500,
) -> MigrationReport:
    """Score all heads on `split.score`; the target's probe is trained on `split.fit`.

    Neither probe nor map may have seen `split.score`, and they must not be fitted on the same rows: both would fit the
    same noise, and labels would leak from one to the other. (A probe "migrated" between two independent models, 500
    rows, 100 and 16 dimensions, had 83% accuracy.) `distilled` are rows to distil a head on: use those of the map for a
    fair comparison. With a map `back` from b to a the probe is migrated through it, and through the inverse of
    `translation` for comparison only.
    """
    a, b = check_pairs(a, b)
    check_widths(probe, translation, b.shape[1])
    fit, score = split
    labels = _known_labels(probe, labels, len(a), np.concatenate([fit, score]))
    truth = labels[score]
    check_classes(truth, "the held-out rows")
    kept = support(probe, translation, limit=limit, latents=a[fit])
    heads = {"source": (probe, a), "target": (LinearProbe.fit(b[fit], labels[fit]), b)}
    if back is None:
        heads["migrated"] = migrate(probe, translation, limit=limit, latents=a[fit]), b
    else:
        heads["migrated"] = migrate_back(probe, back), b
        if kept.sufficient:
            heads["inverse"] = migrate(probe, translation, limit=limit, latents=a[fit]), b
    if a.shape[1] == b.shape[1]:
        heads["untranslated"] = (probe, b)
    if distilled is not None:
        head_groups = None if groups is None else groups[distilled]
        heads["distilled"] = (distil(probe, a[distilled], b[distilled], head_groups), b)
    hits = np.stack([head.predict(h[score]) == truth for head, h in heads.values()], axis=1)
    classes, counts = np.unique(truth, return_counts=True)
    majority = truth == classes[counts.argmax()]

    def accuracies(rows: np.ndarray) -> dict[str, float]:
        found = dict(zip(heads, hits[rows].mean(0).tolist(), strict=True))
        migrated = found["migrated"]
        return found | {
            "loss": found["source"] - migrated,
            "price": found["target"] - migrated,
            "beyond": migrated - float(majority[rows].mean()),
        }

    held = group_labels(groups, len(a))[score]
    ranges = dict.fromkeys(heads, (0.0, 1.0)) | dict.fromkeys(("loss", "price", "beyond"), (-1.0, 1.0))
    # bootstrap intervals from two to six groups would be far too narrow
    found = half_sample_intervals(accuracies, len(score), rng, groups=held, replicates=replicates, ranges=ranges)
    return MigrationReport(
        source=found["source"],
        untranslated=found.get("untranslated"),
        migrated=found["migrated"],
        target=found["target"],
        loss=found["loss"],
        price=found["price"],
        beyond=found["beyond"],
        majority=float(majority.mean()),
        support=kept,
        distilled=found.get("distilled"),
        backwards=back is not None,
        inverse=found.get("inverse"),
    )


def _known_labels(probe: LinearProbe, labels: np.ndarray, rows: int, used: np.ndarray) -> np.ndarray:
    """Labels as an array; raises InputError if the probe was not trained on all of those in use."""
    labels = np.asarray(labels)
    if labels.shape != (rows,):
        raise InputError(f"'labels' must have one entry for each of {rows} rows, but has shape {labels.shape}.")
    same_type = (labels.dtype.kind == "U") == (probe.classes.dtype.kind == "U")
    unknown = np.setdiff1d(labels[used], probe.classes) if same_type else np.unique(labels[used])
    if len(unknown):
        more = " and others" if len(probe.classes) > 5 else ""
        raise InputError(
            f"The probe was not trained on the labels {unknown[:5].tolist()}, but on "
            f"{probe.classes[:5].tolist()}{more}."
        )
    return labels
