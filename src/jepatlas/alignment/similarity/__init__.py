"""Similarity metrics between the latents of two models for the same states."""

from jepatlas.alignment.similarity.canonical_correlation import canonical_correlations, cca, pwcca, svcca
from jepatlas.alignment.similarity.distance_structure import dsc, dsc_sampled
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
    "canonical_correlations",
    "cca",
    "cka",
    "cka_debiased",
    "cka_of",
    "dsc",
    "dsc_sampled",
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
