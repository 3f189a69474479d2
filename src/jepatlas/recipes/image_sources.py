"""Where images come from: a table, folders, a published data set or a rendered world; each read into the same kind of
table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal

from jepatlas.base.config import check_literals
from jepatlas.base.errors import InputError
from jepatlas.recipes.sealed_files import refuse_changed, seal
from jepatlas.views.images import MultiViewTable, SmallNORB, ViewTable, read_imagenet, read_nuscenes
from jepatlas.worlds.objects import RenderedObjects, render

__all__ = ["AnyImages", "ImageFolders", "ImageNet", "ImageTable", "NuScenes", "ObjectImages", "SmallNORBFiles"]


@dataclass(frozen=True)
class ImageTable:
    """A CSV with the columns path, state, view and, where there are any, label, group and more."""

    kind: ClassVar[str] = "table"

    path: str = ""
    """The table, or a folder that holds a views.csv."""
    sha256: str | None = None
    """What the table must hash to; set when a run begins, so that a run that goes on learns from the same images."""

    def sealed(self) -> ImageTable:
        path, sha256 = seal(str(self._file()))
        return replace(self, path=path, sha256=sha256)

    def read(self) -> ViewTable:
        return MultiViewTable.read(refuse_changed(str(self._file()), self.sha256))

    def _file(self) -> Path:
        if not self.path:
            raise InputError("Images are to come from a table, but none is named. Give its path.")
        place = Path(self.path)
        return place / "views.csv" if place.is_dir() else place


@dataclass(frozen=True)
class ImageFolders:
    """A folder with a folder of images for each view, where files of one name show one state."""

    kind: ClassVar[str] = "folders"

    folder: str = ""

    def sealed(self) -> ImageFolders:
        return replace(self, folder=str(_there(self.folder)))

    def read(self) -> ViewTable:
        return MultiViewTable.from_folder(_there(self.folder))


@dataclass(frozen=True)
class SmallNORBFiles:
    """smallNORB's binary files as they are published, gzipped or not."""

    kind: ClassVar[str] = "smallnorb"

    folder: str = ""
    views: Literal["azimuth", "camera"] = "azimuth"
    """What the views of a state are: directions it is seen from, or the two cameras."""
    official: bool = True
    """Hold out the instances that smallNORB keeps for testing; or else a share of all, as of other images."""

    def __post_init__(self) -> None:
        check_literals(self)

    def sealed(self) -> SmallNORBFiles:
        return replace(self, folder=str(_there(self.folder)))

    def read(self) -> ViewTable:
        return SmallNORB.read(_there(self.folder), views=self.views)


@dataclass(frozen=True)
class NuScenes:
    """nuScenes' tables and samples; its cameras are the views, and samples the states."""

    kind: ClassVar[str] = "nuscenes"

    folder: str = ""
    version: str | None = None
    """The folder of tables, such as v1.0-mini, where there are several."""
    cameras: tuple[str, ...] = ()
    """The views that are read: images of other cameras need not be there. All, where none are named."""

    def sealed(self) -> NuScenes:
        return replace(self, folder=str(_there(self.folder)))

    def read(self) -> ViewTable:
        return read_nuscenes(_there(self.folder), self.version, cameras=self.cameras)


@dataclass(frozen=True)
class ImageNet:
    """ImageNet, or any class folders; agents see the same images through different augmentation pipelines."""

    kind: ClassVar[str] = "imagenet"

    folder: str = ""
    split: str = "train"
    """The folder of class folders."""

    def sealed(self) -> ImageNet:
        return replace(self, folder=str(_there(self.folder)))

    def read(self) -> ViewTable:
        return read_imagenet(_there(self.folder), self.split)


@dataclass(frozen=True)
class ObjectImages:
    """Objects drawn from several cameras: nothing to download, and drawn once for a world."""

    kind: ClassVar[str] = "objects"

    world: RenderedObjects = field(default_factory=RenderedObjects)

    def sealed(self) -> ObjectImages:
        return self  # the world says what is drawn

    def read(self) -> ViewTable:
        return MultiViewTable.read(render(self.world))


AnyImages = ImageTable | ImageFolders | SmallNORBFiles | NuScenes | ImageNet | ObjectImages


def _there(folder: str) -> Path:
    if not folder:
        raise InputError("Images are to come from a folder, but none is named. Give its path.")
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"There is no folder {folder}.")
    return place.resolve()
