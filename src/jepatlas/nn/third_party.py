"""Models of transformers and timm as encoders with one latent per image or video clip.

Neither library is imported: a transformers model is recognised by its `config` and `last_hidden_state`, a timm model by
`forward_features`. Both return tokens (b, k + n, d) or a feature map (b, d, height, width), which is averaged.

The first k tokens do not belong to patches: a class token, registers, a distillation token. In transformers models they
are found as parameters by name; timm models report k. Models such as SigLIP, I-JEPA and Swin have no class token.
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

VIDEO_AXES = 5  # (b, frames, 3, height, width)

# Modules that do not affect the tokens. They are frozen, or DDP would wait for their gradients.
_UNUSED = ("pooler", "head", "fc", "classifier", "fc_norm", "mask_token")

# Parameters that become tokens before the patches, in transformers and timm; class tokens start with "cl".
_PREFIX_TOKENS = (
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
    """Wrap `module` as an encoder; `mean` and `std` standardise pixels in 0 … 1 as in its training.

    The latent is the class token or the mean of the patch tokens; feature maps are always averaged. Masking of ViTMAE
    is disabled.
    """
    if not hasattr(module, "forward_features") and not hasattr(module, "config"):
        raise InputError(
            f"A {type(module).__name__} is neither a transformers model (with a config) nor one of timm "
            "(with forward_features). A module that returns (b, d) needs no wrapper."
        )
    if pool not in ("cls", "mean"):
        raise InputError(f"pool must be 'cls' or 'mean', but is '{pool}'.")
    if len(mean) != len(std) or min(std) <= 0:
        raise InputError(
            f"mean and std need one value per channel, and std must be positive, but are {mean} and {std}."
        )
    return PooledEncoder(module, pool, mean, std)


class PooledEncoder(nn.Module):
    """(b, 3, height, width) → (b, d), and for video models (b, frames, 3, height, width) → (b, d)"""

    mean: Tensor
    std: Tensor

    def __init__(self, module: nn.Module, pool: str, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.module, self.pool = module, pool
        self.leading, self.has_class = _prefix_tokens(module)
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(std)[:, None, None], persistent=False)
        for name, parameter in module.named_parameters():
            if any(part in _UNUSED for part in name.split(".")):
                parameter.requires_grad_(False)
        if _kind(module) == "vit_mae":
            _stop_masking(module)

    def forward(self, x: Tensor) -> Tensor:
        return self._pooled(self._features(x), x)

    def layers(self, x: Tensor) -> list[Tensor]:
        """The pooled latent after each block; the last one is that of `forward`."""
        if hasattr(self.module, "forward_features"):
            raise InputError(f"A {type(self.module).__name__} does not return the outputs of its layers.")
        output = self._transformers(x, output_hidden_states=True)
        hidden = output.hidden_states[1:-1]  # without the embedding and the last block, which lacks the final norm
        return [self._pooled(tokens, x) for tokens in (*hidden, output.last_hidden_state)]

    def _features(self, x: Tensor) -> Tensor:
        module: Any = self.module
        if hasattr(module, "forward_features"):
            return module.forward_features(self._standardise(x))
        return self._transformers(x).last_hidden_state

    def _transformers(self, x: Tensor, **options: Any) -> Any:
        if "interpolate_pos_encoding" in inspect.signature(self.module.forward).parameters:
            options["interpolate_pos_encoding"] = True  # accept images of any size
        if "skip_predictor" in inspect.signature(self.module.forward).parameters:
            options["skip_predictor"] = True  # V-JEPA 2 otherwise predicts each patch from all others
        if _kind(self.module) == "vit_mae":  # ViTMAE sorts patches by noise; keep their order
            options["noise"] = torch.arange(self._patch_count(x) or 0, device=x.device).expand(len(x), -1)
        pixels = getattr(self.module, "main_input_name", "pixel_values")  # "pixel_values_videos" of V-JEPA 2
        output = self.module(**{pixels: self._standardise(x)}, **options)
        if not hasattr(output, "last_hidden_state"):
            raise InputError(
                f"A {type(self.module).__name__} returns no last_hidden_state, because it has a head. Use the model "
                "without head, which AutoModel.from_pretrained loads."
            )
        return output

    def _standardise(self, x: Tensor) -> Tensor:
        return (unit_pixels(x, self.mean.dtype) - self.mean) / self.std

    def _pooled(self, features: Tensor, x: Tensor) -> Tensor:
        if features.ndim == 4:
            return features.mean((1, 2) if _channels_last(self.module) else (2, 3))
        if features.ndim == 3:
            return self._class_token(features) if self.pool == "cls" else self._patches(features, x).mean(1)
        raise InputError(
            f"Features must be tokens (b, 1 + n, d) or a map (b, d, height, width), but "
            f"{type(self.module).__name__} returned {tuple(features.shape)}."
        )

    def _class_token(self, tokens: Tensor) -> Tensor:
        if not self.has_class:
            raise InputError(
                f"pool='cls' needs a class token, but a {type(self.module).__name__} has none. Use pool='mean'."
            )
        return tokens[:, 0]

    def _patches(self, tokens: Tensor, x: Tensor) -> Tensor:
        """The patch tokens; raises InputError if their number is not that of the image's patches."""
        found, expected = tokens.shape[1] - self.leading, self._patch_count(x)
        if found < 1 or expected not in (None, found):
            advice = "Use pool='cls', or wrap" if self.has_class else "Wrap"
            raise InputError(
                f"A {type(self.module).__name__} returns {tokens.shape[1]} tokens, but {self.leading} and those of "
                f"{expected or 'some'} patches are expected. {advice} a module that pools the tokens itself."
            )
        return tokens[:, self.leading :]

    def _patch_count(self, x: Tensor) -> int | None:
        """Number of patches of a transformers model; None if unknown or if patches are merged later."""
        config = getattr(self.module, "config", None)
        size = getattr(config, "patch_size", None)
        if size is None or hasattr(config, "depths"):
            return None
        height, width = (size, size) if isinstance(size, int) else size
        depth = getattr(config, "tubelet_size", 1) if x.ndim == VIDEO_AXES else 1
        frames = x.shape[1] if x.ndim == VIDEO_AXES else 1
        return (frames // depth) * (x.shape[-2] // height) * (x.shape[-1] // width)


def _prefix_tokens(module: nn.Module) -> tuple[int, bool]:
    """Number of tokens before the patches, and whether the first of them is a class token."""
    if _kind(module) == "dinov3_convnext":
        return 1, True  # its first token is the mean of the map
    found: dict[str, int] = {}
    for path, parameter in module.named_parameters():
        *owners, name = path.split(".")
        if name in _PREFIX_TOKENS and not set(owners) & set(_UNUSED):  # tokens of a pooling head do not count
            found[name] = 1 if parameter.ndim == 1 else parameter.shape[-2]
    count = getattr(module, "num_prefix_tokens", sum(found.values()))
    # tokens reported by timm under other names are assumed to start with a class token
    return count, any(name.startswith("cl") for name in found) if found else count > 0


def _kind(module: nn.Module) -> str:
    """The architecture of a transformers model."""
    return getattr(getattr(module, "config", None), "model_type", "")


def _channels_last(module: nn.Module) -> bool:
    """Whether maps are (b, height, width, d), as in timm's Swin and transformers' Dinat."""
    inner = getattr(module, "timm_model", module)  # transformers wraps models of timm
    return getattr(inner, "output_fmt", "") == "NHWC" or _kind(module) == "dinat"


def _stop_masking(module: nn.Module) -> None:
    """Disable the random masking of ViTMAE, which is active in evaluation mode too, without changing its config."""
    embeddings: Any = getattr(module, "embeddings", None)
    if embeddings is not None:
        embeddings.config = copy.deepcopy(embeddings.config)
        embeddings.config.mask_ratio = 0.0
