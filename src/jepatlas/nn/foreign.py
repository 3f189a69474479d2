"""Networks of other libraries as encoders: transformers' models, and those of timm, with one latent for each image.

Nothing is imported here: a transformers model is known by its `config` and `last_hidden_state`, a timm one by
`forward_features`. Either gives tokens (b, k + n, d) or a map (b, d, height, width), of which the mean is taken.

Of tokens, the first k are not of patches: a class token, registers, one of distillation. Each is a parameter of the
model, and known by its name; a timm model says k itself. Models like SigLIP, I-JEPA or Swin have no class token.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.patches import unit_pixels

__all__ = ["PooledEncoder", "pooled_encoder"]

# What such models own beside the tokens: left alone here, and so not trained, or processes would wait for gradients.
_BESIDE = ("pooler", "head", "fc", "classifier", "fc_norm", "mask_token")

# What becomes tokens before those of patches, as transformers and timm name it; those of classes begin with "cl".
_FRONT = (
    "cls_token",
    "class_embedding",
    "cls_register_token",
    "distillation_token",
    "dist_token",
    "register_tokens",
    "reg_token",
)


def pooled_encoder(
    module: nn.Module,
    pool: Literal["cls", "mean"] = "cls",
    mean: Sequence[float] = (0.5, 0.5, 0.5),
    std: Sequence[float] = (0.5, 0.5, 0.5),
) -> PooledEncoder:
    """`module` as an encoder; `mean` and `std` bring pixels of 0 … 1 to the range it was trained on.

    The class token is taken, or the mean of the patches' tokens; of a map, whatever `pool` is, the mean. A ViTMAE no
    longer masks.
    """
    if not hasattr(module, "forward_features") and not hasattr(module, "config"):
        raise InputError(
            f"A {type(module).__name__} is neither a transformers model (with a config) nor one of timm "
            "(with forward_features). A module that gives (b, d) needs no adapter."
        )
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
        self.leading, self.has_class = _front(module)
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(std)[:, None, None], persistent=False)
        for name, parameter in module.named_parameters():
            if any(part in _BESIDE for part in name.split(".")):
                parameter.requires_grad_(False)
        if _kind(module) == "vit_mae":
            _stop_masking(module)

    def forward(self, x: Tensor) -> Tensor:
        return self._pooled(self._features(x), x)

    def layers(self, x: Tensor) -> list[Tensor]:
        """The pooled latent after each block; the last one is that of `forward`."""
        if hasattr(self.module, "forward_features"):
            raise InputError(f"A {type(self.module).__name__} does not give the outputs of its layers.")
        output = self._transformers(x, output_hidden_states=True)
        hidden = output.hidden_states[1:-1]  # the first is the embedding, the last lacks the final norm
        return [self._pooled(tokens, x) for tokens in (*hidden, output.last_hidden_state)]

    def _features(self, x: Tensor) -> Tensor:
        module: Any = self.module
        if hasattr(module, "forward_features"):
            return module.forward_features(self._normal(x))
        return self._transformers(x).last_hidden_state

    def _transformers(self, x: Tensor, **options: Any) -> Any:
        if "interpolate_pos_encoding" in inspect.signature(self.module.forward).parameters:
            options["interpolate_pos_encoding"] = True  # images of any size; nothing changes at the model's own
        if _kind(self.module) == "vit_mae":  # it sorts patches by noise before it masks: leave them in order
            options["noise"] = torch.arange(self._patch_count(x) or 0, device=x.device).expand(len(x), -1)
        output = self.module(pixel_values=self._normal(x), **options)
        if not hasattr(output, "last_hidden_state"):
            raise InputError(
                f"A {type(self.module).__name__} gives no last_hidden_state: it has a head. Give the "
                "model below it, which AutoModel.from_pretrained loads."
            )
        return output

    def _normal(self, x: Tensor) -> Tensor:
        return (unit_pixels(x, self.mean.dtype) - self.mean) / self.std

    def _pooled(self, features: Tensor, x: Tensor) -> Tensor:
        if features.ndim == 4:
            return features.mean((1, 2) if _channels_last(self.module) else (2, 3))
        if features.ndim == 3:
            return self._class_token(features) if self.pool == "cls" else self._patches(features, x).mean(1)
        raise InputError(
            f"Features are tokens (b, 1 + n, d) or a map (b, d, height, width), but "
            f"{type(self.module).__name__} gave {tuple(features.shape)}."
        )

    def _class_token(self, tokens: Tensor) -> Tensor:
        if not self.has_class:
            raise InputError(
                f"pool='cls' takes the class token, but a {type(self.module).__name__} has none: the "
                "first of its tokens is a patch or a register. Use pool='mean'."
            )
        return tokens[:, 0]

    def _patches(self, tokens: Tensor, x: Tensor) -> Tensor:
        """Refused where there are not as many as the image has: some token would be taken for what it is not."""
        found, expected = tokens.shape[1] - self.leading, self._patch_count(x)
        if found < 1 or expected not in (None, found):
            other = "Use pool='cls', or give" if self.has_class else "Give"
            raise InputError(
                f"A {type(self.module).__name__} gives {tokens.shape[1]} tokens, where {self.leading} and "
                f"those of {expected or 'some'} patches are expected, so the patches are not known. "
                f"{other} a module that pools them itself."
            )
        return tokens[:, self.leading :]

    def _patch_count(self, x: Tensor) -> int | None:
        """How many patches a transformers model makes of an image; None where it does not say, or merges them later."""
        config = getattr(self.module, "config", None)
        size = getattr(config, "patch_size", None)
        if size is None or hasattr(config, "depths"):
            return None
        height, width = (size, size) if isinstance(size, int) else size
        return (x.shape[-2] // height) * (x.shape[-1] // width)


def _front(module: nn.Module) -> tuple[int, bool]:
    """How many tokens come before those of patches, and whether the first of them is a class token."""
    if _kind(module) == "dinov3_convnext":
        return 1, True  # the mean of its map, which is no parameter
    found: dict[str, int] = {}
    for path, parameter in module.named_parameters():
        *owners, name = path.split(".")
        if name in _FRONT and not set(owners) & set(_BESIDE):  # that of a pooling head is no token of the model
            found[name] = 1 if parameter.ndim == 1 else parameter.shape[-2]
    count = getattr(module, "num_prefix_tokens", sum(found.values()))
    # a token that is counted but is no parameter by these names is taken for a class token
    return count, any(name.startswith("cl") for name in found) if found else count > 0


def _kind(module: nn.Module) -> str:
    """The name of a transformers model's architecture."""
    return getattr(getattr(module, "config", None), "model_type", "")


def _channels_last(module: nn.Module) -> bool:
    """Whether maps are (b, height, width, d), as timm's Swin and transformers' Dinat give them."""
    inner = getattr(module, "timm_model", module)  # transformers wraps models of timm
    return getattr(inner, "output_fmt", "") == "NHWC" or _kind(module) == "dinat"


def _stop_masking(module: nn.Module) -> None:
    """A ViTMAE hides patches at random, in `eval` as well: its embeddings are told not to; its own config stays."""
    embeddings: Any = getattr(module, "embeddings", None)
    if embeddings is not None:
        embeddings.config = copy.deepcopy(embeddings.config)
        embeddings.config.mask_ratio = 0.0
