"""Which patches an objective sees, and which it must tell: rectangles and random sets, drawn for all images at once.

Masks are functions of uniform numbers, one row for each image of the joint batch. Those numbers follow from (seed,
name, step) alone, so that W processes draw the masks that one would. Where patches are left out of the computation, all
images keep the same number. I-JEPA's blocks and their context are in `block_masks.py`.

- random_split: patches seen and unseen ("Masked Autoencoders Are Scalable Vision Learners").
- block_mask: as many patches as asked for, in rectangles ("BEiT: BERT Pre-Training of Image Transformers").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jepatlas.core.errors import InputError
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
    "NUMBERS",
    "Grid",
    "PatchMasks",
    "block_mask",
    "covered",
    "extents",
    "joint_uniforms",
    "own_rows",
    "random_split",
    "uniforms",
]

Grid = tuple[int, int]


def uniforms(shape: tuple[int, int], seed: int, name: str, step: int) -> Tensor:
    """Numbers in 0 … 1 for this process' rows of the joint batch: (b, c)."""
    return own_rows(joint_uniforms(shape, seed, name, step), shape[0])


def joint_uniforms(shape: tuple[int, int], seed: int, name: str, step: int) -> Tensor:
    """The same for all processes' rows, of which each has `shape[0]`: (W · b, c)."""
    return torch.rand(distributed.world_size() * shape[0], shape[1], generator=torch_generator(seed, name, step))


def own_rows(joint: Tensor, rows: int) -> Tensor:
    """Of the joint batch, this process' rows."""
    return joint[distributed.rank() * rows : (distributed.rank() + 1) * rows]


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
    first = _first(*extents(corners, sides, grid))
    turns = (first * count + torch.arange(count)).float()  # whole numbers below 2²⁴: exact, and quicker to sort
    after = torch.cat([turns.sort(1).values, torch.full((len(turns), 1), torch.inf)], 1).gather(1, counts_b[:, None])
    return turns < after


def extents(corners: Tensor, sides: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
    """Which rows and which columns of the grid each rectangle covers: (…, rows), (…, columns)."""
    ends = corners + sides
    rows, columns = (
        (place >= corners[..., axis, None]) & (place < ends[..., axis, None])
        for axis, place in enumerate((torch.arange(grid[0]), torch.arange(grid[1])))
    )
    return rows, columns


def covered(rows: Tensor, columns: Tensor) -> Tensor:
    """Which patches any of the rectangles covers, (…, k, rows) and (…, k, columns) → (…, n): counted by a product."""
    return (rows.float().transpose(-1, -2) @ columns.float()).flatten(-2) > 0


def _first(rows: Tensor, columns: Tensor) -> Tensor:
    """The number of the first rectangle that covers each patch, or how many there are: (b, n)."""
    count = rows.shape[1]
    first = rows.new_full((len(rows), rows.shape[2], columns.shape[2]), count, dtype=torch.int64)
    for index in reversed(range(count)):
        first.masked_fill_(rows[:, index, :, None] & columns[:, index, None, :], index)
    return first.flatten(1)


@dataclass(frozen=True)
class PatchMasks:
    share: float = 0.5
    """Of the images that are masked at all."""
    least: float = 0.1
    """Share of a masked image's patches that is masked, at least."""
    most: float = 0.5
    """The same, at most."""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or not 0 <= self.least <= self.most <= 1:
            raise InputError(
                f"Masks need a share of images in (0, 1] and 0 <= least <= most <= 1, but {self.share}, {self.least} "
                f"and {self.most} were given."
            )

    def draw(self, rows: int, grid: tuple[int, int], seed: int, name: str, step: int) -> Tensor:
        """(b, n), true where masked."""
        numbers = uniforms((rows, NUMBERS + 2), seed, name, step)
        ratio = self.least + (self.most - self.least) * numbers[:, 0]
        counts = (ratio * grid[0] * grid[1]).round().clamp(min=1).long()
        return block_mask(numbers[:, 2:], grid, torch.where(numbers[:, 1] < self.share, counts, 0))
