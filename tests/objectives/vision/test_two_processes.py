"""Two processes with slices of a batch match one process: all objectives, and the normalisation of heads.

Everything is float64, so that differences exceed rounding. The processes are started once for all tests.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from objectives.vision.every_objective import OBJECTIVES, ROWS, STEP, every_objective, gradients, made
from objectives.vision.tiny_crops import DIM, double
from objectives.vision.tiny_vision import crops
from processes import run_processes
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from jepatlas.core.distributed import rank, world_size
from jepatlas.core.records import Crops, Loss
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives.vision.heads import JointBatchNorm


def one_step(config: Any, part: int = 0, parts: int = 1) -> dict[str, Any]:
    """Value, terms, gradients and state after one step on a slice of the joint batch."""
    objective = made(config).double()
    module = DistributedDataParallel(objective) if world_size() > 1 else objective
    x, *others = (crop.chunk(parts)[part] for crop in double(crops(ROWS)).all)
    loss: Loss = module(Crops(x, tuple(others)), STEP)
    loss.total.backward()
    objective.after_step(STEP)
    return {
        "total": loss.total.detach(),
        "terms": dict(loss.terms),
        "gradients": gradients(objective),
        "buffers": {name: buffer.clone() for name, buffer in objective.named_buffers()},
    }


def normalised(part: int = 0, parts: int = 1) -> dict[str, Tensor]:
    """Outputs, gradients of their mean, and running statistics for a slice of the rows."""
    x, weight = torch.randn(2, ROWS, DIM, dtype=torch.float64, generator=torch_generator(0, "rows"))
    x = (3 * x + 2).chunk(parts)[part].clone().requires_grad_()
    norm = JointBatchNorm(DIM).double()
    out = norm(x)
    (out * weight.chunk(parts)[part]).sum(1).mean().backward()
    assert x.grad is not None
    by_row = x.grad / parts  # the loss of the joint batch is the mean of the processes'
    weights = torch.stack([gradients(norm)[name] for name in ("scale", "shift")])
    return {"out": out.detach(), "rows": by_row, "weights": weights, **dict(norm.named_buffers())}


def all_steps() -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    steps = [one_step(config, rank(), world_size()) for config in OBJECTIVES]
    return steps, normalised(rank(), world_size())


@pytest.fixture(scope="module")
def two_processes() -> list[tuple[list[dict[str, Any]], dict[str, Tensor]]]:
    return run_processes(all_steps, 2)


def assert_near(ours: Tensor, joint: Tensor) -> None:
    torch.testing.assert_close(ours, joint, rtol=1e-9, atol=1e-11)


def assert_joint(results: list[dict[str, Any]], joint: dict[str, Any]) -> None:
    assert_near(torch.stack([r["total"] for r in results]).mean(), joint["total"])
    for name, term in joint["terms"].items():
        assert_near(torch.stack([r["terms"][name] for r in results]).mean(), term)
    for result in results:
        for kind in ("gradients", "buffers"):
            assert result[kind].keys() == joint[kind].keys()
            for name, value in joint[kind].items():
                assert_near(result[kind][name], value)


@every_objective
def test_two_processes_match_one_process(two_processes: list[Any], config: Any):
    assert world_size() == 1
    index = OBJECTIVES.index(config)
    assert_joint([steps[index] for steps, _ in two_processes], one_step(config))


@every_objective
def test_averaged_gradients_of_independent_slices_differ(config: Any):
    """Slices trained separately, with averaged gradients, must not pass the comparison above.

    They would repeat the masks of the first rows and use negatives, statistics, centres or assignments of their slice
    only. The autoencoder is the exception: its loss treats rows independently.
    """
    parts = [one_step(config, part, 2) for part in range(2)]
    mean = {name: (g + parts[1]["gradients"][name]) / 2 for name, g in parts[0]["gradients"].items()}
    averaged = [{**part, "gradients": mean} for part in parts]
    if config.kind == "autoencoder":
        return assert_joint(averaged, one_step(config))
    with pytest.raises(AssertionError):
        assert_joint(averaged, one_step(config))


def assert_normalised(results: list[dict[str, Tensor]]) -> None:
    joint = normalised()
    for name in ("out", "rows"):
        assert_near(torch.cat([r[name] for r in results]), joint[name])
    assert_near(torch.stack([r["weights"] for r in results]).mean(0), joint["weights"])
    for result in results:
        assert_near(result["running_mean"], joint["running_mean"])
        assert_near(result["running_variance"], joint["running_variance"])


def test_two_processes_normalise_over_the_joint_batch(two_processes: list[Any]):
    assert_normalised([norm for _, norm in two_processes])
    with pytest.raises(AssertionError):  # slices normalised separately differ
        assert_normalised([normalised(part, 2) for part in range(2)])
