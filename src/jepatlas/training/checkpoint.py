"""Checkpoints: the training state as tensors in a folder `step-N`, written atomically.

A folder holds `state.safetensors` and `checkpoint.json` with the hash of the tensors, the step and the fingerprint of
the recipe. It is renamed into place when complete, so an interruption or a full disk leaves earlier checkpoints intact.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, cast

import safetensors.torch
import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, write_folder, write_json
from jepatlas.core.parsing import parse_tensors
from jepatlas.core.sealing import sha256_of_file, sha256_of_json
from jepatlas.nn.ema import ema_update

__all__ = [
    "Checkpoint",
    "TrainingState",
    "check_no_running_statistics",
    "fingerprint",
    "latest_checkpoint",
    "load_checkpoint",
    "load_weights",
    "remove_superseded",
    "save_checkpoint",
]

TENSORS, META = "state.safetensors", "checkpoint.json"


@dataclass(frozen=True)
class Checkpoint:
    step: int
    tensors: dict[str, Tensor]
    flat: int = 0
    """Consecutive health checks up to this step that found collapsed latents."""


def fingerprint(recipe: object) -> str:
    """Hash of a recipe as plain data. A checkpoint is loaded only with the recipe that produced it."""
    return sha256_of_json(recipe)


def save_checkpoint(folder: Path, checkpoint: Checkpoint, recipe: str, keep: int, every: int = 1) -> Path:
    """Write `folder/step-N`; then delete superseded checkpoints and incomplete ones (`remove_superseded`)."""
    path = folder / f"step-{checkpoint.step}"
    try:
        with write_folder(path) as part:
            safetensors.torch.save_file(checkpoint.tensors, part / TENSORS)
            meta = {"format": 1, "step": checkpoint.step, "flat": checkpoint.flat, "recipe": recipe}
            meta["sha256"] = {TENSORS: sha256_of_file(part / TENSORS)}
            write_json(part / META, meta | {"seal": fingerprint(meta)})
    except InputError as error:
        raise InputError(f"{error} Then resume with: jepatlas train --resume {quote(str(folder.parent))}") from error
    remove_superseded(folder, keep, every)
    return path


def remove_superseded(folder: Path, keep: int, every: int) -> None:
    """Keep the newest checkpoint and, before it, the `keep` − 1 newest of those written every `every` steps.

    An interrupted run writes a checkpoint between those. After the next one it is gone, so that the folder of a resumed
    run ends as that of an uninterrupted run.
    """
    found = _all_checkpoints(folder)
    regular = [path for path in reversed(found[:-1]) if _step(path) % every == 0]
    kept = [*found[-1:], *regular[: keep - 1]]
    for old in [*(path for path in found if path not in kept), *folder.glob(".step-*")]:
        shutil.rmtree(old)


def latest_checkpoint(folder: Path) -> Path | None:
    found = _all_checkpoints(folder)
    return found[-1] if found else None


def load_checkpoint(path: Path, recipe: str) -> Checkpoint:
    """Read and verify a checkpoint; raises InputError if it is damaged or belongs to another recipe."""
    remedy = "Delete that folder to resume from the previous checkpoint."
    try:
        meta = read_json(path / META)
    except InputError as error:
        raise InputError(f"{error} {remedy}") from error
    match meta:
        case {"step": int(), "recipe": str(), "seal": str(), "sha256": {"state.safetensors": str()}}:
            seal = meta.pop("seal")
        case _:
            raise InputError(f"{path / META} does not describe a checkpoint. {remedy}")
    if seal != fingerprint(meta) or path.name != f"step-{meta['step']}":
        raise InputError(f"{path} was modified or renamed after it was written. {remedy}")
    if meta["recipe"] != recipe:
        raise InputError(
            f"{path} was written with another recipe than the one in this run folder. Restore the recipe, or start a "
            "new run in another folder."
        )
    for name, expected in meta["sha256"].items():
        if not (path / name).is_file() or sha256_of_file(path / name) != expected:
            raise InputError(f"{path / name} is damaged: its hash differs from the recorded one. {remedy}")
    return Checkpoint(meta["step"], parse_tensors(path / TENSORS, path / TENSORS), meta.get("flat", 0))


def _all_checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoint folders, sorted by step; names of incomplete ones start with a dot."""
    found = [path for path in folder.glob("step-*") if path.name.removeprefix("step-").isdecimal()]
    return sorted(found, key=_step)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


