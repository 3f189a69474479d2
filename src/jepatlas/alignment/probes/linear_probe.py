"""Linear probes: multi-class linear classifiers on standardised latents.

    logits(x) = V((x − mean) / scale) + bias        the class with the largest logit is predicted

A probe with two classes has two logits, ∓½ of scikit-learn's single score. Their difference is that score, so
decisions and probabilities are the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import scipy.sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from jepatlas.alignment.paired import check_matrix
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.parsing import parse_json, parse_safetensors, safetensors_metadata

__all__ = ["LinearProbe", "check_classes"]

LINEAR = (LogisticRegression, RidgeClassifier, LinearSVC, SGDClassifier, LinearDiscriminantAnalysis)
FORMAT = "jepatlas.LinearProbe"
PARTS = ("weight", "bias", "x_mean", "x_scale")


@dataclass(frozen=True)
class LinearProbe:
    """A fitted multi-class linear probe on d-dimensional latents."""

    classes: np.ndarray  # (c,) numbers or strings
    weight: np.ndarray  # (c, d)
    bias: np.ndarray  # (c,)
    x_mean: np.ndarray  # (d,)
    x_scale: np.ndarray  # (d,)

    def __post_init__(self) -> None:
        c, d = len(self.classes), len(self.x_mean)
        shapes = {name: np.shape(getattr(self, name)) for name in ("classes", *PARTS)}
        if shapes != {"classes": (c,), "weight": (c, d), "bias": (c,), "x_mean": (d,), "x_scale": (d,)}:
            raise InputError(f"The arrays of a probe have shapes that do not match: {shapes}.")
        if c < 2:
            raise InputError(f"A probe needs at least 2 classes, but there is {c}.")
        for name in PARTS:
            check_finite(f"{name} of the probe", getattr(self, name))
        if not np.all(self.x_scale):
            raise InputError("'x_scale' must not contain zeros: use 1 for constant dimensions.")

    @classmethod
    def fit(cls, x: np.ndarray, labels: np.ndarray) -> LinearProbe:
        """Multinomial logistic regression on standardised latents, by scikit-learn with its usual L2 penalty."""
        x, labels = check_matrix("x", x).astype(np.float64), np.asarray(labels)
        if labels.shape != (len(x),):
            raise InputError(f"'labels' must have one entry for each of {len(x)} rows, but has shape {labels.shape}.")
        check_classes(labels, "the rows to train a probe on")
        return cls.from_sklearn(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(x, labels))

    @classmethod
    def from_sklearn(cls, estimator: Any) -> LinearProbe:
        """From a fitted linear classifier, alone or after a StandardScaler in a Pipeline."""
        scaler, head = _parts(estimator)
        coef = head.coef_.toarray() if scipy.sparse.issparse(head.coef_) else head.coef_
        coef = np.atleast_2d(np.asarray(coef, np.float64))  # RidgeClassifier with two classes has a vector
        bias = np.broadcast_to(np.asarray(head.intercept_, np.float64), len(coef))
        if head.predict(np.zeros((1, coef.shape[1]))).ndim != 1:
            raise InputError(f"{type(head).__name__} was fitted with several labels per row; a probe predicts one.")
        if len(coef) == 1:
            coef, bias = np.concatenate([-coef, coef]) / 2, np.concatenate([-bias, bias]) / 2
        return cls(np.asarray(head.classes_), coef, bias, *_standardiser(scaler, coef.shape[1]))

    def logits(self, x: np.ndarray) -> np.ndarray:
        """Logits (b, c) of latents (b, d)."""
        if x.ndim != 2 or x.shape[1] != len(self.x_mean):
            raise InputError(f"'x' must have shape (b, {len(self.x_mean)}), but has shape {x.shape}.")
        return (x - self.x_mean) / self.x_scale @ self.weight.T + self.bias

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.classes[self.logits(x).argmax(1)]

    def to_bytes(self) -> bytes:
        """Safetensors with the classes in the header, because they may be strings."""
        tensors = {name: np.ascontiguousarray(getattr(self, name)) for name in PARTS}
        about = {"classes": self.classes.tolist(), "dtype": self.classes.dtype.str}
        # one key only: several keys have no fixed order, so equal probes would have different hashes
        return safetensors.numpy.save(tensors, metadata={FORMAT: json.dumps(about)})

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "This") -> LinearProbe:
        """Inverse of `to_bytes`; error messages start with `where`."""
        try:
            tensors = parse_safetensors(data, where)
            about = parse_json(safetensors_metadata(data, where)[FORMAT], where)
            classes = np.array(about["classes"], dtype=np.dtype(about["dtype"]))
            if classes.dtype.kind not in "iufbU":
                raise ValueError(f"classes of type {classes.dtype}")
            return cls(classes, **tensors)
        except KeyError as error:
            raise InputError(f"{where} is not a saved LinearProbe: it has no {error} in its header.") from error
        except (TypeError, ValueError) as error:
            raise InputError(f"{where} is not a saved LinearProbe: {error}") from error

    def save(self, path: Path | str) -> None:
        write_bytes(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: Path | str) -> LinearProbe:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"{path} is not a saved LinearProbe: {error.strerror}.") from error
        return cls.from_bytes(data, str(path))


def check_classes(labels: np.ndarray, where: str) -> None:
    """Raise InputError for missing or fractional labels, or if there is only one class."""
    if labels.dtype.kind not in "iufbU":
        raise InputError(f"Labels must be numbers or strings, but they are {labels.dtype}.")
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InputError(f"{int(np.isnan(labels).sum())} labels of {where} are NaN. Leave those rows out.")
    if labels.dtype.kind == "f" and np.any(labels != np.rint(labels)):
        raise InputError("Labels must be classes, but these are fractions. Fit a map instead of a probe to quantities.")
    classes = np.unique(labels)
    if len(classes) < 2:
        raise InputError(f"A probe needs at least 2 classes, but {where} have only one class ({classes[0]}).")


def _parts(estimator: Any) -> tuple[StandardScaler | None, Any]:
    steps = [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]
    *before, head = [step for step in steps if step is not None and step != "passthrough"] or [None]
    if not isinstance(head, LINEAR):
        known = ", ".join(kind.__name__ for kind in LINEAR)
        raise InputError(f"'estimator' must be a linear classifier ({known}), but {type(head).__name__} was given.")
    if len(before) > 1 or not all(isinstance(step, StandardScaler) for step in before):
        names = ", ".join(type(step).__name__ for step in before)
        raise InputError(f"Only one StandardScaler may precede the classifier, but the pipeline has: {names}.")
    try:
        for step in (*before, head):
            check_is_fitted(step)
    except NotFittedError as error:
        raise InputError(f"The estimator has not been fitted: {error}") from error
    return (before[0] if before else None), head


def _standardiser(scaler: StandardScaler | None, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and scale that the scaler applies; it stores a mean even if it does not use it."""
    mean = scaler.mean_ if scaler is not None and scaler.with_mean else np.zeros(width)
    scale = scaler.scale_ if scaler is not None and scaler.with_std else np.ones(width)
    return np.asarray(mean, np.float64), np.asarray(scale, np.float64)
