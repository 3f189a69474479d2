"""Diagnosis of the map from states to latents."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from jepatlas.core.records import Verdict
from jepatlas.identifiability import Diagnosis, certify, diagnose

Encode = Callable[[np.ndarray], np.ndarray]
JUDGED = ("effective_rank", "coverage", "r2", "r2_inverse", "orthogonality", "stretch")


def states(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, dim))


def turn(dim: int, seed: int = 7) -> np.ndarray:
    return np.linalg.qr(states(dim, dim, seed))[0]


def noise(z: np.ndarray, columns: int | None = None) -> np.ndarray:
    return states(len(z), columns or z.shape[1], seed=99)


def pairs_of(encode: Encode, dim: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    z = states(rows, dim)
    return z, encode(z), encode(0.9 * z + math.sqrt(1 - 0.9**2) * states(rows, dim, seed=98))


def verdicts_of(encode: Encode, dim: int, rows: int = 2000, **options) -> list[Verdict]:
    z, h, h_next = pairs_of(encode, dim, rows)
    return certify(h, h_next, z, replicates=20, **options)


def diagnosed(encode: Encode, dim: int, rows: int = 2000) -> Diagnosis:
    found = diagnose(verdicts_of(encode, dim, rows))
    assert found is not None
    return found


def sinusoidal(z: np.ndarray) -> np.ndarray:
    return np.c_[z[:, :1] + np.sin(1.5 * z[:, 1:2]), z[:, 1:]]


def parabolic(z: np.ndarray) -> np.ndarray:
    return np.c_[z[:, :1], z[:, 1:2] + z[:, :1] ** 2, z[:, 2:]]


def spiral(z: np.ndarray) -> np.ndarray:
    angle = math.pi * np.linalg.norm(z[:, :2], axis=1)
    c, s = np.cos(angle), np.sin(angle)
    return np.c_[c * z[:, 0] - s * z[:, 1], s * z[:, 0] + c * z[:, 1], z[:, 2:]]


def turned(z: np.ndarray) -> np.ndarray:
    return z @ turn(z.shape[1])


CASES: dict[str, tuple[str, Encode]] = {
    "a rotation": ("rotation", lambda z: turned(z) + 5),
    "a permutation with signs": ("rotation", lambda z: -z[:, ::-1]),
    "a rotation with a little noise": ("rotation", lambda z: turned(z) + 0.1 * noise(z)),
    "an agent that is a little too small": ("rotation", lambda z: 0.92 * turned(z)),  # raw orthogonality .15
    "rows dealt anew": ("scramble", lambda z: np.random.default_rng(3).permutation(z)),
    "waves": ("scramble", lambda z: np.sin(4 * z @ states(z.shape[1], z.shape[1], 8))),
    "squares": ("scramble", lambda z: z**2),
    "a linear shear": ("shear", lambda z: np.c_[z[:, :1] + 0.8 * z[:, 1:2], z[:, 1:]]),
    "a linear shear, turned": ("shear", lambda z: turned(np.c_[z[:, :1] + 0.8 * z[:, 1:2], z[:, 1:]])),
    "a sinusoidal shear": ("shear", sinusoidal),
    "a sinusoidal shear, turned": ("shear", lambda z: turned(sinusoidal(z))),
    "a sinusoidal shear of turned states": ("shear", lambda z: sinusoidal(turned(z))),
    "a parabolic shear": ("shear", parabolic),
    "cubes": ("warp", lambda z: z**3),
    "cubes, turned": ("warp", lambda z: turned(z**3)),
    "cubes of turned states": ("warp", lambda z: turned(z) ** 3),
    "a mild cubic warp": ("warp", lambda z: turned(z + 0.1 * z**3)),
    "a saturation": ("warp", lambda z: np.tanh(2 * z)),
    "a column that is not there": ("missing", lambda z: z[:, :-1]),
    "a direction that is not there": ("missing", lambda z: turned(z)[:, :-1]),
    "a column of noise": ("missing", lambda z: np.c_[z[:, :-1], noise(z, 1)]),
    "a column twice": ("missing", lambda z: np.c_[z[:, :-1], -z[:, :1]]),
    "a column without variance": ("collapsed", lambda z: np.c_[z[:, :-1], np.full(len(z), 0.3)]),
    "a column of rounding": ("collapsed", lambda z: np.c_[z[:, :-1], 1e-7 * z[:, -1:]]),
    "a direction without variance": ("collapsed", lambda z: turned(np.c_[z[:, :-1], np.zeros(len(z))])),
    "nothing at all": ("collapsed", np.zeros_like),
    "much noise": ("noise", lambda z: z + noise(z)),
    "one harmonic too many": ("surplus", lambda z: np.c_[z, (z[:, :1] ** 2 - 1) / math.sqrt(2)]),
    "one column too many": ("surplus", lambda z: np.c_[z, z[:, :1]]),
    "mixtures of fewer states": ("surplus", lambda z: z @ states(z.shape[1], z.shape[1] + 3, 8)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dim", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_each_map_gets_its_diagnosis(name: str, dim: int):
    kind, encode = CASES[name]
    verdicts = verdicts_of(encode, dim)
    found, by_name = diagnose(verdicts), {verdict.name: verdict for verdict in verdicts}
    assert found is not None and found.kind == kind, found
    verdict = by_name["diagnosis"]
    assert verdict is verdicts[0]  # the diagnosis is the first verdict
    assert verdict.advice == found.sentence and kind in found.sentence.lower()
    # it passes iff all verdicts with truth pass, and its share is in range
    assert verdict.passed is all(by_name[judged].passed for judged in JUDGED) is (kind == "rotation")
    assert verdict.value == 0 if kind == "rotation" else verdict.value > 0.02
    assert found == diagnose(Verdict.from_json(json.loads(json.dumps(v.to_json()))) for v in verdicts)


def test_invertible_scramble_is_distinguished_from_information_loss():
    found = diagnosed(spiral, 2)
    assert found.kind == "scramble" and "a nonlinear function of them recovers it" in found.sentence
    assert "rows of h and z belong together" in diagnosed(CASES["rows dealt anew"][1], 2).sentence


@pytest.mark.parametrize(("score", "finds"), [(-0.58, False), (0.0, False), (0.05, False), (0.6, True)])
def test_negative_r2_is_not_reported_as_recovery(score: float, finds: bool):
    """With few episodes of images, a direction may be detected although R² is negative."""
    verdicts = [replace(v, value=score) if v.name == "r2_nonlinear" else v for v in verdicts_of(spiral, 2)]
    found = diagnose(verdicts)
    assert found is not None and found.kind == "scramble" and f"(R² {score:.2f})" in found.sentence
    assert ("function of them recovers it" in found.sentence) is finds
    assert ("recover little of it" in found.sentence) is not finds


def test_most_basic_of_several_defects_is_reported_first():
    cube = diagnosed(lambda z: np.c_[z[:, :-1] ** 3, np.zeros(len(z))], 3)
    assert (cube.kind, cube.also) == ("collapsed", ("warp",))
    assert "1 of 3 latent directions" in cube.sentence and "Also found: a warp." in cube.sentence
    narrow = diagnosed(lambda z: np.c_[z[:, :1], np.zeros(len(z))], 3)  # one column dead, two states lost
    assert (narrow.kind, narrow.also) == ("collapsed", ("missing",))
    bent = diagnosed(lambda z: np.c_[parabolic(z)[:, :2], noise(z, 1)], 3)
    assert bent.kind == "missing" and set(bent.also) == {"shear", "noise"}
    leaning = diagnosed(lambda z: (z**3) @ np.array([[1.0, 0.8], [0.0, 1.0]]), 2)
    assert (leaning.kind, leaning.also) == ("warp", ("shear",))


def test_latents_of_small_scale_may_contain_the_state():
    """A state at small scale is recovered by least squares; a constant column contains nothing."""
    small = diagnosed(lambda z: z * [1.0, 1e-6], 2).sentence
    assert "(R² 1.00 with them, 0.50 without)" in small and "fewer" not in small
    idle = diagnosed(lambda z: np.c_[z, np.zeros(len(z))], 2).sentence
    assert "the others contain the whole state. Use fewer latents." in idle
    hidden = diagnosed(
        lambda z: np.c_[z[:, :1], 1e-6 * z[:, 1:], noise(z, 1)], 2
    ).sentence  # as many varying latents as states
    assert "still contain" in hidden and "contain the whole state" not in hidden


def test_mixtures_of_fewer_states_are_not_collapsed():
    verdicts = {v.name: v for v in verdicts_of(lambda z: z @ states(2, 5, 8), 2)}
    found = diagnose(verdicts.values())
    assert found is not None and "3 of them are linear combinations of the others" in found.sentence
    assert verdicts["effective_rank"].value == 2 and verdicts["varying_coordinates"].value == 5
    assert "none is a function" not in verdicts["state_directions"].advice


def test_warp_is_inverted():
    verdicts = {v.name: v for v in verdicts_of(lambda z: 3 * turned(z + 0.3 * z**3), 3)}
    found, undone = diagnose(verdicts.values()), verdicts["r2_unwarped"]
    assert found is not None and found.kind == "warp" and undone.value > 0.99 > verdicts["r2"].value
    assert f"with fit_warp, gives R² {undone.value:.4f}" in found.sentence
    assert "r2_unwarped" not in {v.name for v in verdicts_of(parabolic, 2)}


def test_missing_states_are_named():
    assert "missing: z[1]." in diagnosed(lambda z: z[:, [0, 2]], 3).sentence
    assert "mixture of coordinates" in diagnosed(lambda z: z[:, :1] + z[:, 1:], 2).sentence
    assert "Latent coordinate 1 repeats coordinate 0" in diagnosed(lambda z: z[:, [0, 0]], 2).sentence


def test_common_scale_is_allowed():
    assert "scaled" in diagnosed(lambda z: 3 * turned(z), 2).sentence
    assert "scaled" not in diagnosed(turned, 2).sentence


def test_too_few_samples_are_not_reported_as_corruption():
    """The true R² is .985; with 40 rows its interval extends below .98."""
    found = diagnosed(lambda z: turned(z) + 0.12 * noise(z), 2, rows=40)
    assert found.kind == "undecided" and "more samples" in found.sentence
    assert diagnosed(lambda z: turned(z) + 0.12 * noise(z), 2, rows=20_000).kind == "rotation"


def test_unexplained_nonlinearity_is_a_bend():
    def swirl(z: np.ndarray) -> np.ndarray:
        angle = 0.7 * np.linalg.norm(z, axis=1)
        c, s = np.cos(angle), np.sin(angle)
        return np.c_[c * z[:, 0] - s * z[:, 1], s * z[:, 0] + c * z[:, 1]]

    assert diagnosed(swirl, 2).kind == "bend"


def test_warp_of_rotated_states_is_not_diagnosed_as_shear():
    """h = w(Qz): heavy tails make `stretch` fail by chance, but after inverting the warp no shear remains."""
    z, h, h_next = pairs_of(lambda z: turned(z) ** 3 / math.sqrt(15), 5, 4000)
    verdicts = {v.name: v for v in certify(h, h_next, z, replicates=20)}
    found, undone = diagnose(verdicts.values()), verdicts["r2_unwarped"]
    assert found is not None and (found.kind, found.also) == ("warp", ())
    assert undone.value > 0.98 > verdicts["r2_unwarped_states"].value + 0.1
    assert f"h = w(Qz), with fit_latent_warp, gives R² {undone.value:.4f}" in found.sentence
    steep = verdicts_of(lambda z: turned(z) ** 5, 5)
    found, by_name = diagnose(steep), {v.name: v for v in steep}
    assert by_name["stretch"].passed is False and by_name["stretch_unwarped"].high < 0.3
    assert found is not None and found.kind == "warp" and "shear" not in found.also


@pytest.mark.parametrize("curve", [lambda u: u**3, lambda u: u + 0.1 * u**3], ids=["cubes", "mild"])
@pytest.mark.parametrize("dim", [2, 4])
def test_warp_between_two_rotations_is_diagnosed_as_warp(curve: Encode, dim: int):
    found = diagnosed(lambda z: curve(z @ turn(dim, 3)) @ turn(dim, 5), dim, rows=4000)
    assert found.kind == "warp", found


def test_one_corrupted_direction_is_not_diluted_by_intact_ones():
    """The nonlinear part of one cube is 0.4/n of the variance, within the tolerance of R²; it is still not a shear."""
    dim = 24

    def one_cube(z: np.ndarray) -> np.ndarray:
        return turned(np.c_[z[:, :-1], z[:, -1:] ** 3 / math.sqrt(15)])

    def one_noisy(z: np.ndarray) -> np.ndarray:
        return turned(np.c_[z[:, :-1], (z[:, -1:] + noise(z, 1)) / math.sqrt(2)])

    cube, noisy = diagnosed(one_cube, dim, rows=4000), diagnosed(one_noisy, dim, rows=4000)
    assert (cube.kind, noisy.kind) == ("warp", "noise")
    assert "of a single direction's" in cube.sentence
    leaning = diagnosed(lambda z: turned(z * np.r_[2.0, np.ones(dim - 1)]) + 0.1 * noise(z), dim, rows=4000)
    assert leaning.kind == "shear" and "linear in the state" in leaning.sentence


def test_no_diagnosis_without_true_states():
    z = states(300, 2)
    assert diagnose(certify(z, states(300, 2, seed=1), rho=0.5, replicates=5)) is None


def test_groups_are_not_split():
    """Latents encode only the group: if split by row, a function of them would recover the state."""
    z = np.repeat(states(80, 2), 25, axis=0)
    identity = np.repeat(states(80, 2, seed=1), 25, axis=0)
    groups = np.repeat(np.arange(80), 25)
    found = [certify(identity, -identity, z, groups=labels, replicates=20) for labels in (None, groups)]
    by_row, by_group = ({v.name: v for v in verdicts}["r2_nonlinear"].value for verdicts in found)
    assert by_row > 0.3 and by_group < 0.1
    diagnosis = diagnose(found[1])
    assert diagnosis is not None and diagnosis.kind == "scramble"
