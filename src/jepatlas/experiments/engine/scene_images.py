"""The folder with the image data sets that some experiments read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from jepatlas.core.errors import InputError
from jepatlas.data.images import fashion_mnist_folder

__all__ = ["IMAGE_FOLDER_VARIABLE", "image_folder", "missing_scenes"]

IMAGE_FOLDER_VARIABLE = "JEPATLAS_DATA"
FASHION_MNIST = "fashion-mnist"


def image_folder() -> Path:
    """The folder named by the environment variable; InputError if it is not set."""
    if not os.environ.get(IMAGE_FOLDER_VARIABLE):
        raise InputError(
            f"This experiment reads images, but {IMAGE_FOLDER_VARIABLE} is not set. Set it to the folder that contains "
            "the data sets, each in a folder of its own: driving and eth80, each with a views.csv."
        )
    return Path(os.environ[IMAGE_FOLDER_VARIABLE])


def has_fashion_mnist() -> bool:
    try:
        fashion_mnist_folder()
    except InputError:
        return False
    return True


def missing_scenes(scenes: Iterable[str]) -> list[str]:
    """The scenes whose files are not available. The rendered scene and the texts need none."""
    given = os.environ.get(IMAGE_FOLDER_VARIABLE)
    scenes = list(scenes)
    if FASHION_MNIST in scenes and has_fashion_mnist():
        scenes.remove(FASHION_MNIST)
    folders = {scene: scene.split("-", maxsplit=1)[0] for scene in scenes if scene not in ("rendered", "texts")}
    return [scene for scene, name in folders.items() if not given or not (Path(given) / name).is_dir()]
