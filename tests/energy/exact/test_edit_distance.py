"""Edit distances against a recursion written from the definition, and against a search over all edits."""

import heapq
import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.edit_distance import EditCosts, edit_energies, edit_energy

WORDS = st.text("abc", max_size=5)
COSTS = st.floats(0.1, 5)
DETOUR = EditCosts(1.0, 1.0, np.array([[0, 0.1, 9], [9, 0, 0.1], [9, 9, 0]]), "abc")


def recursion(x: str, y: str, insert: float, delete: float, substitute: float) -> float:
    """The recursive definition, without a table."""

    @cache
    def rest(i: int, j: int) -> float:
        if i == len(x):
            return insert * (len(y) - j)
        if j == len(y):
            return delete * (len(x) - i)
        change = 0.0 if x[i] == y[j] else substitute
        return min(delete + rest(i + 1, j), insert + rest(i, j + 1), change + rest(i + 1, j + 1))

    return rest(0, 0)


def search(start: str, costs: EditCosts, longest: int) -> dict[str, float]:
    """The cheapest sequence of single edits to every word up to a length: Dijkstra over words, one edit at a time."""
    symbols = str(costs.alphabet)
    table = costs.table(len(symbols))
    found, front = {}, [(0.0, start)]
    while front:
        cost, word = heapq.heappop(front)
        if word in found:
            continue
        found[word] = cost
        for i, (a, symbol) in itertools.product(range(len(word) + 1), enumerate(symbols)):
            if len(word) < longest:
                heapq.heappush(front, (cost + table[-1, a], word[:i] + symbol + word[i:]))
            if i < len(word):
                old = symbols.index(word[i])
                heapq.heappush(front, (cost + table[old, -1], word[:i] + word[i + 1 :]))
                heapq.heappush(front, (cost + table[old, a], word[:i] + symbol + word[i + 1 :]))
    return found


def test_known_distances():
    assert edit_energy("kitten", "sitting") == 3
    assert edit_energy("", "abc", EditCosts(insert=2.0)) == 6
    assert edit_energy("abc", "", EditCosts(insert=2.0)) == 3
    assert edit_energy("", "") == 0
    assert edit_energy(["to", "be"], ["not", "to", "be"]) == 1


@settings(max_examples=60)
@given(WORDS, WORDS, COSTS, COSTS, COSTS)
def test_distances_match_the_recursion(x, y, insert, delete, substitute):
    found = edit_energy(x, y, EditCosts(insert, delete, substitute))
    assert found == pytest.approx(recursion(x, y, insert, delete, substitute))


@settings(max_examples=60)
@given(st.lists(WORDS, min_size=3, max_size=6), COSTS, COSTS, COSTS)
def test_distances_are_a_quasimetric(words, insert, delete, substitute):
    energy = edit_energies(words, costs=EditCosts(insert, delete, substitute))
    assert (energy[:, None, :] <= energy[:, :, None] + energy[None, :, :] + 1e-9).all()
    np.testing.assert_array_equal(energy == 0, [[x == y for y in words] for x in words])


@settings(max_examples=40)
@given(WORDS, WORDS, COSTS, COSTS)
def test_the_reverse_distance_swaps_insertions_and_deletions(x, y, insert, delete):
    one, other = EditCosts(insert, delete), EditCosts(delete, insert)
    assert edit_energy(x, y, one) == pytest.approx(edit_energy(y, x, other))


def test_costs_are_closed_to_satisfy_the_triangle_inequality():
    assert not DETOUR.is_closed
    assert edit_energy("a", "c", DETOUR) == pytest.approx(0.2)
    once = {(x, y): min(2.0, DETOUR.table(3)["abc".index(x), "abc".index(y)]) for x, y in ("ab", "bc", "ac")}
    assert once["a", "c"] > once["a", "b"] + once["b", "c"]


@pytest.mark.parametrize("seed", range(3))
def test_distances_match_a_search_over_edit_sequences(seed):
    random = np.random.default_rng(seed)
    costs = EditCosts(random.uniform(0.2, 3, 3), random.uniform(0.2, 3, 3), random.uniform(0.1, 4, (3, 3)), "abc")
    assert not costs.is_closed
    words = ["", "a", "bc", "cab"]
    for start in words:
        searched = search(start, costs, longest=5)
        np.testing.assert_allclose(edit_energies([start], words, costs)[0], [searched[word] for word in words])


def test_equal_costs_are_closed_even_if_a_substitution_costs_more_than_both():
    assert EditCosts(1.0, 2.0, 9.0).is_closed
    assert not EditCosts(np.array([1.0, 9.0]), 1.0, 0.5, "ab").is_closed  # insert a, then substitute it by b


def test_forbidden_edits_give_infinite_distances_and_no_nan():
    found = edit_energies(["ab", "abc", "b"], costs=EditCosts(insert=np.inf, substitute=np.inf))
    np.testing.assert_array_equal(found, [[0, np.inf, 1], [1, 0, 2], [np.inf, np.inf, 0]])


def test_starts_and_ends_may_differ():
    assert edit_energies(["a", "b"], ["ab", "", "b"]).tolist() == [[1, 1, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"insert": -1.0}, "insert"),
        ({"substitute": float("nan")}, "substitute"),
        ({"delete": np.ones(2)}, "alphabet"),
        ({"delete": np.ones(2), "alphabet": "abc"}, r"delete must have shape \(3,\)"),
        ({"substitute": np.ones((2, 3)), "alphabet": "ab"}, r"substitute must have shape \(2, 2\)"),
        ({"alphabet": "aba"}, "alphabet"),
    ],
)
def test_invalid_costs_are_rejected(given, message):
    with pytest.raises(InputError, match=message):
        EditCosts(**given)


def test_a_symbol_outside_the_alphabet_is_named():
    with pytest.raises(InputError, match=r"'z'.*alphabet"):
        edit_energy("az", "a", DETOUR)
