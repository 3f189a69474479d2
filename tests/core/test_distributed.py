"""Collectives in several real processes: values and gradients match one process on the joint batch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from processes import ProcessFailed, run_processes
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from jepatlas.core.distributed import gather_rows, mean_over_processes, process_group, rank, world_size
from jepatlas.core.moments import batch_covariance
from jepatlas.core.normality import epps_pulley
from jepatlas.core.seeding import forked_rng, torch_generator

ROWS, WIDTH = 6, 3  # per process


def replicated_mean(h: Tensor) -> Tensor:
    return mean_over_processes(h.square().mean(0)).log().sum()


def replicated_epps_pulley(h: Tensor) -> Tensor:
    return epps_pulley(h).mean()


def replicated_covariance(h: Tensor) -> Tensor:
    mean, covariance = batch_covariance(h)
    return (covariance - torch.eye(WIDTH, dtype=h.dtype)).square().sum() + mean.square().sum()


def replicated_gather(h: Tensor) -> Tensor:
    return torch.pdist(gather_rows(h)).log().mean()


def local_against_mean(h: Tensor) -> Tensor:
    return (h - mean_over_processes(h.mean(0))).abs().pow(3).mean()


def local_against_gathered(h: Tensor) -> Tensor:
    """As in InfoNCE, each process compares its own rows with the rows of all."""
    target = torch.arange(len(h)) + rank() * len(h)
    return cross_entropy(h.tanh() @ gather_rows(h).T, target)


def local_and_replicated(h: Tensor) -> Tensor:
    return h.sin().mean() + local_against_mean(h) * replicated_mean(h) + epps_pulley(h).max()


LOSSES: list[Callable[[Tensor], Tensor]] = [
    replicated_mean,
    replicated_epps_pulley,
    replicated_covariance,
    replicated_gather,
    local_against_mean,
    local_against_gathered,
    local_and_replicated,
]


def model() -> nn.Module:
    with forked_rng(0, "model"):
        return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, WIDTH)).double()


def batch(processes: int) -> Tensor:
    return torch.randn(ROWS * processes, 4, dtype=torch.float64, generator=torch_generator(0, "batch"))


def loss_and_gradients(net: nn.Module, x: Tensor, loss: Callable[[Tensor], Tensor]) -> tuple[Tensor, list[Tensor]]:
    net.zero_grad()
    value = loss(net(x))
    value.backward()
    return value.detach(), [p.grad.clone() for p in net.parameters() if p.grad is not None]


def penalty(h: Tensor, processes: int) -> Tensor:
    """A gradient penalty W‖∂L/∂h‖² of the joint loss L, which differentiates the collectives twice."""
    value = mean_over_processes(h.pow(3).mean(0)).square().sum() + gather_rows(h).prod(1).sum()
    (grad,) = torch.autograd.grad(value, h, create_graph=True)
    return grad.square().sum() * processes


def job() -> dict[str, Any]:
    x = batch(world_size()).chunk(world_size())[rank()]
    net = DistributedDataParallel(model())
    h = model()(x).detach().requires_grad_()
    counted = torch.arange(6.0).reshape(2, 3) + 10 * rank()
    return {
        "rank": (rank(), world_size()),
        "mean": mean_over_processes(counted.T),
        "gathered": gather_rows(counted),
        "gathered_transposed": gather_rows(counted.T),
        "gathered_whole": gather_rows(counted[:, 0].long()),
        "losses": {loss.__name__: loss_and_gradients(net, x, loss) for loss in LOSSES},
        "penalty": torch.autograd.grad(penalty(h, 1), h)[0],
    }


@pytest.fixture(scope="module", params=[pytest.param(n, marks=pytest.mark.slow) for n in (2, 3)])
def results(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return run_processes(job, request.param)


def test_values_match_the_joint_batch(results: list[dict[str, Any]]):
    count = len(results)
    parts = [torch.arange(6.0).reshape(2, 3) + 10 * r for r in range(count)]
    for r, result in enumerate(results):
        assert result["rank"] == (r, count)
        torch.testing.assert_close(result["mean"], torch.stack(parts).mean(0).T)
        assert torch.equal(result["gathered"], torch.cat(parts))
        assert torch.equal(result["gathered_transposed"], torch.cat([part.T for part in parts]))
        assert torch.equal(result["gathered_whole"], torch.cat([part[:, 0] for part in parts]).long())


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_value_and_gradient_match_the_joint_batch(results: list[dict[str, Any]], loss):
    assert world_size() == 1
    value, gradients = loss_and_gradients(model(), batch(len(results)), loss)
    values = [result["losses"][loss.__name__][0] for result in results]
    torch.testing.assert_close(torch.stack(values).mean(), value, rtol=1e-9, atol=1e-9)
    if loss.__name__.startswith("replicated"):
        assert all(torch.equal(v, values[0]) for v in values)
    assert len(gradients) == 4 and all(float(g.abs().max()) > 1e-4 for g in gradients[::2])  # the weights
    for result in results:
        for ours, expected in zip(result["losses"][loss.__name__][1], gradients, strict=True):
            torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)


def test_second_derivatives_match_the_joint_batch(results: list[dict[str, Any]]):
    """The backward pass gives W · ∂/∂(local value), here of the mean penalty over processes."""
    count = len(results)
    h = model()(batch(count)).detach().requires_grad_()
    (expected,) = torch.autograd.grad(count * penalty(h, count), h)
    ours = torch.cat([result["penalty"] for result in results])
    torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)


def test_collectives_are_identities_without_a_group():
    value = torch.randn(3, 2)
    assert mean_over_processes(value) is value and gather_rows(value) is value
    assert (rank(), world_size()) == (0, 1)
    with process_group():
        assert not dist.is_initialized()


def fails_on_the_last() -> None:
    if rank() == world_size() - 1:
        raise ZeroDivisionError("on purpose")
    mean_over_processes(torch.ones(1))


@pytest.mark.slow
def test_error_in_one_process_is_reported():
    with pytest.raises(ProcessFailed, match=r"(?s)Process 1 of 2: Traceback.*ZeroDivisionError: on purpose"):
        run_processes(fails_on_the_last, 2)


SCRIPT = """
import sys
from pathlib import Path
import torch
import torch.distributed as dist
from jepatlas.core.distributed import gather_rows, process_group, rank, world_size
torch.set_num_threads(1)
with process_group("cpu"):
    with process_group("cpu"):  # joined already
        pass
    rows = gather_rows(torch.tensor([rank()]))
    (Path(sys.argv[1]) / str(rank())).write_text(f"{world_size()} {rows.tolist()}")
assert not dist.is_initialized()
"""


@pytest.mark.slow
def test_process_group_uses_the_environment_of_torchrun(tmp_path: Path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    env = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    subprocess.run([*command, str(tmp_path / "script.py"), str(tmp_path)], check=True, env=env, timeout=120)
    assert (tmp_path / "0").read_text() == (tmp_path / "1").read_text() == "2 [0, 1]"
