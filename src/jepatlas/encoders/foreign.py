"""Networks of other libraries as encoders: transformers' models, and those of timm, with one latent for each image.

Nothing is imported here: a transformers model is known by its `config` and `last_hidden_state`, a timm one by
`forward_features`, which gives tokens (b, 1 + n, d) or a map (b, d, height, width).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from jepatlas.base.errors import InputError
from jepatlas.base.patches import unit_pixels

__all__ = ["PooledEncoder", "pooled_encoder"]

# What such models own beside the tokens: left alone here, and so not trained, or processes would wait for gradients.
_BESIDE = ("pooler", "head", "fc", "classifier", "fc_norm", "mask_token")


def pooled_encoder(
    module: nn.Module,
    pool: Literal["cls", "mean"] = "cls",
    mean: Sequence[float] = (0.5, 0.5, 0.5),
    std: Sequence[float] = (0.5, 0.5, 0.5),
) -> PooledEncoder:
    """`module` as an encoder; `mean` and `std` bring pixels of 0 … 1 to the range it was trained on."""
    if not hasattr(module, "forward_features") and not hasattr(module, "config"):
        raise InputError(f"A {type(module).__name__} is neither a transformers model (with a config) nor one of timm "
                         "(with forward_features). A module that gives (b, d) needs no adapter.")  # fmt: skip
    if pool not in ("cls", "mean"):
        raise InputError(f"Tokens are pooled by 'cls' or 'mean', but '{pool}' was given.")
    if len(mean) != len(std) or min(std) <= 0:
        raise InputError(f"Each channel needs a mean and a positive deviation, but {mean} and {std} were given.")
    return PooledEncoder(module, pool, mean, std)


class PooledEncoder(nn.Module):
    """(b, 3, height, width) → (b, d)"""

    mean: Tensor
    std: Tensor

    def __init__(self, module: nn.Module, pool: str, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.module, self.pool = module, pool
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(std)[:, None, None], persistent=False)
        for name, parameter in module.named_parameters():
            if any(part in _BESIDE for part in name.split(".")):
                parameter.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self._pooled(self._features(x))

    def layers(self, x: Tensor) -> list[Tensor]:
        """The pooled latent after each block; the last one is that of `forward`."""
        if hasattr(self.module, "forward_features"):
            raise InputError(f"A {type(self.module).__name__} does not give the outputs of its layers.")
        output = self._transformers(x, output_hidden_states=True)
        hidden = output.hidden_states[1:-1]  # the first is the embedding, the last lacks the final norm
        return [self._pooled(tokens) for tokens in (*hidden, output.last_hidden_state)]

    def _features(self, x: Tensor) -> Tensor:
        module: Any = self.module
        if hasattr(module, "forward_features"):
            return module.forward_features(self._normal(x))
        return self._transformers(x).last_hidden_state

    def _transformers(self, x: Tensor, **options: bool) -> Any:
        if "interpolate_pos_encoding" in inspect.signature(self.module.forward).parameters:
            options["interpolate_pos_encoding"] = True  # images of any size; nothing changes at the model's own
        return self.module(pixel_values=self._normal(x), **options)

    def _leading(self) -> int:
        """Tokens before those of patches: the class token, and registers or that of distillation if there are any."""
        module: Any = self.module
        if hasattr(module, "forward_features"):
            return getattr(module, "num_prefix_tokens", 1)
        registers = getattr(module.config, "num_register_tokens", 0)
        return 1 + registers + (getattr(module.config, "model_type", "") == "deit")

    def _normal(self, x: Tensor) -> Tensor:
        return (unit_pixels(x, self.mean.dtype) - self.mean) / self.std

    def _pooled(self, features: Tensor) -> Tensor:
        if features.ndim == 4:
            return features.mean((2, 3))
        if features.ndim == 3:
            return features[:, 0] if self.pool == "cls" else features[:, self._leading() :].mean(1)
        raise InputError(f"Features are tokens (b, 1 + n, d) or a map (b, d, height, width), but "
                         f"{type(self.module).__name__} gave {tuple(features.shape)}.")  # fmt: skip