class TrainingState:
    """Weights, optimiser moments and averaged weights as one flat dictionary of tensors.

    The tensors are never sharded: shards are gathered on saving and distributed on loading, so a checkpoint does not
    depend on the number of processes.
    """

    def __init__(self, objective: nn.Module, optimizer: torch.optim.Optimizer, decay: float | None = None) -> None:
        self.objective, self.optimizer, self.decay = objective, optimizer, decay
        self.average: dict[str, Tensor] = {}
        if decay:
            check_no_running_statistics(objective)
            # A parameter with two names is averaged under both, because both are loaded.
            for name, parameter in objective.named_parameters(remove_duplicate=False):
                self.average[name] = parameter.detach().clone()

    @torch.no_grad()
    def update_average(self, step: int) -> None:
        """average ← β · average + (1 − β) · weights, with β = min(decay, (1 + step)/(10 + step)).

        The ramp lets the average forget the initial weights.
        """
        if self.decay:
            beta = min(self.decay, (1 + step) / (10 + step))
            for name, parameter in self.objective.named_parameters(remove_duplicate=False):
                ema_update(self.average[name], parameter, 1 - beta)

    def tensors(self) -> dict[str, Tensor]:
        """Tensors under the keys `model.<name>`, `optimizer.<parameter>.<moment>` and `average.<name>`."""
        flat = {f"model.{name}": value for name, value in self.objective.state_dict().items()}
        flat |= {f"average.{name}": value for name, value in self.average.items()}
        for name, parameter in self.objective.named_parameters():
            moments: dict[str, Any] = self.optimizer.state.get(parameter, {})
            flat |= {f"optimizer.{name}.{key}": value for key, value in moments.items()}
        return {key: _gathered(value) for key, value in flat.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        model = _with_prefix("model.", tensors)
        current = self.objective.state_dict()
        _check_same_shapes(model, current)
        average = _with_prefix("average.", tensors)
        if bool(average) != bool(self.decay):
            saved = "with" if average else "without"
            raise InputError(
                f"The checkpoint was written {saved} averaged weights (ema), but the run is resumed with "
                f"ema={self.decay}. Restore the setting, or start a new run in another folder."
            )
        self.objective.load_state_dict({name: _placed_like(value, current[name]) for name, value in model.items()})
        self.average = {name: _placed_like(value, current[name]) for name, value in average.items()}
        for name, parameter in self.objective.named_parameters():
            moments: dict[str, Tensor] = {}
            for key, value in _with_prefix(f"optimizer.{name}.", tensors).items():
                moments[key] = value.to(parameter.device) if key == "step" else _placed_like(value, parameter)
            self.optimizer.state[parameter] = moments


def check_no_running_statistics(objective: nn.Module) -> None:
    """Raise InputError if a module has running statistics, which do not belong to averaged weights.

    Floating-point buffers that training does not change are allowed if the module lists them in `constant_buffers`.
    """
    for path, module in objective.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_floating_point() and name not in getattr(module, "constant_buffers", ()):
                full_name = f"{path}.{name}".lstrip(".")
                raise InputError(
                    f"ema averages the weights, but '{full_name}' is a running statistic of the weights that are not "
                    "averaged (as in exact whitening and batch normalisation). Remove ema."
                )


def load_weights(objective: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load the weights of a checkpoint for inference: the averaged ones if present."""
    weights = _with_prefix("model.", tensors) | _with_prefix("average.", tensors)
    _check_same_shapes(weights, objective.state_dict())
    objective.load_state_dict(weights)


def _check_same_shapes(saved: dict[str, Tensor], current: dict[str, Tensor]) -> None:
    """Raise InputError if names or shapes differ. A user's own module has no recipe that would detect this."""
    saved_shapes = {(name, tuple(value.shape)) for name, value in saved.items()}
    current_shapes = {(name, tuple(value.shape)) for name, value in current.items()}
    differing = sorted({name for name, _ in saved_shapes ^ current_shapes})
    if differing:
        raise InputError(
            f"The weights of the checkpoint do not fit this module: {', '.join(differing[:3])} differ. "
            "Use the module that was trained, or another folder."
        )


def _with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def _gathered(value: Tensor) -> Tensor:
    value = cast(Any, value).full_tensor() if _is_sharded(value) else value
    return value.detach().cpu().contiguous().clone()


def _placed_like(value: Tensor, target: Tensor) -> Tensor:
    """`value` on the device of `target`, sharded in the same way."""
    value = value.to(target.device)
    if not _is_sharded(target):
        return value
    from torch.distributed.tensor import distribute_tensor  # noqa: PLC0415  (takes a second, only for FSDP)

    shards = cast(Any, target)
    return distribute_tensor(value, shards.device_mesh, shards.placements)


def _is_sharded(value: Tensor) -> bool:
    """Whether the tensor is a `DTensor`, which FSDP creates."""
    return hasattr(value, "full_tensor")
