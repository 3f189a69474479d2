"""Multi-view image tables and their readers, decoding, augmentation, splits, and streams of crops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.data.images.augment import augmented
    from jepatlas.data.images.decoding import Decoded, decode, pixel_scale
    from jepatlas.data.images.idx_images import IDXImages, fashion_mnist_folder, has_idx_files
    from jepatlas.data.images.image_splits import official_split, split_states, time_blocks_of
    from jepatlas.data.images.image_stream import ImageStream, PairedStream
    from jepatlas.data.images.multiview import MultiViewTable, read_imagenet
    from jepatlas.data.images.nuscenes import read_nuscenes
    from jepatlas.data.images.pipelines import PIPELINES, CropPlan, Drawn, Pipeline, draw, pipeline_named
    from jepatlas.data.images.shuffles import Shuffle
    from jepatlas.data.images.smallnorb import SmallNORB
    from jepatlas.data.images.view_table import Fit, ViewTable
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "PIPELINES",
    "CropPlan",
    "Decoded",
    "Drawn",
    "Fit",
    "IDXImages",
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
    "fashion_mnist_folder",
    "has_idx_files",
    "official_split",
    "pipeline_named",
    "pixel_scale",
    "read_imagenet",
    "read_nuscenes",
    "split_states",
    "time_blocks_of",
]
