"""Derivations against a recursive search over rules, and the order they define."""

import itertools

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.implication import Derivation, Rules

ANIMALS = [
    ("cat", "mammal", 1.0),
    ("dog", "mammal", 1.0),
    ("cat", "pet", 0.5),
    ("dog", "pet", 0.5),
    ("mammal", "animal", 2.0),
    ("pet", "animal", 4.0),
    ("animal", "thing", 0.0),
]


def cheapest(rules: list[tuple[str, str, float]], premise: str, conclusion: str) -> float:
    """Enumerate all derivations without repetition."""
    if premise == conclusion:
        return 0.0
    left = [rule for rule in rules if rule[1] != premise]  # a cheapest derivation has no cycle
    costs = (cost + cheapest(left, middle, conclusion) for start, middle, cost in rules if start == premise)
    return min(costs, default=np.inf)


def test_energies_match_an_enumeration_of_derivations():
    rules = Rules.of(ANIMALS)
    for (i, premise), (j, conclusion) in itertools.product(enumerate(rules.facts), repeat=2):
        assert rules.energies[i, j] == cheapest(ANIMALS, premise, conclusion)


@pytest.mark.parametrize("seed", range(5))
def test_random_rules_with_cycles(seed):
    random = np.random.default_rng(seed)
    edges = {(str(a), str(b)) for a, b in random.integers(7, size=(14, 2)) if a != b}
    given = [(a, b, float(random.integers(4))) for a, b in sorted(edges)]
    rules = Rules.of(given)
    expected = [[cheapest(given, p, q) for q in rules.facts] for p in rules.facts]
    np.testing.assert_array_equal(rules.energies, expected)


def test_the_cost_of_a_derivation_is_the_sum_of_its_rules():
    found = Rules.of(ANIMALS).derive("cat", "thing")
    assert found == Derivation(("cat", "mammal", "animal", "thing"), 3.0)
    costs = {rule[:2]: rule[2] for rule in ANIMALS}
    assert sum(costs[step] for step in itertools.pairwise(found.facts)) == found.cost


def test_facts_that_are_not_implied_have_infinite_energy():
    rules = Rules.of(ANIMALS)
    assert rules.derive("thing", "cat") == Derivation((), np.inf)
    assert rules.derive("cat", "dog").cost == np.inf
    assert rules.derive("cat", "cat") == Derivation(("cat",), 0.0)


def test_the_closure_is_reflexive_and_transitive():
    rules = Rules.of(ANIMALS, facts=["stone"])
    order = rules.implies
    assert rules.facts[0] == "stone" and order[0].sum() == order[:, 0].sum() == 1
    assert order.diagonal().all()
    np.testing.assert_array_equal(order.astype(int) @ order.astype(int) > 0, order)
    expected = {"cat": 5, "dog": 5, "mammal": 3, "pet": 3, "animal": 2, "thing": 1, "stone": 1}
    assert dict(zip(rules.facts, order.sum(1).tolist(), strict=True)) == expected


def test_of_two_equal_rules_the_cheaper_counts():
    assert Rules.of([("a", "b", 3.0), ("a", "b", 1.0)]).derive("a", "b").cost == 1.0


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([("a", "b", -1.0)], "a → b .*-1"),
        ([("a", "b", float("nan"))], "a → b .*nan"),
        ([("a", "b")], "rule"),
        ([], "no edges"),
    ],
)
def test_invalid_rules_are_rejected(rules, message):
    with pytest.raises(InputError, match=message):
        Rules.of(rules)


def test_an_unknown_fact_suggests_the_nearest():
    with pytest.raises(InputError, match="'mammal'"):
        Rules.of(ANIMALS).derive("cat", "mamal")
