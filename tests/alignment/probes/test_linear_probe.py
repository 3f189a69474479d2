"""Linear probes compared with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import scipy.special
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from jepatlas.alignment.probes.linear_probe import LinearProbe
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap


def blobs(classes: int, rows: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=rows)
    x = 1.5 * rng.standard_normal((classes, 4))[labels] + rng.standard_normal((rows, 4))
    return x * np.array([1.0, 5.0, 0.2, 1.0]) + 3, labels


HEADS = [
    LogisticRegression(max_iter=1000),
    LogisticRegression(max_iter=1000, fit_intercept=False),
    RidgeClassifier(),
    RidgeClassifier(fit_intercept=False),
    LinearSVC(),
    LinearSVC(fit_intercept=False),
    SGDClassifier(random_state=0),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(solver="lsqr"),
]


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("names", [np.arange(3) * 7 - 5, np.array(["cup", "car", "a dog"])], ids=["numbers", "texts"])
@pytest.mark.parametrize(
    "scaler", [None, StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False)], ids=str
)
def test_predictions_match_scikit_learn(head, classes: int, names: np.ndarray, scaler):
    x, labels = blobs(classes)
    estimator = (head if scaler is None else make_pipeline(scaler, head)).fit(x, names[labels])
    probe = LinearProbe.from_sklearn(estimator)
    new = blobs(classes, seed=1)[0]
    np.testing.assert_array_equal(probe.predict(new), estimator.predict(new))
    logits, scores = probe.logits(new), estimator.decision_function(new)
    np.testing.assert_allclose(logits[:, 1] - logits[:, 0] if classes == 2 else logits, scores, atol=1e-9)
    assert probe.predict(new).dtype == probe.classes.dtype and logits.shape == (120, classes)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_match_scikit_learn(classes: int):
    x, labels = blobs(classes)
    model = LogisticRegression(max_iter=1000).fit(x, labels)
    found = scipy.special.softmax(LinearProbe.from_sklearn(model).logits(x), axis=1)
    np.testing.assert_allclose(found, model.predict_proba(x), atol=1e-9)


def test_fit_is_logistic_regression_on_standardised_latents():
    x, labels = blobs(3)
    probe = LinearProbe.fit(x, labels)
    np.testing.assert_allclose(probe.x_mean, x.mean(0))
    np.testing.assert_allclose(probe.x_scale, x.std(0))
    probabilities = scipy.special.softmax(probe.logits(x), axis=1)
    gradient = (probabilities - np.eye(3)[labels]).T @ (
        (x - x.mean(0)) / x.std(0)
    ) + probe.weight  # gradient of loss and penalty
    assert np.abs(gradient).max() < 0.02
    assert np.mean(probe.predict(x) == labels) > 0.6


def test_float32_and_constant_dimensions():
    x, labels = blobs(3)
    probe = LinearProbe.fit(np.c_[x, np.full(120, 9.0)].astype(np.float32), labels)
    assert probe.x_scale[-1] == 1 and np.isfinite(probe.weight).all()


def test_sparse_coefficients_and_passthrough_steps():
    x, labels = blobs(3)
    model = LogisticRegression(max_iter=1000).fit(x, labels)
    expected = model.predict(x)
    np.testing.assert_array_equal(LinearProbe.from_sklearn(model.sparsify()).predict(x), expected)
    through = make_pipeline("passthrough", LogisticRegression(max_iter=1000)).fit(x, labels)
    np.testing.assert_array_equal(LinearProbe.from_sklearn(through).predict(x), expected)


X, LABELS = blobs(3)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (KNeighborsClassifier().fit(X, LABELS), "'estimator'.*KNeighborsClassifier"),
        (SVC(kernel="linear").fit(X, LABELS), "but SVC was given"),
        (Ridge().fit(X, LABELS), "but Ridge was given"),
        (make_pipeline(MinMaxScaler(), LinearSVC()).fit(X, LABELS), "StandardScaler.*MinMaxScaler"),
        (make_pipeline(PCA(2), LinearSVC()).fit(X, LABELS), "StandardScaler.*PCA"),
        (make_pipeline(StandardScaler(), StandardScaler(), LinearSVC()).fit(X, LABELS), "one StandardScaler"),
        (make_pipeline(StandardScaler(), LinearSVC()), "has not been fitted"),
        (LogisticRegression(), "has not been fitted"),
        (RidgeClassifier().fit(X, np.eye(3)[LABELS]), "several labels per row"),
        ("a text", "but str was given"),
    ],
)
def test_estimators_that_are_not_linear_probes_are_rejected(estimator, message: str):
    with pytest.raises(InputError, match=message):
        LinearProbe.from_sklearn(estimator)


@pytest.mark.parametrize(
    ("x", "labels", "message"),
    [
        (X, np.zeros(120, int), r"only one class \(0\)"),
        (X, LABELS[:-1], "'labels'.* 120 rows"),
        (X, np.where(LABELS == 0, np.nan, LABELS), "labels .*NaN"),
        (X, LABELS.astype(object), "object"),
        (X, LABELS + 0.5, "these are fractions"),
        (np.where(X > 5, np.nan, X), LABELS, "NaN or infinite"),
        (X[:, 0], LABELS, "'x' must be a matrix"),
    ],
)
def test_invalid_training_data_is_rejected(x: np.ndarray, labels: np.ndarray, message: str):
    with pytest.raises(InputError, match=message):
        LinearProbe.fit(x, labels)


@pytest.mark.parametrize("names", [np.arange(3), np.array([0.0, 1.0, -2.0]), np.array(["ä", "b", "ccc"])], ids=str)
def test_save_and_load_are_bit_exact(names: np.ndarray, tmp_path: Path):
    probe = LinearProbe.fit(X, names[LABELS])
    probe.save(tmp_path / "probe.safetensors")
    loaded = LinearProbe.load(tmp_path / "probe.safetensors")
    assert probe.to_bytes() == loaded.to_bytes() == (tmp_path / "probe.safetensors").read_bytes()
    for part in ("classes", "weight", "bias", "x_mean", "x_scale"):
        np.testing.assert_array_equal(getattr(loaded, part), getattr(probe, part))
    assert loaded.classes.dtype == probe.classes.dtype


def test_malformed_file_is_rejected(tmp_path: Path):
    path = tmp_path / "probe.safetensors"
    probe = LinearProbe.fit(X, LABELS)
    tensors = {name: np.ascontiguousarray(getattr(probe, name)) for name in ("weight", "bias", "x_mean", "x_scale")}
    good = {"jepatlas.LinearProbe": '{"classes": [0, 1, 2], "dtype": "<i8"}'}
    for arrays, about in [
        (tensors, None),
        (tensors, {"format": "jepatlas.LinearMap"}),
        (tensors, {"jepatlas.LinearProbe": '{"classes": [0, 1'}),
        (tensors, {"jepatlas.LinearProbe": "3"}),
        (tensors, {"jepatlas.LinearProbe": '{"classes": [0, 1, 2]}'}),
        (tensors, {"jepatlas.LinearProbe": '{"classes": [0, 1], "dtype": "<i8"}'}),
        (tensors, {"jepatlas.LinearProbe": '{"classes": [0, 1, 2], "dtype": "O"}'}),
        (tensors, {"jepatlas.LinearProbe": '{"classes": [0, 1, 2], "dtype": "nonsense"}'}),
        (tensors | {"extra": probe.bias}, good),
        (tensors | {"bias": probe.bias[:2]}, good),
        (tensors | {"bias": probe.bias * np.nan}, good),
        (tensors | {"x_scale": probe.x_scale * 0}, good),
        ({"weight": probe.weight}, good),
    ]:
        path.write_bytes(safetensors.numpy.save(arrays, metadata=about))
        with pytest.raises(InputError, match="not a saved LinearProbe"):
            LinearProbe.load(path)
    path.write_bytes(safetensors.numpy.save(tensors, metadata=good))
    np.testing.assert_array_equal(LinearProbe.load(path).logits(X), probe.logits(X))  # the header above is valid
    path.write_bytes(b"garbage")
    with pytest.raises(InputError, match="not a saved LinearProbe"):
        LinearProbe.load(path)
    with pytest.raises(InputError, match="not a saved LinearProbe"):
        LinearProbe.load(tmp_path / "absent.safetensors")


def test_probe_file_is_not_a_map(tmp_path: Path):
    LinearProbe.fit(*blobs(3)).save(tmp_path / "probe.safetensors")
    with pytest.raises(InputError, match=r"bias.* a map has weight, x_mean and y_mean") as refused:
        LinearMap.load(tmp_path / "probe.safetensors")
    assert "__init__" not in str(refused.value)


def test_latents_of_another_width_are_rejected():
    with pytest.raises(InputError, match=r"'x'.*\(b, 4\).*\(120, 3\)"):
        LinearProbe.fit(X, LABELS).predict(X[:, :3])
