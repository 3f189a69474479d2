"""Graphs of gymnasium environments against random play in the environments."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import register
from gymnasium.spaces import Box, Discrete
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from jepatlas.core.errors import InputError
from jepatlas.worlds import GymTable

TABLES = [GymTable("CliffWalking-v1"), GymTable("FrozenLake-v1"), GymTable("FrozenLake8x8-v1")]
HOLES = {"FrozenLake-v1": 4, "FrozenLake8x8-v1": 10}

every_table = pytest.mark.parametrize("world", TABLES, ids=lambda world: world.env)


class Ring(gymnasium.Env):
    """Five states in a directed cycle, without a transition table. With `random`, some steps are skipped."""

    action_space = Discrete(2)
    observation_space = Discrete(5, start=1)

    def __init__(self, random: bool = False) -> None:
        self.random = random
        self.state: int | None = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 1
        return self.state, {}

    def step(self, action):
        assert self.state is not None
        move = int(self.np_random.integers(2)) if self.random else 1
        self.state = 1 + (self.state - 1 + move * int(action)) % 5
        return self.state, -2.0 * int(action), False, False, {}


class HiddenState(Ring):
    """A ring whose state cannot be set."""

    def reset(self, *, seed=None, options=None):
        self.state = None
        return 1, {}


class Continuous(Ring):
    observation_space = Box(-1.0, 1.0, (2,))  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]


for name, env in {
    "Ring": Ring,
    "RandomRing": partial(Ring, random=True),
    "HiddenState": HiddenState,
    "Continuous": Continuous,
}.items():
    register(f"jepatlas/{name}-v0", partial(env))


def energies(world: GymTable) -> np.ndarray:
    graph = world.graph
    return dijkstra(coo_array((graph.cost, (graph.source, graph.target)), (graph.size, graph.size)).tocsr())


def played(name: str, **options) -> tuple[set[tuple[int, int]], set[int]]:
    """Steps and terminal states of many random episodes, collected with gymnasium."""
    env = gymnasium.make(name, max_episode_steps=60, **options)
    env.action_space.seed(0)
    steps, final = set(), set()
    for episode in range(800):
        state, over, cut = int(env.reset(seed=episode)[0]), False, False
        while not (over or cut):
            end, _, over, cut, _ = env.step(env.action_space.sample())
            if end != state:
                steps.add((state, int(end)))
            state = int(end)
        final |= {state} if over else set()
    return steps, final


@pytest.mark.parametrize("name", ["CliffWalking-v1", "FrozenLake-v1"])
def test_graph_against_random_play(name):
    world = GymTable(name)
    steps, final = played(name, is_slippery=False)
    graph = world.graph
    given = set(zip(world.numbers[graph.source].tolist(), world.numbers[graph.target].tolist(), strict=True))
    assert steps <= given
    assert set(world.numbers.tolist()) >= {state for step in steps for state in step}
    assert not final & {s for s, _ in given}
    if name == "FrozenLake-v1":  # small enough for random play to visit every step
        assert steps == given


def test_cliff_leads_back_to_the_start():
    world = GymTable("CliffWalking-v1", cost="reward")
    found = energies(world)
    place = {tuple(cell): i for i, cell in enumerate(world.positions.astype(int).tolist())}
    start, above_goal, goal = place[3, 0], place[2, 11], place[3, 11]
    assert found[start, goal] == 1 + 11 + 1
    assert found[above_goal, start] == 12  # along the edge, which costs less than falling
    assert found[place[2, 5], start] == 6
    assert np.isinf(found[goal, start])
    assert world.graph.cost.max() == 100
    assert energies(GymTable("CliffWalking-v1"))[above_goal, start] == 2  # one step left, then fall


@pytest.mark.parametrize("name", HOLES)
def test_terminal_states_have_no_outgoing_edges(name):
    world = GymTable(name)
    found = energies(world)
    kept = np.isinf(found).sum(1) == len(found) - 1
    letters = gymnasium.make(name).unwrapped.desc.ravel()[world.numbers]  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_array_equal(kept, (letters == b"H") | (letters == b"G"))
    assert (letters == b"H").sum() == HOLES[name]
    start, goal = (int(np.flatnonzero(letters == letter)[0]) for letter in (b"S", b"G"))
    assert found[start, goal] == {"FrozenLake-v1": 6, "FrozenLake8x8-v1": 14}[name]


@every_table
def test_walks_follow_edges_and_end_in_terminal_states(world):
    seen = world.walk(episodes=100, length=25, seed=0)
    place = {tuple(cell): i for i, cell in enumerate(world.positions)}
    edges = set(zip(world.graph.source.tolist(), world.graph.target.tolist(), strict=True))
    pairs = [(place[tuple(a)], place[tuple(b)]) for a, b in zip(seen.z, seen.z_next, strict=True)]
    assert set(pairs) <= edges
    last = np.flatnonzero(np.append(np.diff(seen.episode) != 0, True))
    short = np.bincount(seen.episode, minlength=100) < 25
    assert {pairs[i][1] for i in last[short]} & set(world.graph.source.tolist()) == set()
    assert short.any()
    assert np.abs(seen.x).max() == 1 and seen.x.shape[1] == world.observed_dim == 2


def test_environments_without_a_table_are_explored():
    world = GymTable("jepatlas/Ring-v0", cost="reward")
    around = (np.arange(5)[None, :] - np.arange(5)[:, None]) % 5
    np.testing.assert_array_equal(energies(world), 2 * around)


def test_states_without_a_grid_are_one_hot():
    world = GymTable("jepatlas/Ring-v0")
    seen = world.walk(episodes=3, length=4, seed=0)
    assert world.observed_dim == 5 and seen.z is not None
    np.testing.assert_array_equal(seen.x.argmax(1), seen.z[:, 0])
    np.testing.assert_array_equal(seen.x.sum(1), 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CliffWalkingSlippery-v1", "is_slippery=False"),
        ("jepatlas/RandomRing-v0", "RandomRing"),
        ("jepatlas/HiddenState-v0", "HiddenState"),
        ("jepatlas/Continuous-v0", "observation"),
        ("NoSuchWorld-v7", "NoSuchWorld-v7"),
    ],
)
def test_unsupported_environments_are_refused(name, message):
    with pytest.raises(InputError, match=message):
        _ = GymTable(name).graph


def test_positive_rewards_are_refused_as_costs():
    with pytest.raises(InputError, match="'step'"):
        _ = GymTable("FrozenLake-v1", cost="reward").graph


def test_unknown_cost_is_refused():
    with pytest.raises(InputError, match="rewards"):
        GymTable(cost="rewards")  # pyright: ignore[reportArgumentType]
