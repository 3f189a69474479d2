"""Synthetic latents with a known answer: what a certificate must say about each, and what it must not.

    intact      latents that are a rotation of the state, possibly with a defect that must not change the answer
    corrupted   latents that are not

What cannot be seen in what is given has no answer there: without ρ, for example, noise on all coordinates looks like a
smaller ρ. `passes` and `kinds` are the allowed answers. A *false pass* is a corrupted case that passes, a *false alarm*
an intact case that fails. None (undecided) is allowed for intact cases unless the number of rows suffices to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["CASES", "Answer", "Case", "adversarial_cases"]

RHO = 0.9
Arrays = dict[str, np.ndarray]
Answers = tuple[bool | None, ...]

PASS: Answers = (True,)
NOT_FAIL: Answers = (True, None)
NOT_PASS: Answers = (False, None)
FAIL: Answers = (False,)


@dataclass(frozen=True)
class Answer:
    """What a certificate said."""

    passed: bool | None
    kind: str | None  # the diagnosis, with the true state

    def __str__(self) -> str:
        outcome = {True: "passes", False: "fails", None: "undecided"}[self.passed]
        return f"{outcome}, {self.kind}" if self.kind else outcome


@dataclass(frozen=True)
class Case:
    """How arrays are made, and the allowed answers with the true state, with ρ alone, and with neither."""

    make: Callable[[int, int, int], Arrays]  # dim, rows, seed → h, h_next, z
    intact: bool
    passes: Mapping[str, Answers]  # by what is given: "truth", "rho" or "nothing"
    kinds: tuple[str, ...] = ()  # allowed diagnoses with the true state
    mentions: str = ""  # part of the summary with the true state, or without if that is not among `passes`
    rho: float = RHO
    dims: tuple[int, ...] = (2, 4)
    rows: int = 6000

    def asked(self, arrays: Arrays, given: str) -> tuple[Arrays, float | None]:
        """The arrays and the ρ that a certificate is given."""
        if given != "truth":
            arrays = {name: array for name, array in arrays.items() if name != "z"}
        return arrays, self.rho if given == "rho" else None

    def is_right(self, answers: Mapping[str, Answer]) -> bool:
        """Whether all answers are among the allowed ones."""
        allowed = all(answer.passed in self.passes[given] for given, answer in answers.items())
        named = "truth" not in answers or not self.kinds or answers["truth"].kind in self.kinds
        return allowed and named


def world(dim: int, rows: int, seed: int, rho: float | np.ndarray = RHO) -> tuple[np.ndarray, np.ndarray]:
    z, noise = np.random.default_rng([seed, dim, 1]).standard_normal((2, rows, dim))
    return z, rho * z + np.sqrt(1 - np.square(rho)) * noise


def rotation(dim: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng([seed, dim, 2]).standard_normal((dim, dim)))[0]


def noise_of(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 3])


def encoded(encode: Callable[[np.ndarray], np.ndarray], rho: float | Callable[[int], np.ndarray] = RHO):
    """Cases h = Q·encode(z), with the same rotation Q for both views."""

    def make(dim: int, rows: int, seed: int) -> Arrays:
        z, z_next = world(dim, rows, seed, rho(dim) if callable(rho) else rho)
        h = encode(z)
        q = rotation(h.shape[1], seed)
        return {"h": h @ q, "h_next": encode(z_next) @ q, "z": z}

    return make


def changed(change: Callable[[Arrays, np.random.Generator], object]):
    """Cases h = Qz with a change of the arrays in place."""

    def make(dim: int, rows: int, seed: int) -> Arrays:
        arrays = encoded(np.copy)(dim, rows, seed)
        change(arrays, noise_of(seed))
        return arrays

    return make


def spiral(z: np.ndarray, turns: float = 1.0) -> np.ndarray:
    """The first two coordinates turned by an angle proportional to their distance from the origin."""
    angle = turns * np.pi * np.linalg.norm(z[:, :2], axis=1)
    c, s = np.cos(angle), np.sin(angle)
    turned = np.stack([c * z[:, 0] - s * z[:, 1], s * z[:, 0] + c * z[:, 1]], axis=1)
    return np.concatenate([turned, z[:, 2:]], axis=1)


def bent(z: np.ndarray) -> np.ndarray:
    return np.c_[z[:, :1] + np.sin(1.5 * z[:, 1:2]), z[:, 1:]]


def with_noise(share: float, extra: int = 0, copies: int = 1):
    """Latents with independent noise: of each coordinate, as `extra` coordinates, or of `copies` of the state."""

    def make(dim: int, rows: int, seed: int) -> Arrays:
        z, z_next = world(dim, rows, seed)
        rng = noise_of(seed)
        arrays = {"z": z}
        q = rotation(dim * copies + extra, seed)
        for name, state in (("h", z), ("h_next", z_next)):
            h = np.concatenate([state] * copies, axis=1)
            h = h + np.sqrt(share) * rng.standard_normal(h.shape)
            arrays[name] = np.c_[h, rng.standard_normal((rows, extra))] @ (q if copies == 1 else np.eye(len(q)))
        return arrays

    return make


def turning(dim: int, rows: int, seed: int) -> Arrays:
    """A frame that turns by 90° from the first row to the last."""
    z, z_next = world(dim, rows, seed)
    angle = np.linspace(0, np.pi / 2, rows)
    c, s = np.cos(angle), np.sin(angle)

    def turn(state: np.ndarray) -> np.ndarray:
        return np.c_[c * state[:, 0] - s * state[:, 1], s * state[:, 0] + c * state[:, 1], state[:, 2:]]

    return {"h": turn(z), "h_next": turn(z_next), "z": z}


def outlier_in(name: str, size: float, share: float = 0.0):
    def change(arrays: Arrays, rng: np.random.Generator) -> None:
        rows = len(arrays[name])
        bad = rng.permutation(rows)[: max(1, round(share * rows))]
        arrays[name] = arrays[name].copy()
        arrays[name][bad] = size * rng.standard_normal((len(bad), arrays[name].shape[1]))

    return changed(change)


def mislabelled(name: str, share: float):
    def change(arrays: Arrays, rng: np.random.Generator) -> None:
        rows = len(arrays[name])
        bad = rng.permutation(rows)[: round(share * rows)]
        arrays[name] = arrays[name].copy()
        arrays[name][bad] = arrays[name][np.roll(bad, 1)]

    return changed(change)


def rounded(arrays: Arrays, rng: np.random.Generator) -> None:
    for name in ("h", "h_next"):
        arrays[name] = np.round(arrays[name] * 2) / 2


def trajectory(*, shuffled: bool, missing: int = 0):
    def make(dim: int, rows: int, seed: int) -> Arrays:
        rng = noise_of(seed)
        noise = rng.standard_normal((rows + 1, dim))
        z = np.zeros((rows + 1, dim))
        z[0] = noise[0]
        for t in range(1, rows + 1):
            z[t] = RHO * z[t - 1] + np.sqrt(1 - RHO**2) * noise[t]
        h = z[:, : dim - missing] @ rotation(dim - missing, seed)
        order = rng.permutation(rows) if shuffled else np.arange(rows)
        return {"h": h[:-1][order], "h_next": h[1:][order], "z": z[:-1][order]}

    return make


def two_rates(dim: int) -> np.ndarray:
    return np.where(np.arange(dim) < dim // 2, 0.95, 0.92)


def permuted(name: str):
    def change(arrays: Arrays, rng: np.random.Generator) -> None:
        arrays[name] = rng.permutation(arrays[name])

    return changed(change)


INTACT = {"truth": PASS, "rho": NOT_FAIL, "nothing": NOT_FAIL}
CORRUPTED = {"truth": FAIL, "rho": NOT_PASS, "nothing": NOT_PASS}
VISIBLE_IN_TRUTH = {"truth": FAIL}

CASES: dict[str, Case] = {
    "rotation": Case(encoded(np.copy), True, INTACT, ("rotation",)),
    "rotation scaled": Case(encoded(lambda z: 3 * z + 5), True, INTACT, ("rotation",)),
    "two rates": Case(
        encoded(np.copy, two_rates),
        True,
        {"truth": PASS, "rho": NOT_FAIL, "nothing": NOT_FAIL},
        ("rotation",),
        rho=0.95,
        rows=20_000,
    ),
    "one outlier in h": Case(outlier_in("h", 1e3), True, INTACT, ("rotation",), "Set aside"),
    "one outlier in z": Case(outlier_in("z", 1e3), True, INTACT, ("rotation",), "Set aside"),
    "1% outliers in h": Case(outlier_in("h", 30, 0.01), True, INTACT, ("rotation",), "Set aside"),
    "1% mislabelled states": Case(mislabelled("z", 0.01), True, INTACT, ("rotation",), "Set aside"),
    "1% mislabelled pairs": Case(mislabelled("h_next", 0.01), True, INTACT, ("rotation",)),
    "trajectory": Case(trajectory(shuffled=False), True, INTACT, ("rotation",), "trajectory"),
    "shuffled trajectory": Case(trajectory(shuffled=True), True, INTACT, ("rotation",), "trajectory"),
    "noisy copies": Case(with_noise(0.01, copies=2), False, CORRUPTED, ("surplus",)),
    "three noisy copies": Case(with_noise(0.003, copies=3), False, CORRUPTED, ("surplus",), dims=(2,)),
    "noisier copies": Case(with_noise(0.1, copies=2), False, CORRUPTED, ("surplus", "noise"), dims=(2,)),
    "noise dimensions": Case(with_noise(0, extra=2), False, CORRUPTED, ("surplus",)),
    "noise": Case(with_noise(0.2), False, {"truth": FAIL, "rho": NOT_PASS}, ("noise",)),
    "cubes": Case(encoded(lambda z: z**3), False, CORRUPTED, ("warp",)),
    "sinh": Case(encoded(np.sinh), False, CORRUPTED, ("warp",)),
    "spiral": Case(encoded(spiral), False, CORRUPTED, ("bend", "scramble")),
    "shear": Case(encoded(bent), False, CORRUPTED, ("shear", "bend")),
    "linear shear": Case(
        encoded(lambda z: np.c_[z[:, :1] + 0.8 * z[:, 1:2], z[:, 1:]]), False, VISIBLE_IN_TRUTH, ("shear",)
    ),
    "missing": Case(encoded(lambda z: z[:, :-1]), False, VISIBLE_IN_TRUTH, ("missing",)),
    "folded": Case(encoded(lambda z: np.c_[z[:, :-1], np.abs(z[:, -1:])]), False, CORRUPTED, ("missing", "bend")),
    "harmonic": Case(
        encoded(lambda z: np.c_[z[:, :-1], (z[:, -1:] ** 2 - 1) / np.sqrt(2)]),
        False,
        CORRUPTED,
        ("missing", "scramble"),
    ),
    "surplus harmonics": Case(
        encoded(lambda z: np.c_[z, (z[:, :1] ** 2 - 1) / np.sqrt(2), z[:, :1] * z[:, 1:2]]),
        False,
        CORRUPTED,
        ("surplus",),
    ),
    "collapsed": Case(encoded(lambda z: np.c_[z[:, :-1], np.full(len(z), 0.3)]), False, CORRUPTED, ("collapsed",)),
    "quantised": Case(changed(rounded), False, CORRUPTED, ("quantised",)),
    "unrelated pairs": Case(
        permuted("h_next"), False, {"rho": FAIL, "nothing": NOT_PASS}, mentions="pairs are unrelated"
    ),
    "permuted states": Case(permuted("z"), False, VISIBLE_IN_TRUTH, ("scramble",), "ows of h and z"),
    "turning frame": Case(turning, False, VISIBLE_IN_TRUTH, ("drift",)),
    "one outlier in cubes": Case(
        lambda dim, rows, seed: _spoiled(encoded(lambda z: z**3)(dim, rows, seed)), False, CORRUPTED, ("warp",)
    ),
    "tangled pair among many": Case(encoded(spiral), False, CORRUPTED, ("bend",), dims=(16, 64), rows=8000),
}


def _spoiled(arrays: Arrays) -> Arrays:
    arrays["h"][7] = 1e5
    return arrays


def adversarial_cases(seeds: int) -> Iterator[tuple[str, Case, int, int]]:
    """Name, case, dimension and seed."""
    for seed in range(seeds):
        for name, case in CASES.items():
            for dim in case.dims:
                yield name, case, dim, seed
