"""The figure of the README: one plane, two tangled views of it, the latents learned from each, and the map between.

    make tour && python docs/figures/idea.py runs/tour docs/figures/idea.png

Ada and Ben are the two agents of the tour. Each was trained with LeJEPA on pairs of consecutive observations of its own
mixing, and on nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib import colors
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import ConnectionPatch
from PIL import Image

import jepatlas as ja
from jepatlas.alignment import LeastSquaresMap
from jepatlas.core.seeding import torch_generator
from jepatlas.recipes import Recipe, read_any_recipe

STATES = 10_000
SHOWN = 3000


def latents(run: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, observations in units of their spread, and latents of an agent. Both agents see the same states."""
    recipe = read_any_recipe(run / "recipe.yaml")
    assert isinstance(recipe, Recipe)
    z = recipe.world.states(STATES, torch_generator(0, "figure"))
    x = recipe.world.observe(z)
    return z.numpy(), (x / x.std(0)).numpy(), ja.encode(run, x)


def r2_of(z: np.ndarray, h: np.ndarray) -> float:
    """R² of the state from the latents, fitted on the first half of the rows and scored on the second."""
    half = len(z) // 2
    return LeastSquaresMap().fit(h[:half], z[:half]).score(h[half:], z[half:])


def state_colours(z: np.ndarray) -> np.ndarray:
    """Hue from the direction of a state; rings of its distance to the origin are light and dark in turn."""
    angle = np.arctan2(z[:, 1], z[:, 0]) / (2 * np.pi) % 1
    ring = np.linalg.norm(z, axis=1) % 1.0 < 0.5
    return colors.hsv_to_rgb(np.stack([angle, np.where(ring, 0.9, 0.45), np.where(ring, 0.75, 0.95)], axis=1))


def scatter(axes: Axes, points: np.ndarray, colour: np.ndarray, title: str) -> None:
    axes.scatter(*points[:SHOWN].T, c=colour[:SHOWN], s=2.5, linewidths=0)
    axes.set(xlim=(-3.6, 3.6), ylim=(-3.6, 3.6), xticks=[], yticks=[], aspect="equal")
    axes.set_title(title, fontsize=10)
    axes.spines[:].set_color("0.8")


def arrow(start: Axes, at: tuple[float, float], end: Axes, to: tuple[float, float], style: str = "-|>") -> None:
    between = {"coordsA": start.transAxes, "coordsB": end.transAxes, "color": "0.35", "linewidth": 1.4}
    start.figure.add_artist(ConnectionPatch(at, to, arrowstyle=style, mutation_scale=14, **between))


def main(tour: str, path: str) -> None:
    found = {name: latents(Path(tour, "agents", name.lower())) for name in ("Ada", "Ben")}
    z, _, ada = found["Ada"]
    alignment = ja.align(ada, found["Ben"][2], kind="procrustes", permutations=19, names=("Ada", "Ben"))
    turn = alignment.map.raw_weight

    sheet = plt.figure(figsize=(8.4, 5.2))
    grid = sheet.add_gridspec(2, 3, wspace=0.3, hspace=0.36, left=0.01, right=0.99, top=0.94, bottom=0.02)
    colour = state_colours(z)
    truth = sheet.add_subplot(grid[:, 0])
    scatter(truth, z, colour, "the true state z")
    recovered = []
    for row, (name, (_, x, h)) in enumerate(found.items()):
        view, latent = sheet.add_subplot(grid[row, 1]), sheet.add_subplot(grid[row, 2])
        scatter(view, x, colour, f"what {name} observes")
        scatter(latent, h, colour, f"{name}'s latents: R² of z {r2_of(z, h):.3f}")
        arrow(truth, (1.02, 0.62 - 0.24 * row), view, (-0.04, 0.5))
        arrow(view, (1.04, 0.5), latent, (-0.04, 0.5))
        recovered.append(latent)
    arrow(recovered[0], (0.5, -0.03), recovered[1], (0.5, 1.14), "<|-|>")
    kind = "rotation" if np.linalg.det(turn) > 0 else "rotation with mirror image"
    text = f"{kind}:\nR² {alignment['r2'].value:.3f}"
    recovered[0].text(0.56, -0.11, text, transform=recovered[0].transAxes, fontsize=9, va="center")
    sheet.savefig(path, dpi=110)
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
