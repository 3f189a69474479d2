"""Gaussian pairs and random Hermite polynomials with closed-form loss and variances, based on numpy's He_k."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermeval


def pairs(rows: int, dim: int, rho: float | np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, dim))
    return z, rho * z + np.sqrt(1 - np.square(rho)) * noise


def rotation(dim: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0]


def psi(index: tuple[int, ...], z: np.ndarray) -> np.ndarray:
    """The normalised Hermite polynomial ψ_k(z) at the rows of z."""
    factors = [hermeval(z[:, i], [0.0] * k + [1.0]) / math.sqrt(math.factorial(k)) for i, k in enumerate(index)]
    return np.prod(factors, axis=0)


class Polynomial:
    """h = Σ_k c_k ψ_k with random c_k in ℝ^d for all |k| ≤ degree, constant included."""

    def __init__(self, dim: int, degree: int, out: int, seed: int) -> None:
        self.indices = [k for k in itertools.product(range(degree + 1), repeat=dim) if sum(k) <= degree]
        self.coefficients = np.random.default_rng(seed).standard_normal((len(self.indices), out))

    def __call__(self, z: np.ndarray) -> np.ndarray:
        return np.stack([psi(k, z) for k in self.indices], 1) @ self.coefficients

    def variance(self, degree: int) -> float:
        rows = [sum(k) == degree for k in self.indices]
        return float(np.sum(self.coefficients[rows] ** 2))

    def loss(self, rho: np.ndarray) -> float:
        kept = np.array([math.prod(r**k for r, k in zip(rho, index, strict=True)) for index in self.indices])
        return float(2 * (1 - kept) @ np.sum(self.coefficients**2, axis=1))


def quadrature(dim: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (m, dim) and weights (m,) of E f(z), z ~ N(0, I); exact up to degree 2·nodes − 1 in each coordinate."""
    at, weights = hermegauss(nodes)
    grid = np.array(list(itertools.product(at, repeat=dim)))
    products = np.array([math.prod(w) for w in itertools.product(weights / weights.sum(), repeat=dim)])
    return grid, products


def paired_quadrature(dim: int, nodes: int, rho: float | np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes z, z' and weights of E f(z, z') for pairs with correlation `rho`."""
    grid, weights = quadrature(2 * dim, nodes)
    z, noise = grid[:, :dim], grid[:, dim:]
    return z, rho * z + np.sqrt(1 - np.square(rho)) * noise, weights
