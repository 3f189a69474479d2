"""Everything that changes while training: weights, optimiser moments, averaged weights. As one flat set of tensors.

The tensors are always whole: sharded ones are gathered on the way out and split again on the way in, so a
checkpoint does not know how many processes wrote it.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.nn.ema import ema_update

__all__ = ["TrainingState", "load_weights", "refuse_running_statistics"]


class TrainingState:
    def __init__(self, objective: nn.Module, optimizer: torch.optim.Optimizer, decay: float | None = None) -> None:
        self.objective, self.optimizer, self.decay = objective, optimizer, decay
        # A parameter with two names is averaged under both, or loading one would undo the other.
        named = objective.named_parameters(remove_duplicate=False)
        if decay:
            refuse_running_statistics(objective)
        self.average = {k: v.detach().clone() for k, v in named} if decay else {}

    @torch.no_grad()
    def update_average(self, step: int) -> None:
        """average ← β · average + (1 − β) · weights, with β = min(decay, (1 + step)/(10 + step)).

        The ramp lets the average forget the weights that training began with.
        """
        if self.decay:
            beta = min(self.decay, (1 + step) / (10 + step))
            for name, parameter in self.objective.named_parameters(remove_duplicate=False):
                ema_update(self.average[name], parameter, 1 - beta)

    def tensors(self) -> dict[str, Tensor]:
        """Keys: `model.<name>`, `optimizer.<parameter>.<moment>`, `average.<name>`."""
        flat = {f"model.{name}": value for name, value in self.objective.state_dict().items()}
        flat |= {f"average.{name}": value for name, value in self.average.items()}
        for name, parameter in self.objective.named_parameters():
            moments: dict[str, Any] = self.optimizer.state.get(parameter, {})
            flat |= {f"optimizer.{name}.{key}": value for key, value in moments.items()}
        return {key: _whole(value) for key, value in flat.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        model = _under("model.", tensors)
        current = self.objective.state_dict()
        _check_fits(model, current)
        average = _under("average.", tensors)
        if bool(average) != bool(self.decay):
            made, now = ("with", "without") if average else ("without", "with")
            raise InputError(
                f"The checkpoint was made {made} averaged weights (ema), but is to be resumed {now} them. "
                "Set ema as it was, or start a new run in another folder."
            )
        self.objective.load_state_dict({k: _like(v, current[k]) for k, v in model.items()})
        self.average = {k: _like(v, current[k]) for k, v in average.items()}
        for name, parameter in self.objective.named_parameters():
            moments = _under(f"optimizer.{name}.", tensors)
            self.optimizer.state[parameter] = {
                key: value.to(parameter.device) if key == "step" else _like(value, parameter)
                for key, value in moments.items()
            }


def refuse_running_statistics(objective: nn.Module) -> None:
    """Averaged weights with the running statistics of others would be a model that was never trained.

    Buffers that training does not change are no such statistics: a module names them as its `constant_buffers`.
    """
    for place, module in objective.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_floating_point() and name not in getattr(module, "constant_buffers", ()):
                full = f"{place}.{name}".lstrip(".")
                raise InputError(
                    f"ema averages weights, but '{full}' is a running statistic of the weights that are not "
                    "averaged (exact whitening and batch normalisation keep such). Leave ema out here."
                )


def load_weights(objective: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Only the weights, for use rather than training: the averaged ones where there are any."""
    weights = _under("model.", tensors) | _under("average.", tensors)
    _check_fits(weights, objective.state_dict())
    objective.load_state_dict(weights)


def _check_fits(saved: dict[str, Tensor], current: dict[str, Tensor]) -> None:
    """A user's own module has no recipe to tell that it is not the one that was trained."""
    shapes = ({name: tuple(value.shape) for name, value in tensors.items()} for tensors in (saved, current))
    if differing := sorted({name for name, _ in set.symmetric_difference(*(set(s.items()) for s in shapes))}):
        raise InputError(
            f"The checkpoint holds other weights than this module: {', '.join(differing[:3])} differ in name or shape. "
            "Use the module that was trained, or another folder."
        )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def _whole(value: Tensor) -> Tensor:
    value = cast(Any, value).full_tensor() if _sharded(value) else value
    return value.detach().cpu().contiguous().clone()


def _like(value: Tensor, target: Tensor) -> Tensor:
    value = value.to(target.device)
    if not _sharded(target):
        return value
    from torch.distributed.tensor import distribute_tensor  # noqa: PLC0415  (a second to load, for shards alone)

    shards = cast(Any, target)
    return distribute_tensor(value, shards.device_mesh, shards.placements)


def _sharded(value: Tensor) -> bool:
    """Whether it is one of torch's `DTensor`s, which FSDP makes."""
    return hasattr(value, "full_tensor")
