"""Masks of image patches: random splits, random rectangles, and the blocks of I-JEPA.

Masks are functions of uniform numbers, one row per image of the joint batch, which follow from (seed, name, step). They
do not depend on the number of processes. Where patches are dropped from the computation, all images keep equally many.

- `random_split`: visible and masked patches ("Masked Autoencoders Are Scalable Vision Learners").
- `rectangle_mask`: a given number of patches in rectangles ("BEiT: BERT Pre-Training of Image Transformers").
- `BlockMasks`: the blocks of "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models": four
  squares of half the image's height and width, with 60% of the patches hidden from the context.
- `MultiBlockMasks`: the blocks of "Self-Supervised Learning from Images with a Joint-Embedding Predictive
  Architecture": four smaller blocks of varying shape, and as context a large block without their patches.

Blocks may overlap each other but not the context. Blocks of half the side length nearly always cover the centre of the
image, so the context of `BlockMasks` rarely contains it; that of `MultiBlockMasks` often does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.core.lazy import lazy_import
from jepatlas.core.seeding import torch_generator

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from jepatlas.core import distributed
else:
    torch = lazy_import("torch")
    distributed = lazy_import("jepatlas.core.distributed")

__all__ = [
    "AnyBlockMasks",
    "BlockMasks",
    "Grid",
    "MultiBlockMasks",
    "PatchMasks",
    "random_split",
    "rectangle_mask",
    "uniforms",
]

Grid = tuple[int, int]
"""Rows and columns of patches."""

RECTANGLES = 12  # per image; together they cover more than half of the grid
RECTANGLE_NUMBERS = 4 * RECTANGLES
BLOCK_TRIES = 8  # sets of blocks per image; the first that leaves enough context is used
STREAM_NAME = "masks"


def uniforms(shape: tuple[int, int], seed: int, name: str, step: int) -> Tensor:
    """Uniform numbers for this process's rows of the joint batch: (b, c)."""
    return _process_rows(_joint_uniforms(shape, seed, name, step), shape[0])


def _joint_uniforms(shape: tuple[int, int], seed: int, name: str, step: int) -> Tensor:
    """Uniform numbers for the rows of all W processes, `shape[0]` each: (W · b, c)."""
    rows = distributed.world_size() * shape[0]
    return torch.rand(rows, shape[1], generator=torch_generator(seed, name, step))


def _process_rows(joint: Tensor, rows: int) -> Tensor:
    rank = distributed.rank()
    return joint[rank * rows : (rank + 1) * rows]


def random_split(u_bn: Tensor, kept: int) -> tuple[Tensor, Tensor]:
    """Sorted indices of the kept patches (b, kept) and of the others (b, n − kept)."""
    order = u_bn.argsort(1)
    return order[:, :kept].sort(1).values, order[:, kept:].sort(1).values


def rectangle_mask(u_bc: Tensor, grid: Grid, counts_b: Tensor) -> Tensor:
    """Masks with exactly `counts_b` patches per image: (b, n), true where masked.

    Rectangles of 1/8 to 1/4 of the grid with aspect ratios up to 3 : 1 are placed one after the other until enough
    patches are covered. The last rectangle is filled from the top. Patches outside all rectangles come last.
    """
    area, aspect, *place = u_bc[:, :RECTANGLE_NUMBERS].reshape(len(u_bc), RECTANGLES, 4).unbind(2)
    count, ends = grid[0] * grid[1], torch.tensor(grid)
    area, aspect = count * (1 + area) / 8, 3 ** (2 * aspect - 1)
    sides = torch.stack([(area * aspect).sqrt(), (area / aspect).sqrt()], 2).round().long().clamp(min=1)
    sides = sides.minimum(ends)
    corners = (torch.stack(place, 2) * (ends - sides + 1)).long()
    first = _first_rectangle(*_extents(corners, sides, grid))
    order = (first * count + torch.arange(count)).float()  # integers below 2²⁴: exact, and faster to sort
    limit = torch.cat([order.sort(1).values, torch.full((len(order), 1), torch.inf)], 1).gather(1, counts_b[:, None])
    return order < limit


