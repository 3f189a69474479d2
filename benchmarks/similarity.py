"""Similarity of latents with 5,000 rows and 384 columns: feature space and tiles, compared with the definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import scipy.spatial.distance
import scipy.stats
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from benchmarks.measurement import Comparison, compare, peak_memory
from jepatlas.alignment.similarity import cka, cka_debiased, dsc, neighbour_overlap
from jepatlas.core.seeding import numpy_generator

__all__ = ["run"]

ROWS, COLUMNS = 5000, 384
Measure = Callable[[np.ndarray, np.ndarray], float]


def cka_of_kernels(a: np.ndarray, b: np.ndarray) -> float:
    """CKA by its definition, with n × n kernels."""
    k, m = (_centred(x @ x.T) for x in (a, b))
    return float(np.vdot(k, m) / np.sqrt(np.vdot(k, k) * np.vdot(m, m)))


def cka_debiased_of_kernels(a: np.ndarray, b: np.ndarray) -> float:
    k, m = (x @ x.T for x in (a, b))
    for kernel in (k, m):
        np.fill_diagonal(kernel, 0)
    return float(_unbiased(k, m) / np.sqrt(_unbiased(k, k) * _unbiased(m, m)))


def dsc_by_scipy(a: np.ndarray, b: np.ndarray) -> float:
    found = scipy.stats.spearmanr(scipy.spatial.distance.pdist(a), scipy.spatial.distance.pdist(b))
    return float(np.asarray(found)[0])


def overlap_by_scikit_learn(a: np.ndarray, b: np.ndarray, k: int) -> float:
    """Neighbour overlap by brute force."""
    brute = NearestNeighbors(n_neighbors=k, algorithm="brute")
    one, other = (brute.fit(x).kneighbors(return_distance=False) for x in (a, b))
    return float(np.mean([len(np.intersect1d(i, j, assume_unique=True)) / k for i, j in zip(one, other, strict=True)]))


def overlap_by_ours(a: np.ndarray, b: np.ndarray, k: int) -> float:
    return float(neighbour_overlap(a, b, [k])[k].mean())


def run() -> Iterator[Comparison]:
    a, b = latents(ROWS)
    size = f"{ROWS}×{COLUMNS}"
    with threadpool_limits(1):
        yield compared(f"linear CKA {size}: n × n kernels, ours", cka_of_kernels, cka, a, b, turns=5)
        yield compared(
            f"debiased CKA {size}: n × n kernels, ours", cka_debiased_of_kernels, cka_debiased, a, b, turns=5
        )
        for k in (10, 50):
            ways = partial(overlap_by_scikit_learn, k=k), partial(overlap_by_ours, k=k)
            yield compared(f"overlap of {k}-NN {size}: scikit-learn's brute force, ours", *ways, a, b, turns=5)
        yield compared(f"DSC {size}, all pairs: scipy, ours", dsc_by_scipy, dsc, a, b, turns=2)
    memory = [peak_memory(prepare_dsc, name) for name in WAYS]
    yield Comparison.of(f"peak memory of DSC {size}: scipy, ours", memory[:1], memory[1:], "MB")


def compared(name: str, baseline: Measure, ours: Measure, a: np.ndarray, b: np.ndarray, *, turns: int) -> Comparison:
    """Compare two implementations, after checking that their values agree."""
    gap = abs(baseline(a, b) - ours(a, b))
    assert gap < 1e-6, f"{name}: the values differ by {gap}"
    return compare(name, lambda: baseline(a, b), lambda: ours(a, b), turns)


WAYS: dict[str, Measure] = {"scipy": dsc_by_scipy, "ours": dsc}


def prepare_dsc(way: str) -> Callable[[], object]:
    """DSC after loading and compiling."""
    threadpool_limits(1)
    WAYS[way](*latents(1500))
    a, b = latents(ROWS)
    return lambda: WAYS[way](a, b)


def latents(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices with a shared part and independent noise of the same variance."""
    shared, *noise = (numpy_generator(0, name).standard_normal((rows, COLUMNS)) for name in ("shared", "a", "b"))
    return shared + noise[0], shared + noise[1]


def _centred(kernel: np.ndarray) -> np.ndarray:
    kernel = kernel - kernel.mean(0)
    return kernel - kernel.mean(1, keepdims=True)


def _unbiased(k: np.ndarray, m: np.ndarray) -> float:
    n = len(k)
    middle = k.sum() * m.sum() / ((n - 1) * (n - 2))
    return float(np.vdot(k, m) + middle - 2 / (n - 2) * (k.sum(0) @ m.sum(0)))
