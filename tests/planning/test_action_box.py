from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import torch_generator
from jepatlas.planning import ActionBox


def test_box_of_a_gymnasium_space():
    space = gymnasium.spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 4.0]), dtype=np.float64)
    box = ActionBox.of(space)
    assert box == ActionBox((-1.0, 0.0), (1.0, 4.0)) and box.dim == 2
    like = torch.zeros(1)
    assert box.centre(like).tolist() == [0.0, 2.0] and box.half(like).tolist() == [1.0, 2.0]
    drawn = box.uniform((2000,), torch_generator(0, "drawn"), like)
    low, high = box.sides(like)
    assert ((drawn >= low) & (drawn <= high)).all()
    torch.testing.assert_close(drawn.mean(0), box.centre(like), rtol=0, atol=0.1)
    torch.testing.assert_close(drawn.std(0), box.half(like) / 3**0.5, rtol=0.05, atol=0)


def test_unbounded_actions_are_refused():
    with pytest.raises(InputError, match="-inf"):
        ActionBox.of(gymnasium.spaces.Box(-np.inf, np.inf, (2,)))
    with pytest.raises(InputError, match=r"\(2, 2\)"):
        ActionBox.of(gymnasium.spaces.Box(-1, 1, (2, 2)))
