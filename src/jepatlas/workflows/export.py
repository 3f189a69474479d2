"""Encoders as files that run without jepatlas: ONNX, or a `torch.export` program (.pt2)."""

from __future__ import annotations

import copy
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import write_bytes
from jepatlas.recipes import PairsRecipe, Recipe, VisionRecipe, WorldModelRecipe, any_recipe, load_recipe
from jepatlas.workflows.pairs_training import load_pairs_objective
from jepatlas.workflows.plan import load_world_model
from jepatlas.workflows.runs import load_objective
from jepatlas.workflows.vision import load_agent

__all__ = ["encoder_of", "export_encoder"]

SUFFIXES = (".onnx", ".pt2")
ROWS = 2  # of an example; the exported encoder takes any number
COLOURS = 3


def encoder_of(folder: Path | str) -> tuple[nn.Module, Tensor]:
    """The trained encoder of a run, and an example of what it takes: images (b, channels, height, width) or vectors."""
    folder = Path(folder)
    kind = any_recipe(folder).kind
    if kind not in ENCODERS:
        raise InputError(f"{folder} is a run of kind '{kind}', which has no encoder.")
    return ENCODERS[kind](folder)


def _of_world(folder: Path) -> tuple[nn.Module, Tensor]:
    recipe, objective = load_objective(folder)
    return objective.encoder, torch.zeros(ROWS, recipe.world.observed_dim)


def _of_given_pairs(folder: Path) -> tuple[nn.Module, Tensor]:
    recipe = load_recipe(folder, PairsRecipe)
    dtype = torch.uint8 if recipe.pixels else torch.float32
    return load_pairs_objective(folder, recipe).encoder, torch.zeros(ROWS, *recipe.shape, dtype=dtype)


def _of_world_model(folder: Path) -> tuple[nn.Module, Tensor]:
    model = load_world_model(folder)
    channels, *size = model.data.shape
    dtype = torch.uint8 if size else torch.float32
    return model.objective.encoder, torch.zeros(ROWS, model.recipe.history * channels, *size, dtype=dtype)


def _of_agent(folder: Path) -> tuple[nn.Module, Tensor]:
    agent = load_agent(folder)
    if agent.recipe.shuffle is not None:
        raise InputError(f"{folder} was trained on shuffled images, which an exported encoder would not shuffle.")
    height, width = agent.seen.images.shape[1:3]
    return agent.objective.encoder, torch.zeros(ROWS, COLOURS, height, width, dtype=torch.uint8)


ENCODERS: dict[str, Callable[[Path], tuple[nn.Module, Tensor]]] = {
    Recipe.kind: _of_world,
    PairsRecipe.kind: _of_given_pairs,
    WorldModelRecipe.kind: _of_world_model,
    VisionRecipe.kind: _of_agent,
}
"""The encoder and an example for the run of each kind of recipe."""


def export_encoder(encoder: nn.Module, example: Tensor, path: Path) -> Path:
    """Write the encoder for inputs like the example, with any number of rows: `x` (b, ...) → `h` (b, d)."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path} must end with {' or '.join(SUFFIXES)}, for ONNX or a torch.export program.")
    if path.suffix == ".onnx":
        require("onnxscript", "export", "Export to ONNX")
    encoder = copy.deepcopy(encoder).cpu().eval()
    with torch.no_grad(), _quiet():
        rows = torch.export.Dim("rows")
        try:
            program = torch.export.export(encoder, (example.cpu(),), dynamic_shapes=({0: rows},))
        except (RuntimeError, TypeError, ValueError) as error:  # torch's own UserError is a RuntimeError
            first = str(error).strip().splitlines()[0]
            raise InputError(
                f"torch.export cannot export this {type(encoder).__name__} for inputs of shape {tuple(example.shape)}: "
                f"{first}"
            ) from error
        write_bytes(path, _onnx(program) if path.suffix == ".onnx" else _saved(program))
    return path


def _saved(program: torch.export.ExportedProgram) -> bytes:
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def _onnx(program: torch.export.ExportedProgram) -> bytes:
    exported = torch.onnx.export(program, dynamo=True, verbose=False, input_names=["x"], output_names=["h"])
    assert exported is not None
    return exported.model_proto.SerializeToString()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without notes about packages that are not needed."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
