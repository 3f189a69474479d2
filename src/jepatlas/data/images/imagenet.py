"""ImageNet, and any data set of class folders: train/n01440764/n01440764_10026.JPEG.

A state is an image, and there is one view of it: two views of the same images are made by two augmentation pipelines.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.data.images.multiview import MultiViewTable
from jepatlas.data.images.places import image_files

__all__ = ["read_imagenet"]

VIEW = "image"


def read_imagenet(folder: Path | str, split: str = "train") -> MultiViewTable:
    """The images of `split` (a folder in `folder`), with their class folder as label and their name as state."""
    folder = Path(folder)
    if not (folder / split).is_dir():
        found = ", ".join(sorted(path.name for path in folder.glob("*/"))) or "no folders"
        raise InputError(f"{folder} has no folder {split} with a folder for each class; it has {found}.")
    paths = [path.relative_to(folder) for path in image_files(folder / split)]
    if flat := [path for path in paths if len(path.parts) != 3]:
        raise InputError(
            f"{folder / flat[0]} does not lie in the folder of a class. Every image of {split} must lie in one; those "
            "of ImageNet's validation set are sorted into them by the script that comes with it."
        )
    columns = {
        "path": [path.as_posix() for path in paths],
        "state": [path.stem for path in paths],
        "view": [VIEW] * len(paths),
        "label": [path.parts[1] for path in paths],
        "group": [path.stem for path in paths],
        "split": [split] * len(paths),
    }
    states, counts = np.unique(columns["state"], return_counts=True)
    if (twice := states[counts > 1]).size:
        raise InputError(
            f"{folder / split}: {twice.size} names are those of two images or more, the first '{twice[0]}'."
        )
    return MultiViewTable(folder, {name: np.array(values) for name, values in columns.items()})
