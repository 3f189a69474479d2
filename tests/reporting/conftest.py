from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jepatlas.core.arrays import write_arrays
from jepatlas.core.files import write_json, write_text
from jepatlas.core.records import Estimate, Verdict

RECIPE = """\
kind: train
seed: 0
world: {kind: gaussian, state_dim: 2, observation_dim: 16, correlation: 0.9}
encoder: {kind: mlp, width: 256, depth: 3, latent_dim: 2}
objective: {kind: lejepa, lambda: 0.05, slices: 256}
training: {steps: 4000, batch: 512, learning_rate: 0.001}
"""
PROVENANCE = {"commit": "695eb0d", "version": "0.1.0", "seed": 0}


def build_run(folder: Path, *, quality: float = 1.0, samples: int = 3000) -> Path:
    """A run folder as written by training and certification, with a Gaussian state and its rotation as latent."""
    rng = np.random.default_rng(0)
    write_text(folder / "recipe.yaml", RECIPE)
    _write_metrics(folder, rng)
    z = rng.standard_normal((samples, 2))
    turn = np.array([[np.cos(0.9), -np.sin(0.9)], [np.sin(0.9), np.cos(0.9)]])
    noise = rng.standard_normal(z.shape)
    h = quality * z @ turn.T + (0.06 + 1 - quality) * noise
    write_arrays(folder / "records" / "certify.npz", {"z": z, "h": h, "h_back": h @ turn, "energy": (z**2).sum(1)})
    write_json(folder / "records" / "certify.json", _certificate(h, quality))
    write_json(folder / "records" / "sweep.json", _sweep())
    return folder


def _write_metrics(folder: Path, rng: np.random.Generator) -> None:
    lines = []
    for step in range(0, 4000, 2):
        sigreg = 0.9 * np.exp(-step / 300) + 0.004 * (1 + 0.2 * rng.random())
        invariance = 0.1 + 0.5 * np.exp(-step / 900) + 0.01 * rng.standard_normal()
        loss = invariance + 0.05 * sigreg
        lines.append(json.dumps({"step": step, "loss": loss, "sigreg": sigreg, "invariance": invariance}))
    write_text(folder / "metrics.jsonl", "\n".join(lines) + "\n")


def _certificate(h: np.ndarray, quality: float) -> dict:
    r2 = 0.996 * quality**2
    verdicts = [
        Verdict.judge(
            "r2",
            Estimate(r2, r2 - 0.004, r2 + 0.003, 1500),
            direction="higher",
            threshold=0.95,
            null=0.0013,
            good="A linear map recovers the true state, so a linear probe is all you need.",
            bad="A linear map does not recover the true state. Train longer, or check the preconditions below.",
        ),
        Verdict.judge(
            "orthogonality",
            Estimate(0.021 / quality**6, 0.017, 0.026 / quality**6, 1500),
            direction="lower",
            threshold=0.05,
            null=0.71,
            good="The map is a rotation: distances in the latent space are distances in the world.",
            bad="The map stretches some directions. Do not read latent distances as distances in the world.",
        ),
        Verdict.judge(
            "stationarity",
            Estimate(0.113, 0.092, 0.137, 1500),
            direction="lower",
            threshold=0.1,
            null=0.004,
            good="The pairs are stationary.",
            bad="The two views differ in distribution. Draw pairs from the middle of longer episodes.",
        ),
        Verdict.judge(
            "effective_rank",
            Estimate(1.98, 1.95, 2.0, 1500),
            direction="higher",
            good="All latent dimensions are used.",
        ),
    ]
    panels = [
        {"title": "true state z", "x": "z", "columns": [0, 1], "color": "z", "color_columns": [0, 1]},
        {"title": "latent h", "x": "h", "columns": [0, 1], "color": "z", "color_columns": [0, 1]},
        {"title": "latent after rotation", "x": "h_back", "columns": [0, 1], "color": "z", "color_columns": [0, 1]},
    ]
    gram = (h.T @ h / len(h)).tolist()
    return {
        "title": "Is the latent space the world's own?",
        "summary": "The latents of 3,000 held-out samples beside the state that made them. Identification up to a "
        "rotation means that the second picture is the first one, turned.",
        "provenance": PROVENANCE,
        "verdicts": [verdict.to_json() for verdict in verdicts],
        "figures": [
            {"kind": "scatter", "title": "The state, the latent, and the latent turned back", "panels": panels},
            {
                "kind": "heatmap",
                "title": "WᵀW of the fitted map",
                "matrix": gram,
                "x": ["h₁", "h₂"],
                "y": ["h₁", "h₂"],
                "note": "The identity, where the map is orthogonal.",
            },
            {
                "kind": "scatter",
                "title": "The latent, by energy of the state",
                "panels": [{"title": "latent h", "x": "h", "color": "energy"}],
            },
        ],
        "tables": [
            {
                "title": "Held-out R² by probe",
                "columns": ["probe", "features", "R²", "low", "high", "converged"],
                "rows": [
                    ["ridge", "latent h", 0.9961, 0.9921, 0.9989, True],
                    ["ridge", "PCA of the observation", 0.4127, 0.3951, 0.4303, True],
                    ["ridge", "untrained encoder", 0.5233, 0.5012, 0.5461, None],
                ],
            },
        ],
        "arrays": "certify.npz",
    }


def _sweep() -> dict:
    dims = [2, 4, 8, 16, 32]
    return {
        "title": "How it scales with dimension",
        "summary": "The same recipe for more dimensions of the state; bands are 95% intervals over five seeds.",
        "provenance": {**PROVENANCE, "seed": [0, 1, 2, 3, 4]},
        "verdicts": [
            Verdict("slope", -0.0007, -0.0011, -0.0002, 25, None, None, "higher", None, "R² falls slowly.").to_json()
        ],
        "figures": [
            {
                "kind": "curves",
                "title": "Recovery by dimension",
                "x_label": "dimension of the state",
                "y_label": "R²",
                "series": [
                    {
                        "name": "LeJEPA",
                        "x": dims,
                        "y": [0.996, 0.995, 0.991, 0.985, 0.974],
                        "low": [0.994, 0.992, 0.986, 0.977, 0.962],
                        "high": [0.998, 0.997, 0.995, 0.992, 0.984],
                    },
                    {
                        "name": "VICReg",
                        "x": dims,
                        "y": [0.981, 0.962, 0.931, 0.885, "nan"],
                        "low": [0.975, 0.952, 0.912, 0.86, "nan"],
                        "high": [0.986, 0.971, 0.946, 0.907, "nan"],
                    },
                    {"name": "untrained encoder", "x": dims, "y": [0.52, 0.49, 0.44, 0.41, 0.37]},
                ],
            },
            {
                "kind": "heatmap",
                "title": "Canonical correlations between five seeds",
                "x": ["s0", "s1", "s2", "s3", "s4"],
                "y": ["s0", "s1", "s2", "s3", "s4"],
                "matrix": [[1.0 if i == j else 0.97 + 0.004 * ((i * j) % 5) for j in range(5)] for i in range(5)],
            },
        ],
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return build_run(tmp_path / "gaussian-2d")


@pytest.fixture
def two_runs(tmp_path: Path) -> list[Path]:
    return [build_run(tmp_path / "lejepa"), build_run(tmp_path / "vicreg", quality=0.8)]
