"""What a migrated probe is worth: its accuracy beside the source's, and those of other heads on the target.

These are the source's head as it is, one distilled from its logits, and one trained on labels. All are scored on the
same held-out rows, and the rate of the commonest class stands beside them: the accuracy of one who does not look.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jepatlas.alignment.nulls import half_sample_intervals
from jepatlas.alignment.paired import check_pairs
from jepatlas.alignment.probes.distillation import distil
from jepatlas.alignment.probes.migration import Support, check_widths, migrate, migrate_back, support
from jepatlas.alignment.probes.probe import LinearProbe, check_classes
from jepatlas.alignment.splits import group_labels
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.records import Estimate, Verdict

__all__ = ["MigrationReport", "migration_report"]

BLOWN = 30.0
"""κ of a map from which on its inverse is to be suspected first: errors of a few percent grow as large as latents."""


@dataclass(frozen=True)
class MigrationReport:
    """Held-out accuracies with intervals by groups, beside the rate of the commonest class."""

    source: Estimate  # the probe on a
    untranslated: Estimate | None  # the same probe on b as it is; None where the widths differ
    migrated: Estimate  # the migrated probe on b
    target: Estimate  # a probe trained on b
    loss: Estimate  # source − migrated, on the same rows
    price: Estimate  # target − migrated, on the same rows
    beyond: Estimate  # migrated − always saying the commonest class, on the same rows
    majority: float
    support: Support
    distilled: Estimate | None = None  # a head on b, fitted to the probe's logits; None where no rows were given for it
    backwards: bool = False  # whether the migrated probe came through a map b → a, and not through an inverse
    inverse: Estimate | None = None  # then, the same through the inverse; None where that carries too little

    @property
    def reads_nothing(self) -> bool:
        """Whether the migrated probe is surely not above one who always says the commonest class."""
        return self.beyond.high <= 0

    @property
    def what_to_do(self) -> str:
        """Where the migrated probe does not beat the commonest class."""
        blown = min(self.support.condition, self.support.limit)
        if self.source.low <= self.majority:
            return "The source probe does not surely beat it on its own model: there is nothing to migrate."
        if not self.backwards and blown > BLOWN:
            return (
                f"The inverse of the map lets errors grow by up to {blown:.3g} (κ = {self.support.condition:.3g}): "
                "carry the probe through a map fitted backwards, from the target to its own model, or truncate "
                f"the inverse earlier, at a limit of {BLOWN:g}."
            )
        return "Fit the map on more pairs, or robustly, or train a probe on the target."

    def verdicts(self) -> list[Verdict]:
        """Judged against the commonest class: a head that does not beat it reads nothing."""
        others = [
            Verdict.judge(f"probe_{name}", one, direction="higher", null=self.majority, good=good)
            for name, (one, good) in self._others().items()
            if one is not None
        ]
        return [
            _head(
                "probe_source",
                self.source,
                self.majority,
                "The source probe reads its own model.",
                "The source probe does not beat the commonest class on its own model: there is nothing to migrate.",
            ),
            *others,
            _head(
                "probe_migrated",
                self.migrated,
                self.majority,
                "The migrated probe reads the target, untrained.",
                f"The migrated probe does not surely beat the commonest class. {self.what_to_do}",
            ),
            _head(
                "probe_target",
                self.target,
                self.majority,
                "For reference: a probe trained on the target.",
                "Even a probe trained on the target does not beat the commonest class: the labels are not there.",
            ),
            *self._costs(),
        ]

    def _others(self) -> dict[str, tuple[Estimate | None, str]]:
        """What sharing without a map would give."""
        return {
            "untranslated": (self.untranslated, "The probe on the target as it is (A-probe): sharing without a map."),
            "distilled": (
                self.distilled,
                "Knowledge distillation: a linear head on the target, fitted to the probe's "
                "logits on pairs of the same states; it carries this one probe alone.",
            ),
            "inverse": (
                self.inverse,
                "The probe through the inverse of the map A → B, instead of a map fitted backwards.",
            ),
        }

    def _costs(self) -> list[Verdict]:
        s, n = self.support, self.migrated.n
        way = "the inverse of the map (which was not taken)" if self.backwards else "the map"
        kept = f"The map carries {s.carried} of {s.width} directions; {s.truncated} were truncated."
        blown = f"By so much may errors grow on the way back through {way}; a lower limit truncates more."
        return [
            self._loss(),
            Verdict.judge(
                "probe_price",
                self.price,
                direction="lower",
                null=self.target.value - self.majority,
                good="The price of not training on the target: accuracy that a probe trained on it has more, "
                "on the same rows.",
            ),
            Verdict.judge(
                "probe_unread",
                Estimate(s.lost, s.lost, s.lost, n),
                direction="lower",
                null=1.0,
                good=f"Share of the logits' variance that does not come back through {way}. {kept}",
            ),
            Verdict.judge(
                "probe_condition",
                Estimate(s.condition, s.condition, s.condition, n),
                direction="lower",
                good=f"κ(W). {blown}",
            ),
        ]

    def _loss(self) -> Verdict:
        """What is gained on the way does not come from the source."""
        judged = Verdict.judge(
            "probe_loss",
            self.loss,
            direction="lower",
            null=self.source.value - self.majority,
            good="Accuracy that the probe loses on its way, on the same rows.",
        )
        if not self.loss.high < 0:
            return judged
        gained = (
            "Beyond doubt the migrated probe is better than its own source. Either the target's latents show the "
            "labels more clearly, or labels came through the map: fit both on different rows."
        )
        return replace(judged, passed=False, advice=gained)


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
    """Neither probe nor map may have seen `split.score`, which all is scored on; the target's probe has `split.fit`.

    Probe and map must not have the same rows, either: both overfit the same noise, and labels pass from one to the
    other. A probe "migrated" between two independent models (500 rows, 100 and 16 dimensions) with 83%. `distilled`
    are rows to distil a head on, where one is wanted: those of the map, for a fair comparison. With a map `back` from b
    to a the probe goes through that, and through the inverse of `translation` only to compare with.
    """
    a, b = check_pairs(a, b)
    check_widths(probe, translation, b.shape[1])
    fit, score = split
    labels = _known(probe, labels, len(a), np.concatenate([fit, score]))
    truth = labels[score]
    check_classes(truth, "the held-out rows")
    kept = support(probe, translation, limit=limit, latents=a[fit])
    heads = {"source": (probe, a), "target": (LinearProbe.fit(b[fit], labels[fit]), b)}
    heads |= {name: (head, b) for name, head in _carried(probe, translation, back, kept, a[fit]).items()}
    if a.shape[1] == b.shape[1]:
        heads["untranslated"] = (probe, b)
    if distilled is not None:
        alike = None if groups is None else groups[distilled]
        heads["distilled"] = (distil(probe, a[distilled], b[distilled], alike), b)
    hits = np.stack([head.predict(h[score]) == truth for head, h in heads.values()], axis=1)
    kinds, counts = np.unique(truth, return_counts=True)
    blind = truth == kinds[counts.argmax()]

    def accuracies(rows: np.ndarray) -> dict[str, float]:
        found = dict(zip(heads, hits[rows].mean(0).tolist(), strict=True))
        moved = found["migrated"]
        return found | {
            "loss": found["source"] - moved,
            "price": found["target"] - moved,
            "beyond": moved - float(blind[rows].mean()),
        }

    held = group_labels(groups, len(a))[score]
    ranges = dict.fromkeys(heads, (0.0, 1.0)) | dict.fromkeys(("loss", "price", "beyond"), (-1.0, 1.0))
    # not by a bootstrap, whose intervals by two to six groups are far too narrow
    found = half_sample_intervals(accuracies, len(score), rng, groups=held, replicates=replicates, ranges=ranges)
    return MigrationReport(
        found["source"],
        found.get("untranslated"),
        found["migrated"],
        found["target"],
        found["loss"],
        found["price"],
        found["beyond"],
        float(blind.mean()),
        kept,
        found.get("distilled"),
        back is not None,
        found.get("inverse"),
    )


def _carried(
    probe: LinearProbe, translation: LinearMap, back: LinearMap | None, kept: Support, latents: np.ndarray
) -> dict[str, LinearProbe]:
    """The probe through the inverse of the map or, where there is a map back, through that: the inverse is then there
    to compare with, if it carries enough."""
    if back is None:
        return {"migrated": migrate(probe, translation, limit=kept.limit, latents=latents)}
    inverse = {"inverse": migrate(probe, translation, limit=kept.limit, latents=latents)} if kept.enough else {}
    return {"migrated": migrate_back(probe, back)} | inverse


def _head(name: str, accuracy: Estimate, majority: float, good: str, bad: str) -> Verdict:
    return Verdict.judge(name, accuracy, direction="higher", threshold=majority, null=majority, good=good, bad=bad)


def _known(probe: LinearProbe, labels: np.ndarray, rows: int, used: np.ndarray) -> np.ndarray:
    """Labels of which the probe knows those that are used; a map and a distilled head need none."""
    labels = np.asarray(labels)
    if labels.shape != (rows,):
        raise InputError(f"There must be one label for each of {rows} rows, but the labels have shape {labels.shape}.")
    texts = [array.dtype.kind == "U" for array in (labels, probe.classes)]
    strange = np.setdiff1d(labels[used], probe.classes) if texts[0] == texts[1] else np.unique(labels[used])
    if len(strange):
        raise InputError(
            f"The probe does not know the labels {strange[:5].tolist()}; those that it was trained on are "
            f"{probe.classes[:5].tolist()}{' and others' if len(probe.classes) > 5 else ''}."
        )
    return labels
