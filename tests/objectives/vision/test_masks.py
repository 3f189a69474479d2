"""Properties of each mask generator; equality across processes is tested in `test_two_processes.py`."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.objectives.vision.masks import (
    RECTANGLE_NUMBERS,
    BlockMasks,
    MultiBlockMasks,
    PatchMasks,
    random_split,
    rectangle_mask,
    uniforms,
)


def drawn(grid: tuple[int, int], masks: BlockMasks, rows: int = 200, step: int = 0) -> tuple[Tensor, Tensor]:
    return masks.draw(rows, grid, 0, step)


@pytest.mark.parametrize("grid", [(14, 14), (8, 8), (6, 9), (4, 4), (2, 2)])
@pytest.mark.parametrize("masks", [BlockMasks(), BlockMasks(2, 0.3, 0.5)])
def test_blocks_are_rectangles_outside_the_context(grid: tuple[int, int], masks: BlockMasks):
    (height, width), count = masks.sizes(grid)
    contexts, blocks = drawn(grid, masks)
    assert contexts.shape == (200, count) and blocks.shape == (200, masks.blocks, height * width)
    for context, targets in zip(contexts.tolist(), blocks.tolist(), strict=True):
        assert context == sorted(set(context)) and context[0] >= 0 and context[-1] < grid[0] * grid[1]
        for block in targets:
            top, left = divmod(block[0], grid[1])
            assert left + width <= grid[1] and top + height <= grid[0]
            assert block == [(top + i) * grid[1] + left + j for i in range(height) for j in range(width)]
            assert not set(block) & set(context)


def test_published_block_masks():
    masks = BlockMasks()
    assert masks.sizes((14, 14)) == ((7, 7), 78)  # 60% of 196 are hidden
    contexts, blocks = drawn((14, 14), masks, 2000)
    one_place = [len({block[0] for block in targets}) == 1 for targets in blocks.tolist()]
    assert sum(one_place) < 20
    corners = blocks[:, :, 0].flatten()
    assert set(corners.tolist()) == {r * 14 + c for r in range(8) for c in range(8)}  # blocks may lie anywhere
    seen = torch.zeros(196).index_add(0, contexts.flatten(), torch.ones(contexts.numel()))
    # blocks of half of each side nearly always cover the middle, so the context rarely contains it
    assert seen.view(14, 14)[6:8, 6:8].max() < 0.02 * 2000 and seen.view(14, 14)[0].min() > 0.4 * 2000


def test_uncovered_patches_are_equally_likely_in_the_context():
    masks = BlockMasks(1, 0.5, 0.6)  # one block leaves 12 of 16 patches, 6 of them visible
    contexts, blocks = drawn((4, 4), masks, 4000)
    chances = torch.zeros(16)
    for patch in range(16):
        free = ~(blocks[:, 0] == patch).any(1)
        chances[patch] = (contexts[free] == patch).any(1).float().mean()
    torch.testing.assert_close(chances, torch.full((16,), 0.5), atol=0.05, rtol=0)


@pytest.mark.parametrize("grid", [(14, 14), (6, 6), (6, 9), (4, 4), (2, 2)])
def test_multi_block_masks_and_their_context(grid: tuple[int, int]):
    masks = MultiBlockMasks()
    for step in range(20):
        (height, width), window = masks.sizes(grid, 0, step)
        contexts, blocks = masks.draw(50, grid, 0, step)
        assert blocks.shape == (50, 4, height * width) and contexts.shape[0] == 50 and contexts.shape[1] >= 1
        for context, targets in zip(contexts.tolist(), blocks.tolist(), strict=True):
            assert context == sorted(set(context)) and not set(context) & {
                patch for block in targets for patch in block
            }
            for block in targets:
                top, left = divmod(block[0], grid[1])
                assert left + width <= grid[1] and top + height <= grid[0]
                assert block == [(top + i) * grid[1] + left + j for i in range(height) for j in range(width)]
            rows, columns = zip(*(divmod(patch, grid[1]) for patch in context), strict=True)
            assert max(rows) - min(rows) < window[0] and max(columns) - min(columns) < window[1]


def test_ijepa_block_sizes():
    """Areas, aspect ratios and context share of the paper; the middle is often visible."""
    masks, grid = MultiBlockMasks(), (14, 14)
    sizes = [masks.sizes(grid, 0, step) for step in range(300)]
    areas, proportions = (
        [f(block) for block, _ in sizes] for f in (lambda b: b[0] * b[1] / 196, lambda b: b[0] / b[1])
    )
    assert 0.12 < min(areas) < 0.16 and 0.19 < max(areas) < 0.24  # sides are rounded to whole patches
    assert 0.6 < min(proportions) < 0.8 and 1.4 < max(proportions) <= 1.75
    assert {window for _, window in sizes} == {(13, 13), (14, 14)}  # a scale of .85 to 1
    shares, middle = [], []
    for step in range(30):
        contexts, _ = masks.draw(64, grid, 0, step)
        shares.append(contexts.shape[1] / 196)
        middle.append(float((contexts == 6 * 14 + 7).any(1).float().mean()))
    assert min(shares) > 0.1 and max(shares) < 0.6  # the smallest of 64 images
    assert sum(middle) / 30 > 0.05  # of 4 squares of half the sides, .01


def test_visible_and_hidden_patches_form_a_partition():
    kept, others = random_split(uniforms((500, 16), 0, "masks", 0), 4)
    both = torch.cat([kept, others], 1)
    assert kept.shape == (500, 4) and torch.equal(both.sort(1).values, torch.arange(16).expand(500, -1))
    assert torch.equal(kept, kept.sort(1).values) and torch.equal(others, others.sort(1).values)
    frequency = torch.bincount(kept.flatten(), minlength=16) / 500
    torch.testing.assert_close(frequency, torch.full((16,), 0.25), atol=0.08, rtol=0)


@pytest.mark.parametrize("grid", [(14, 14), (4, 6), (1, 3)])
def test_requested_number_of_patches_is_masked(grid: tuple[int, int]):
    count = grid[0] * grid[1]
    counts = torch.arange(100) % (count + 1)
    masked = rectangle_mask(uniforms((100, RECTANGLE_NUMBERS), 0, "masks", 0), grid, counts)
    assert masked.shape == (100, count) and torch.equal(masked.sum(1), counts)


def test_masked_patches_are_contiguous():
    """At a masking ratio of one half, random patches have half of their neighbours masked; rectangles more."""
    masked = rectangle_mask(uniforms((200, RECTANGLE_NUMBERS), 0, "masks", 0), (14, 14), torch.full((200,), 60)).view(
        -1, 14, 14
    )
    beside = (masked[:, :, 1:] & masked[:, :, :-1]).sum() / masked[:, :, 1:].sum()
    assert beside > 0.8  # 60 / 196 at random


def test_share_of_masked_images_and_patches():
    masked = PatchMasks().draw(2000, (10, 10), 0, "masks", 3).sum(1)
    assert abs(float((masked > 0).float().mean()) - 0.5) < 0.05
    some = masked[masked > 0]
    assert int(some.min()) == 10 and int(some.max()) == 50 and abs(float(some.float().mean()) - 30) < 1.5


def test_random_numbers_depend_on_seed_name_and_step():
    same = [uniforms((4, 5), *key) for key in ((0, "a", 1), (0, "a", 1))]
    assert torch.equal(*same)
    assert all(not torch.equal(same[0], uniforms((4, 5), *key)) for key in ((1, "a", 1), (0, "b", 1), (0, "a", 2)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: BlockMasks(blocks=0), "blocks.*0"),
        (lambda: BlockMasks(side=1.0), "between 0 and 1"),
        (lambda: BlockMasks(hidden=0.0), "between 0 and 1"),
        (lambda: BlockMasks(side=0.9, hidden=0.3).sizes((14, 14)), "14.*14"),
        (lambda: BlockMasks().sizes((1, 1)), "do not fit"),
        (lambda: MultiBlockMasks(blocks=0), "blocks.*0"),
        (lambda: MultiBlockMasks(scale=(0.3, 0.2)), "scale"),
        (lambda: MultiBlockMasks(context=(0.9, 1.1)), "context"),
        (lambda: MultiBlockMasks(aspect=(0.0, 1.0)), "aspect"),
        (lambda: MultiBlockMasks().draw(4, (1, 1), 0, 0), "1 × 1"),
        (lambda: PatchMasks(share=0.0), "share"),
        (lambda: PatchMasks(least=0.6), "least <= most"),
    ],
)
def test_errors_name_the_argument(wrong, message: str):
    with pytest.raises(InputError, match=message):
        wrong()
