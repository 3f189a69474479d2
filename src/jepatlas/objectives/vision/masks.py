"""Which patches an objective sees, and which it must tell: blocks and random sets, drawn for all images at once.

Masks are functions of uniform numbers, one row for each image of the joint batch. Those numbers follow from (seed,
name, step) alone, so that W processes draw the masks that one would. Where patches are left out of the computation, all
images keep the same number.

- multi_block: blocks to be predicted, and a context that overlaps none of them. The idea is that of "Self-Supervised
  Learning from Images with a Joint-Embedding Predictive Architecture" (I-JEPA), the sizes those of "Social-JEPA:
  Emergent Geometric Isomorphism in Independently Trained World Models"; `BlockMasks` says how they differ.
- random_split: patches seen and unseen ("Masked Autoencoders Are Scalable Vision Learners").
- block_mask: as many patches as asked for, in rectangles ("BEiT: BERT Pre-Training of Image Transformers").
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jepatlas.base.distributed import rank, world_size
from jepatlas.base.errors import InputError
from jepatlas.base.seeding import torch_generator

__all__ = ["NUMBERS", "BlockMasks", "block_mask", "multi_block", "random_split", "uniforms"]

Grid = tuple[int, int]
TRIES = 8  # sets of blocks drawn for each image: the first that leaves enough for the context is taken


def uniforms(shape: tuple[int, int], seed: int, name: str, step: int) -> Tensor:
    """Numbers in 0 … 1 for this process' rows of the joint batch: (b, c)."""
    rows, columns = shape
    joint = torch.rand(world_size() * rows, columns, generator=torch_generator(seed, name, step))
    return joint[rank() * rows : (rank() + 1) * rows]


@dataclass(frozen=True)
class BlockMasks:
    """Blocks to be predicted from a context, side lengths as shares of the grid's.

    The defaults are those of "Social-JEPA": four blocks of 7 × 7 on 14 × 14 patches, a share of .6 hidden; the context
    is drawn among what no block covers. I-JEPA itself has four blocks of a scale of .15–.2 of the image and an
    aspect ratio of .75–1.5, both drawn anew, and as the context a square block of a scale of .85–1 less their patches.
    """

    blocks: int = 4
    """How many blocks are predicted."""
    side: float = 0.5
    """Of a block: 7 of 14 patches."""
    hidden: float = 0.6
    """Share of the patches that the context does not see."""

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

    def numbers(self, grid: Grid) -> int:
        """How many uniform numbers an image's masks are made of."""
        return grid[0] * grid[1] + TRIES * self.blocks * 2


def multi_block(u_bc: Tensor, grid: Grid, masks: BlockMasks) -> tuple[Tensor, Tensor]:
    """Indices of the context's patches (b, k), ascending, and of each block's (b, blocks, m).

    Blocks lie anywhere and may overlap. Where those of one try cover more than `hidden`, the next is taken; where all
    do (fewer than one image in two hundred), the blocks lie on one another. Of the uncovered patches, as many as the
    context has are drawn at random. With sides of one half nearly every block covers the middle of the image, so that
    the context hardly ever has it.
    """
    block, context = masks.sizes(grid)
    count = grid[0] * grid[1]
    free = torch.tensor([grid[0] - block[0] + 1, grid[1] - block[1] + 1])
    corners = (u_bc[:, count:].reshape(len(u_bc), TRIES, masks.blocks, 2) * free).long()
    corners = torch.cat([corners, corners[:, :1, :1].expand(-1, 1, masks.blocks, -1)], 1)
    covered = _union(*_extents(corners, torch.tensor(block).expand_as(corners), grid))  # (b, tries + 1, n)
    tried = (count - covered.sum(2) >= context).int().argmax(1)  # the first
    image = torch.arange(len(u_bc))
    corners, covered = corners[image, tried], covered[image, tried]
    seen = (u_bc[:, :count] + covered).topk(context, 1, largest=False).indices.sort(1).values
    inside = torch.cartesian_prod(torch.arange(block[0]), torch.arange(block[1]))
    places = corners[:, :, None] + inside  # (b, blocks, m, 2)
    return seen, places[..., 0] * grid[1] + places[..., 1]


def random_split(u_bn: Tensor, kept: int) -> tuple[Tensor, Tensor]:
    """Indices of the patches that are kept (b, kept) and of the others (b, n − kept), each ascending."""
    order = u_bn.argsort(1)
    return order[:, :kept].sort(1).values, order[:, kept:].sort(1).values


RECTANGLES = 12  # drawn for each image; they cover more than half of the grid
NUMBERS = 4 * RECTANGLES


def block_mask(u_bc: Tensor, grid: Grid, counts_b: Tensor) -> Tensor:
    """Exactly `counts_b` patches of each image: (b, n), true where masked.

    Rectangles of an eighth to a quarter of the grid, with sides of up to 3 : 1, are laid down one after the other until
    there are enough; the last one is filled from the top. What no rectangle covers comes last.
    """
    area, aspect, *place = u_bc[:, :NUMBERS].reshape(len(u_bc), RECTANGLES, 4).unbind(2)
    count, ends = grid[0] * grid[1], torch.tensor(grid)
    area, aspect = count * (1 + area) / 8, 3 ** (2 * aspect - 1)
    sides = torch.stack([(area * aspect).sqrt(), (area / aspect).sqrt()], 2).round().long().clamp(min=1)
    sides = sides.minimum(ends)
    corners = (torch.stack(place, 2) * (ends - sides + 1)).long()
    first = _first(*_extents(corners, sides, grid))
    turns = (first * count + torch.arange(count)).float()  # whole numbers below 2²⁴: exact, and quicker to sort
    after = torch.cat([turns.sort(1).values, torch.full((len(turns), 1), torch.inf)], 1).gather(1, counts_b[:, None])
    return turns < after


def _extents(corners: Tensor, sides: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
    """Which rows and which columns of the grid each rectangle covers: (…, rows), (…, columns)."""
    ends = corners + sides
    rows, columns = (
        (place >= corners[..., axis, None]) & (place < ends[..., axis, None])
        for axis, place in enumerate((torch.arange(grid[0]), torch.arange(grid[1])))
    )
    return rows, columns


def _union(rows: Tensor, columns: Tensor) -> Tensor:
    """Which patches any of the rectangles covers, (…, k, rows) and (…, k, columns) → (…, n): counted by a product."""
    return (rows.float().transpose(-1, -2) @ columns.float()).flatten(-2) > 0


def _first(rows: Tensor, columns: Tensor) -> Tensor:
    """The number of the first rectangle that covers each patch, or how many there are: (b, n)."""
    count = rows.shape[1]
    first = rows.new_full((len(rows), rows.shape[2], columns.shape[2]), count, dtype=torch.int64)
    for index in reversed(range(count)):
        first.masked_fill_(rows[:, index, :, None] & columns[:, index, None, :], index)
    return first.flatten(1)
