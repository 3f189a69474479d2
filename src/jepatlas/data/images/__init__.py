"""Images of states from several views: tables and readers, decoding, augmentation, and the stream of crops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.data.images.augment import augmented
    from jepatlas.data.images.crops import CropPlan
    from jepatlas.data.images.decoding import Decoded, decode
    from jepatlas.data.images.imagenet import read_imagenet
    from jepatlas.data.images.multiview import MultiViewTable
    from jepatlas.data.images.nuscenes import read_nuscenes
    from jepatlas.data.images.paired import PairedStream
    from jepatlas.data.images.pipelines import PIPELINES, Drawn, Pipeline, draw, pipeline_named
    from jepatlas.data.images.pixels import Fit
    from jepatlas.data.images.shuffles import Shuffle
    from jepatlas.data.images.smallnorb import SmallNORB
    from jepatlas.data.images.splits import official_split, split_states, time_blocks_of
    from jepatlas.data.images.stream import ImageStream
    from jepatlas.data.images.table import ViewTable
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "PIPELINES",
    "CropPlan",
    "Decoded",
    "Drawn",
    "Fit",
    "ImageStream",
    "MultiViewTable",
    "PairedStream",
    "Pipeline",
    "Shuffle",
    "SmallNORB",
    "ViewTable",
    "augmented",
    "decode",
    "draw",
    "official_split",
    "pipeline_named",
    "read_imagenet",
    "read_nuscenes",
    "split_states",
    "time_blocks_of",
]
