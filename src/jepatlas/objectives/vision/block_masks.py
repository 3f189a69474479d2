"""Blocks that I-JEPA must tell, and a context that overlaps none of them.

- blocks:      as "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models" has them: four
               squares of half the image's height and width, 60% of the patches hidden from the context;
- multi-block: as "Self-Supervised Learning from Images with a Joint-Embedding Predictive Architecture" draws them:
               four smaller blocks of any shape, and as the context a large block less their patches.

Blocks lie anywhere and may overlap. With sides of one half nearly every block covers the middle of the image, so that
the first kind's context hardly ever has it; the second's often does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives.vision.masks import Grid, covered, extents, joint_uniforms, own_rows, uniforms

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_import("torch")

__all__ = ["AnyBlockMasks", "BlockMasks", "MultiBlockMasks"]

TRIES = 8  # sets of blocks drawn for each image: the first that leaves enough for the context is taken
NAME = "masks"


@dataclass(frozen=True)
class BlockMasks:
    """Squares of one size, side lengths as shares of the grid's: 7 × 7 on 14 × 14 patches."""

    kind: ClassVar[str] = "blocks"

    blocks: int = 4
    """How many blocks are predicted."""
    side: float = 0.5
    """Of a block: 7 of 14 patches."""
    hidden: float = 0.6
    """Share of the patches that the context does not see; what no block covers is hidden at random."""

    def __post_init__(self) -> None:
        if self.blocks < 1 or not 0 < self.side < 1 or not 0 < self.hidden < 1:
            raise InputError(
                f"Masks need blocks >= 1 and a side and a hidden share between 0 and 1, but {self.blocks}, "
                f"{self.side} and {self.hidden} were given."
            )

    def sizes(self, grid: Grid) -> tuple[Grid, int]:
        """A block's rows and columns, and the number of patches of the context."""
        count = grid[0] * grid[1]
        block = max(1, round(self.side * grid[0])), max(1, round(self.side * grid[1]))
        context = count - round(self.hidden * count)
        if context < 1 or block[0] * block[1] + context > count:
            raise InputError(
                f"A context of {context} patches and a block of {block[0]} × {block[1]} do not fit beside each other "
                f"on {grid[0]} × {grid[1]} patches. Hide more, or give smaller blocks or patches, or larger images."
            )
        return block, context

    def draw(self, rows: int, grid: Grid, seed: int, step: int) -> tuple[Tensor, Tensor]:
        """Indices of the context's patches (b, k), ascending, and of each block's (b, blocks, m)."""
        block, context = self.sizes(grid)
        count = grid[0] * grid[1]
        u_bc = uniforms((rows, count + _numbers(self.blocks)), seed, NAME, step)
        everywhere = torch.ones(rows, count, dtype=torch.bool)
        asked, free = _placed(u_bc[:, count:], grid, block, everywhere, context)
        return _some(u_bc[:, :count], free, context), asked


