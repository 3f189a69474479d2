import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.medium import Medium

STILL = np.zeros((4, 6, 2))


def test_places_and_points_are_inverse() -> None:
    medium = Medium(STILL, origin=(2.0, -1.0), spacing=(0.5, 0.25))
    points = np.array([[2.0, -1.0], [4.5, -0.25], [3.1, -0.6]])
    np.testing.assert_allclose(medium.places(points)[:2], [[0, 0], [3, 5]])
    np.testing.assert_allclose(medium.points(medium.places(points)), points)


def test_the_field_holds_the_current_and_the_metric_of_own_motion() -> None:
    metric = np.array([[2.0, 0.5], [0.5, 1.0]])
    field = Medium(np.full((4, 6, 2), [0.1, 0.2]), speed=2.0, metric=metric).field
    np.testing.assert_allclose(field[1, 2], [0.1, 0.2, 0.5, 0.125, 0.25])
    np.testing.assert_allclose(Medium(np.full((4, 6, 2), [0.1, 0.2])).reversed.field[0, 0], [-0.1, -0.2, 1, 0, 1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"current": np.zeros((4, 6))}, r"\(h, w, 2\)"),
        ({"current": np.zeros((1, 6, 2))}, "current"),
        ({"current": np.full((4, 6, 2), np.nan)}, "current .*finite"),
        ({"speed": 0.0}, "speed"),
        ({"speed": np.ones((6, 4))}, "speed has shape"),
        ({"metric": np.array([[1.0, 2.0], [2.0, 1.0]])}, "positive definite"),
        ({"metric": np.array([[1.0, 0.5], [0.0, 1.0]])}, "symmetric"),
        ({"passable": np.ones((6, 4), dtype=bool)}, "passable"),
        ({"passable": np.ones((4, 6))}, "passable"),
        ({"spacing": (1.0, 0.0)}, "spacing"),
    ],
)
def test_invalid_media_are_rejected(given: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Medium(**{"current": STILL, **given})
