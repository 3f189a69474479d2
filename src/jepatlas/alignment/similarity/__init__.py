"""Similarity metrics between the latents of two models for the same states."""

from jepatlas.alignment.similarity.canonical_correlation import pwcca, svcca
from jepatlas.alignment.similarity.distance_structure import dsc
from jepatlas.alignment.similarity.kernel_alignment import cka, cka_debiased, cka_of
from jepatlas.alignment.similarity.nearest_neighbours import mutual_knn, neighbour_overlap, neighbours, nos, overlap
from jepatlas.alignment.similarity.similarity_metrics import (
    METRICS,
    NEIGHBOURS,
    Metric,
    measure,
    mse_per_dim,
    mse_sum,
    procrustes_error,
    r2,
)

__all__ = [
    "METRICS",
    "NEIGHBOURS",
    "Metric",
    "cka",
    "cka_debiased",
    "cka_of",
    "dsc",
    "measure",
    "mse_per_dim",
    "mse_sum",
    "mutual_knn",
    "neighbour_overlap",
    "neighbours",
    "nos",
    "overlap",
    "procrustes_error",
    "pwcca",
    "r2",
    "svcca",
]
