"""The animation of the README: a planner in a maze with one-way doors, on the way to a goal and on the way back.

    python docs/figures/maze.py docs/figures/maze.gif

The colours are the exact energy E(x, goal), the least number of steps to the goal. The planner (MPPI) looks a few steps
ahead with the true dynamics and scores where it would arrive by this energy.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from jepatlas.experiments.planning.exact_planning import exact_agent, exact_energy
from jepatlas.planning import MPPIConfig
from jepatlas.workflows.plan import Drive, DrivingConfig, Tasks, drive
from jepatlas.worlds import Maze

CELLS = 5
PIXELS = 90  # of the landscape, along a side
PAUSE = 8  # frames at the end of a way


class SeenFromAbove(Maze):
    """A maze whose observation is the position."""

    def observe(self, states: np.ndarray) -> np.ndarray:
        return states


def cell_centre(cell: int) -> np.ndarray:
    return (np.array([cell % CELLS, cell // CELLS]) + 0.5) * 2 / CELLS - 1


def through_the_first_door(world: Maze) -> tuple[np.ndarray, np.ndarray]:
    """The two cells that the first one-way door connects."""
    before, behind = world.openings[0]
    return cell_centre(before), cell_centre(behind)


def drive_way(world: Maze, start: np.ndarray, goal: np.ndarray) -> Drive:
    config = DrivingConfig(planner=MPPIConfig(horizon=8, samples=96, iterations=3), steps=120, replan=2)
    return drive(world, exact_agent(world, exact_energy(world)), Tasks(start[None], goal[None]), config)


def landscape(world: Maze, goal: np.ndarray) -> np.ndarray:
    axis = np.linspace(-1, 1, PIXELS)
    places = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    energies = np.full(len(places), np.nan)
    free = world.admits(places)
    energies[free] = world.distance_to(goal, places[free])
    return energies.reshape(PIXELS, PIXELS)


def draw_walls(axes: Axes, world: Maze) -> None:
    walls = world.walls
    for low, high in zip(walls.low[walls.solid], walls.high[walls.solid], strict=True):
        axes.add_patch(Rectangle(low, *(high - low), color="0.15", linewidth=0))
    doors = ~walls.solid
    for low, high, direction in zip(walls.low[doors], walls.high[doors], walls.direction[doors], strict=True):
        axes.plot(*np.stack([low, high], axis=1), color="white", linewidth=2, linestyle=(0, (1, 1)))
        middle = (low + high) / 2
        arrow = {"arrowstyle": "-|>", "color": "white", "linewidth": 1.5}
        axes.annotate("", middle + 0.13 * direction, middle - 0.13 * direction, arrowprops=arrow)


def main(path: str) -> None:
    world = SeenFromAbove(cells=CELLS, seed=2, loops=3, one_way=True)
    start, goal = through_the_first_door(world)
    ways = [drive_way(world, start, goal), drive_way(world, goal, start)]
    lands = [landscape(world, goal), landscape(world, start)]
    top = max(float(np.nanmax(land[np.isfinite(land)])) for land in lands)
    frames = [(way, step) for way in (0, 1) for step in [*range(ways[way].steps[0] + 1)] + [-1] * PAUSE]

    sheet, axes = plt.subplots(figsize=(4.2, 4.7))
    sheet.subplots_adjust(left=0.02, right=0.98, bottom=0.02, top=0.89)
    axes.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[], aspect="equal", facecolor="0.15")
    picture = axes.imshow(lands[0], origin="lower", extent=(-1, 1, -1, 1), cmap="viridis_r", vmin=0, vmax=top)
    draw_walls(axes, world)
    (trail,) = axes.plot([], [], color="white", linewidth=1.6)
    (here,) = axes.plot([], [], "o", color="#ff4b3e", markersize=11, markeredgecolor="white")
    (target,) = axes.plot([], [], "*", color="white", markersize=18, markeredgecolor="0.15")
    title = axes.set_title("", fontsize=12)

    def show(frame: tuple[int, int]) -> None:
        way, step = frame
        driven = ways[way]
        step = int(driven.steps[0]) if step < 0 else step
        picture.set_data(lands[way])
        trail.set_data(*driven.states[0, : step + 1].T)
        here.set_data(*driven.states[0, step : step + 1].T)
        target.set_data(*driven.tasks.goals[0][:, None])
        exact = world.distance_to(driven.tasks.goals[0], driven.tasks.starts)[0]
        title.set_text(f"{('there', 'back')[way]}: E = {exact:.0f} steps, driven {step}")

    FuncAnimation(sheet, show, frames).save(path, writer=PillowWriter(fps=12), dpi=80)
    for name, driven in zip(("there", "back"), ways, strict=True):
        print(name, "reached" if driven.reached[0] else "not reached", "after", driven.steps[0], "steps")


if __name__ == "__main__":
    main(sys.argv[1])
