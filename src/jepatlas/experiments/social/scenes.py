"""Scenes of the study: two views of the same states, rendered or read from image files.

`JEPATLAS_DATA` names the folder that holds `driving` and `eth80` and, for the published settings, `smallnorb`,
`nuscenes` and `imagenet` as they are distributed. The rendered world needs no files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jepatlas.experiments.engine.experiment import Scale
from jepatlas.experiments.engine.scene_images import image_folder
from jepatlas.recipes.image_sources import AnyImages, ImageNet, ImageTable, NuScenes, ObjectImages, SmallNORBFiles
from jepatlas.worlds.objects import RenderedObjects

__all__ = ["SCENES", "STUDIED", "WORLDS", "Scene", "source_of"]


@dataclass(frozen=True)
class Scene:
    """Two views, with the published figures of the nearest setting."""

    title: str
    views: tuple[str | None, str | None]
    setting: str
    """The nearest published setting."""
    published: tuple[float, float, float]
    """Its R², DSC and NOS@10."""
    neighbours: tuple[float, ...]
    """Its NOS@k for k = 1, 5, 10, 20, 50."""
    pipelines: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Published augmentation of each view: two pipelines on ImageNet, which define its views; no colour jitter on
    smallNORB, which is grey; a mild one for driving. Empty for the default of the objective."""


_NORB = ("smallNORB, 0° and 160°", (0.891, 0.872, 0.27), (0.124, 0.198, 0.270, 0.352, 0.441))
_REAR = ("nuScenes, front and rear", (0.852, 0.821, 0.34), (0.182, 0.265, 0.340, 0.418, 0.512))
_SIDE = ("nuScenes, front and side", (0.838, 0.804, 0.36), (0.195, 0.281, 0.360, 0.437, 0.529))
_TWO = ("ImageNet, two pipelines", (0.873, 0.846, 0.31), (0.151, 0.232, 0.310, 0.386, 0.473))

SCENES = {
    "rendered": Scene("rendered objects, cameras 160° apart", ("camera000", "camera160"), *_NORB),
    "driving": Scene("driving, left and right camera", ("left", "right"), *_SIDE),
    "eth80": Scene("ETH-80 objects, 0° and 90°", ("0", "90"), *_NORB),
    "smallnorb": Scene(_NORB[0], ("0", "160"), *_NORB, pipelines=(("plain",), ("plain",))),
    "nuscenes-rear": Scene(_REAR[0], ("CAM_FRONT", "CAM_BACK"), *_REAR, pipelines=(("mild",), ("mild",))),
    "nuscenes-side": Scene(_SIDE[0], ("CAM_FRONT", "CAM_FRONT_LEFT"), *_SIDE, pipelines=(("mild",), ("mild",))),
    "imagenet": Scene(_TWO[0], (None, None), *_TWO, pipelines=(("A",), ("B",))),
}
STUDIED: dict[Scale, tuple[str, ...]] = {
    "tiny": ("rendered",),
    "small": ("rendered", "driving", "eth80"),
    "paper": ("rendered", "smallnorb", "nuscenes-rear", "nuscenes-side", "imagenet"),
}
"""Scenes of each scale."""
WORLDS: dict[Scale, RenderedObjects] = {
    "tiny": RenderedObjects(("car", "mug"), instances=8, azimuths=4, elevations=(30.0,), lights=("noon",), size=16),
    "small": RenderedObjects(azimuths=8, elevations=(30.0, 50.0), lights=("morning", "evening"), size=48),
    "paper": RenderedObjects(instances=50, azimuths=20, size=224),
}
"""The rendered world of each scale. `small` has 1,920 states of 60 objects. The angle between cameras is not a
multiple of the step between azimuths, so the two never see the same image."""


def source_of(scene: str, rendered: RenderedObjects) -> AnyImages:
    """The images of a scene."""
    if scene == "rendered":
        return ObjectImages(rendered)
    place = str(Path(image_folder()).resolve() / scene.split("-", maxsplit=1)[0])
    if scene == "smallnorb":
        return SmallNORBFiles(place)
    if scene.startswith("nuscenes"):
        return NuScenes(place, cameras=tuple(view for view in SCENES[scene].views if view))
    return ImageNet(place) if scene == "imagenet" else ImageTable(place)
