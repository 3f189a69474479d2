"""Images of states from several views: tables and readers, decoding, augmentation, and the stream of crops."""

from jepatlas.views.images.augment import augment, augmented
from jepatlas.views.images.crops import CropPlan
from jepatlas.views.images.decoding import Decoded, decode
from jepatlas.views.images.imagenet import read_imagenet
from jepatlas.views.images.multiview import MultiViewTable
from jepatlas.views.images.nuscenes import read_nuscenes
from jepatlas.views.images.paired import PairedStream
from jepatlas.views.images.pipelines import PIPELINES, Drawn, Pipeline, draw, pipeline_named
from jepatlas.views.images.pixel_scale import pixel_scale
from jepatlas.views.images.pixels import Fit
from jepatlas.views.images.shuffles import Shuffle
from jepatlas.views.images.smallnorb import SmallNORB
from jepatlas.views.images.splits import official_split, split_states, time_blocks_of
from jepatlas.views.images.stream import ImageStream
from jepatlas.views.images.table import ViewTable

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
    "augment",
    "augmented",
    "decode",
    "draw",
    "official_split",
    "pipeline_named",
    "pixel_scale",
    "read_imagenet",
    "read_nuscenes",
    "split_states",
    "time_blocks_of",
]