@dataclass(frozen=True)
class MultiBlockMasks:
    """Areas as shares of the image's; the size of blocks and of the context's is drawn once for all images of a step.

    Images of a step whose contexts differ in number keep as many patches as the smallest has, chosen at random.
    """

    kind: ClassVar[str] = "multi-block"

    blocks: int = 4
    """How many blocks are predicted."""
    scale: tuple[float, float] = (0.15, 0.2)
    """Between which shares of the image a block's area lies."""
    aspect: tuple[float, float] = (0.75, 1.5)
    """Between which proportions, height over width."""
    context: tuple[float, float] = (0.85, 1.0)
    """Area of the block from which the context is left when the others' patches are taken out."""

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise InputError(f"Masks need blocks >= 1, but {self.blocks} were given.")
        for name, most in (("scale", 1.0), ("context", 1.0), ("aspect", float("inf"))):
            low, high = getattr(self, name)
            if not 0 < low <= high <= most:
                raise InputError(
                    f"{name} is a range, 0 < low ≤ high{'' if name == 'aspect' else ' ≤ 1'}, but "
                    f"{low} and {high} were given."
                )

    def sizes(self, grid: Grid, seed: int, step: int) -> tuple[Grid, Grid]:
        """Rows and columns of the blocks, and of the context's block, in this step."""
        u, v, w = torch.rand(3, generator=torch_generator(seed, f"{NAME}/sizes", step)).tolist()
        block = _sides(grid, _between(self.scale, u), _between(self.aspect, v))
        window = _sides(grid, _between(self.context, w), grid[0] / grid[1])
        if block[0] * block[1] >= window[0] * window[1]:
            raise InputError(
                f"A block of {block[0]} × {block[1]} leaves nothing of a context of {window[0]} × {window[1]}, on "
                f"{grid[0]} × {grid[1]} patches. Give smaller blocks or patches, or larger images."
            )
        return block, window

    def draw(self, rows: int, grid: Grid, seed: int, step: int) -> tuple[Tensor, Tensor]:
        """Indices of the context's patches (b, k), ascending, and of each block's (b, blocks, m)."""
        block, window = self.sizes(grid, seed, step)
        count = grid[0] * grid[1]
        # Of all processes, because the smallest context of the joint batch decides how many patches all of them keep.
        u_bc = joint_uniforms((rows, count + 2 + _numbers(self.blocks)), seed, NAME, step)
        corner = (u_bc[:, None, count : count + 2] * _free(grid, window)).long()
        inside = covered(*extents(corner, torch.tensor(window).expand_as(corner), grid))
        least = max(1, count // 20)  # published: 10 of 196
        asked, free = _placed(u_bc[:, count + 2 :], grid, block, inside, least)
        seen = _some(u_bc[:, :count], free, int(free.sum(1).min()))
        return own_rows(seen, rows), own_rows(asked, rows)


AnyBlockMasks = BlockMasks | MultiBlockMasks


def _numbers(blocks: int) -> int:
    return TRIES * blocks * 2


def _placed(u_bc: Tensor, grid: Grid, block: Grid, window_bn: Tensor, least: int) -> tuple[Tensor, Tensor]:
    """The patches of each block (b, blocks, m), and which of the window no block covers (b, n).

    Where the blocks of one try leave less than `least`, the next is taken; where all do, the blocks lie on one another.
    """
    corners = (u_bc.unflatten(1, (TRIES, -1, 2)) * _free(grid, block)).long()
    corners = torch.cat([corners, corners[:, :1, :1].expand_as(corners[:, :1])], 1)
    taken = covered(*extents(corners, torch.tensor(block).expand_as(corners), grid))  # (b, tries + 1, n)
    free = window_bn[:, None] & ~taken
    tried = (free.sum(2) >= least).int().argmax(1)  # the first
    image = torch.arange(len(u_bc))
    inside = torch.cartesian_prod(torch.arange(block[0]), torch.arange(block[1]))
    places = corners[image, tried][:, :, None] + inside  # (b, blocks, m, 2)
    return places[..., 0] * grid[1] + places[..., 1], free[image, tried]


def _some(u_bn: Tensor, free_bn: Tensor, count: int) -> Tensor:
    """As many of the free patches, drawn at random, ascending: (b, count)."""
    return (u_bn + ~free_bn).topk(count, 1, largest=False).indices.sort(1).values


def _free(grid: Grid, block: Grid) -> Tensor:
    """In how many rows and columns a block's corner may lie."""
    return torch.tensor([grid[0] - block[0] + 1, grid[1] - block[1] + 1])


def _sides(grid: Grid, area: float, aspect: float) -> Grid:
    """Rows and columns of a block with a share of the grid's patches, and so many times as high as it is wide."""
    patches = area * grid[0] * grid[1]
    high, wide = round((patches * aspect) ** 0.5), round((patches / aspect) ** 0.5)
    return min(max(1, high), grid[0]), min(max(1, wide), grid[1])


def _between(ends: tuple[float, float], u: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * u
