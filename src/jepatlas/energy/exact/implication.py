"""Implication with costs: E(p, q) is the cost of the cheapest derivation of q from p by rules "p implies r".

    E(p, p) = 0,    E(p, q) = min over rules p → r of cost + E(r, q),    +∞ if p does not imply q

Implication is not symmetric, so no symmetric distance can represent it. Rules have one premise each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.graphs import Graph
from jepatlas.energy.exact.shortest_paths import graph_energies, shortest_path

__all__ = ["Derivation", "Rules"]

Rule = tuple[str, str, float]


@dataclass(frozen=True)
class Derivation:
    """The facts from premise to conclusion and the cost; no facts and +∞ if there is no derivation."""

    facts: tuple[str, ...]
    cost: float


@dataclass(frozen=True)
class Rules:
    """Facts by name and the graph of rules between them.

    >>> rules = Rules.of([("cat", "mammal", 1.0), ("dog", "mammal", 1.0), ("mammal", "animal", 2.0)])
    >>> rules.derive("cat", "animal")
    Derivation(facts=('cat', 'mammal', 'animal'), cost=3.0)
    >>> rules.derive("animal", "cat").cost
    inf
    """

    facts: tuple[str, ...]
    graph: Graph

    @classmethod
    def of(cls, rules: Iterable[Rule], facts: Iterable[str] = ()) -> Self:
        """Build from (premise, conclusion, cost). `facts` adds facts that no rule names; they come first."""
        rules = [_check_rule(rule) for rule in rules]
        ends = [(premise, conclusion) for premise, conclusion, _ in rules]
        named = tuple(dict.fromkeys((*facts, *(fact for pair in ends for fact in pair))))
        number = {name: i for i, name in enumerate(named)}
        edges = np.array([(number[p], number[q]) for p, q in ends], dtype=np.int64).reshape(-1, 2)
        return cls(named, Graph(len(named), edges[:, 0], edges[:, 1], np.array([cost for _, _, cost in rules])))

    def index(self, fact: str) -> int:
        if fact not in self.facts:
            raise InputError(f"Unknown fact '{fact}'. {did_you_mean(fact, self.facts)}")
        return self.facts.index(fact)

    @cached_property
    def energies(self) -> np.ndarray:
        """E between all facts in the order of `facts`, (n, n)."""
        return graph_energies(self.graph)

    @property
    def implies(self) -> np.ndarray:
        """Mask of the pairs whose row implies their column, (n, n): the reflexive transitive closure of the rules.

        An order embedding has to reproduce it.
        """
        return np.isfinite(self.energies)

    def derive(self, premise: str, conclusion: str) -> Derivation:
        """The cheapest derivation."""
        start, goal = self.index(premise), self.index(conclusion)
        path = shortest_path(self.graph, start, goal)
        return Derivation(tuple(self.facts[node] for node in path), float(self.energies[start, goal]))


def _check_rule(rule: Rule) -> Rule:
    try:
        premise, conclusion, cost = rule
        cost = float(cost)
    except (TypeError, ValueError) as error:
        raise InputError(f"A rule must be (premise, conclusion, cost), but {rule!r} was given.") from error
    if not cost >= 0:
        raise InputError(f"The cost of {premise} → {conclusion} must be at least 0, but {cost:g} was given.")
    return premise, conclusion, cost