def _extents(corners: Tensor, sides: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
    """Rows and columns of the grid that each rectangle covers: (…, rows), (…, columns)."""
    ends = corners + sides
    rows, columns = torch.arange(grid[0]), torch.arange(grid[1])
    covered_rows = (rows >= corners[..., 0, None]) & (rows < ends[..., 0, None])
    covered_columns = (columns >= corners[..., 1, None]) & (columns < ends[..., 1, None])
    return covered_rows, covered_columns


def _covered(rows: Tensor, columns: Tensor) -> Tensor:
    """Patches covered by any rectangle: (…, k, rows), (…, k, columns) → (…, n)."""
    return (rows.float().transpose(-1, -2) @ columns.float()).flatten(-2) > 0


def _first_rectangle(rows: Tensor, columns: Tensor) -> Tensor:
    """Index of the first rectangle that covers each patch, or the number of rectangles: (b, n)."""
    count = rows.shape[1]
    first = rows.new_full((len(rows), rows.shape[2], columns.shape[2]), count, dtype=torch.int64)
    for index in reversed(range(count)):
        first.masked_fill_(rows[:, index, :, None] & columns[:, index, None, :], index)
    return first.flatten(1)


@dataclass(frozen=True)
class PatchMasks:
    share: float = 0.5
    """Share of the images that are masked."""
    least: float = 0.1
    """Minimum share of masked patches in a masked image."""
    most: float = 0.5
    """Maximum share of masked patches in a masked image."""

    def __post_init__(self) -> None:
        check_argument("share", self.share, 0 < self.share <= 1, "in (0, 1]")
        if not 0 <= self.least <= self.most <= 1:
            raise InputError(f"Masks need 0 <= least <= most <= 1, but these are {self.least} and {self.most}.")

    def draw(self, rows: int, grid: Grid, seed: int, name: str, step: int) -> Tensor:
        """(b, n), true where masked."""
        numbers = uniforms((rows, RECTANGLE_NUMBERS + 2), seed, name, step)
        ratio = self.least + (self.most - self.least) * numbers[:, 0]
        counts = (ratio * grid[0] * grid[1]).round().clamp(min=1).long()
        return rectangle_mask(numbers[:, 2:], grid, torch.where(numbers[:, 1] < self.share, counts, 0))


@dataclass(frozen=True)
class BlockMasks:
    """Squares of one size; side lengths are shares of the grid's, such as 7 × 7 on 14 × 14 patches."""

    kind: ClassVar[str] = "blocks"

    blocks: int = 4
    """Number of predicted blocks."""
    side: float = 0.5
    """Side length of a block as a share of the image's."""
    hidden: float = 0.6
    """Share of patches hidden from the context; patches outside all blocks are hidden at random."""

    def __post_init__(self) -> None:
        check_count("blocks", self.blocks)
        check_argument("side", self.side, 0 < self.side < 1, "between 0 and 1")
        check_argument("hidden", self.hidden, 0 < self.hidden < 1, "between 0 and 1")

    def sizes(self, grid: Grid) -> tuple[Grid, int]:
        """Rows and columns of a block, and the number of context patches."""
        count = grid[0] * grid[1]
        block = max(1, round(self.side * grid[0])), max(1, round(self.side * grid[1]))
        context = count - round(self.hidden * count)
        if context < 1 or block[0] * block[1] + context > count:
            raise InputError(
                f"A context of {context} patches and a block of {block[0]} × {block[1]} do not fit on {grid[0]} × "
                f"{grid[1]} patches. Increase hidden, or use smaller blocks, smaller patches or larger images."
            )
        return block, context

    def draw(self, rows: int, grid: Grid, seed: int, step: int) -> tuple[Tensor, Tensor]:
        """Sorted indices of the context patches (b, k), and of the patches of each block (b, blocks, m)."""
        block, context = self.sizes(grid)
        count = grid[0] * grid[1]
        u_bc = uniforms((rows, count + _block_numbers(self.blocks)), seed, STREAM_NAME, step)
        everywhere = torch.ones(rows, count, dtype=torch.bool)
        blocks, free = _place_blocks(u_bc[:, count:], grid, block, everywhere, context)
        return _random_subset(u_bc[:, :count], free, context), blocks


@dataclass(frozen=True)
class MultiBlockMasks:
    """Areas are shares of the image's; the sizes of blocks and context are drawn once per step for all images.

    All images keep as many context patches as the image with the smallest context, chosen at random.
    """

    kind: ClassVar[str] = "multi-block"

    blocks: int = 4
    """Number of predicted blocks."""
    scale: tuple[float, float] = (0.15, 0.2)
    """Range of a block's area as a share of the image."""
    aspect: tuple[float, float] = (0.75, 1.5)
    """Range of a block's aspect ratio, height over width."""
    context: tuple[float, float] = (0.85, 1.0)
    """Range of the area of the context block, before the other blocks are removed."""

    def __post_init__(self) -> None:
        check_count("blocks", self.blocks)
        for name, largest in (("scale", 1.0), ("context", 1.0), ("aspect", math.inf)):
            low, high = getattr(self, name)
            if not 0 < low <= high <= largest:
                limit = "" if name == "aspect" else " ≤ 1"
                raise InputError(f"{name} must be a range 0 < low ≤ high{limit}, but is ({low}, {high}).")

    def sizes(self, grid: Grid, seed: int, step: int) -> tuple[Grid, Grid]:
        """Rows and columns of the blocks and of the context block in this step."""
        u, v, w = torch.rand(3, generator=torch_generator(seed, f"{STREAM_NAME}/sizes", step)).tolist()
        block = _side_lengths(grid, _interpolate(self.scale, u), _interpolate(self.aspect, v))
        window = _side_lengths(grid, _interpolate(self.context, w), grid[0] / grid[1])
        if block[0] * block[1] >= window[0] * window[1]:
            raise InputError(
                f"A block of {block[0]} × {block[1]} leaves no context in a window of {window[0]} × {window[1]}, on "
                f"{grid[0]} × {grid[1]} patches. Use smaller blocks, smaller patches or larger images."
            )
        return block, window

    def draw(self, rows: int, grid: Grid, seed: int, step: int) -> tuple[Tensor, Tensor]:
        """Sorted indices of the context patches (b, k), and of the patches of each block (b, blocks, m)."""
        block, window = self.sizes(grid, seed, step)
        count = grid[0] * grid[1]
        # The joint batch is needed, because its smallest context determines how many patches all processes keep.
        u_bc = _joint_uniforms((rows, count + 2 + _block_numbers(self.blocks)), seed, STREAM_NAME, step)
        corner = (u_bc[:, None, count : count + 2] * _corner_range(grid, window)).long()
        inside = _covered(*_extents(corner, torch.tensor(window).expand_as(corner), grid))
        smallest = max(1, count // 20)  # published: 10 of 196
        blocks, free = _place_blocks(u_bc[:, count + 2 :], grid, block, inside, smallest)
        context = _random_subset(u_bc[:, :count], free, int(free.sum(1).min()))
        return _process_rows(context, rows), _process_rows(blocks, rows)


AnyBlockMasks = BlockMasks | MultiBlockMasks


def _block_numbers(blocks: int) -> int:
    return BLOCK_TRIES * blocks * 2


def _place_blocks(u_bc: Tensor, grid: Grid, block: Grid, window_bn: Tensor, smallest: int) -> tuple[Tensor, Tensor]:
    """The patches of each block (b, blocks, m), and the patches of the window outside all blocks (b, n).

    The first try that leaves at least `smallest` patches is used; if none does, all blocks are placed at one position.
    """
    corners = (u_bc.unflatten(1, (BLOCK_TRIES, -1, 2)) * _corner_range(grid, block)).long()
    corners = torch.cat([corners, corners[:, :1, :1].expand_as(corners[:, :1])], 1)
    taken = _covered(*_extents(corners, torch.tensor(block).expand_as(corners), grid))  # (b, tries + 1, n)
    free = window_bn[:, None] & ~taken
    chosen = (free.sum(2) >= smallest).int().argmax(1)  # the first
    image = torch.arange(len(u_bc))
    inside = torch.cartesian_prod(torch.arange(block[0]), torch.arange(block[1]))
    places = corners[image, chosen][:, :, None] + inside  # (b, blocks, m, 2)
    return places[..., 0] * grid[1] + places[..., 1], free[image, chosen]


def _random_subset(u_bn: Tensor, free_bn: Tensor, count: int) -> Tensor:
    """Sorted indices of `count` random free patches: (b, count)."""
    return (u_bn + ~free_bn).topk(count, 1, largest=False).indices.sort(1).values


def _corner_range(grid: Grid, block: Grid) -> Tensor:
    """Number of rows and columns where the corner of a block may lie."""
    return torch.tensor([grid[0] - block[0] + 1, grid[1] - block[1] + 1])


def _side_lengths(grid: Grid, area: float, aspect: float) -> Grid:
    """Rows and columns of a block with a given share of the area and aspect ratio (height over width)."""
    patches = area * grid[0] * grid[1]
    high, wide = round((patches * aspect) ** 0.5), round((patches / aspect) ** 0.5)
    return min(max(1, high), grid[0]), min(max(1, wide), grid[1])


def _interpolate(ends: tuple[float, float], u: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * u
