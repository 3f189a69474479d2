"""Where images come from: a table, folders, a published data set or a rendered world; each read into the same kind of
table.

What is held out follows from all that is listed. So a run keeps what its images hashed to when it began, and refuses
others: what it learned from would become what it is judged by.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, Self

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError
from jepatlas.core.sealing import MOVED, sha256_of_bytes
from jepatlas.data.images import MultiViewTable, SmallNORB, ViewTable, read_imagenet, read_nuscenes
from jepatlas.worlds.objects import RenderedObjects, render

__all__ = ["AnyImages", "ImageFolders", "ImageNet", "ImageTable", "NuScenes", "ObjectImages", "SmallNORBFiles"]


@dataclass(frozen=True)
class ImageTable:
    """A CSV with the columns path, state, view and, where there are any, label, group and more."""

    kind: ClassVar[str] = "table"

    path: str = ""
    """The table, or a folder that holds a views.csv."""
    sha256: str | None = None
    """What its states, views and groups must hash to; set when a run begins, so that it holds out the same. Labels may
    be added or corrected later."""

    def sealed(self) -> ImageTable:
        place = os.path.abspath(self._file())  # noqa: PTH100  (a link stays one: images lie beside it)
        return replace(self, path=place, sha256=_listing(MultiViewTable.read(place)))

    def read(self) -> ViewTable:
        if self.sha256 is not None and not self._file().exists():
            raise InputError(f"There is no {self.path} any more, which lists the images of this run. {MOVED}")
        table = MultiViewTable.read(self._file())
        if self.sha256 is not None and self.sha256 != _listing(table):
            raise InputError(
                f"{self._file()} has changed since this run began: it lists other states, views or "
                "groups, so that others would be held out. Put it back, or begin a new run."
            )
        return table

    def _file(self) -> Path:
        if not self.path:
            raise InputError("Images are to come from a table, but none is named. Give its path (--images.path).")
        place = Path(self.path)
        return place / "views.csv" if place.is_dir() else place


@dataclass(frozen=True)
class _Listed(ABC):
    """Images of a folder that no file of ours lists."""

    folder: str = ""
    sha256: str | None = field(default=None, kw_only=True)
    """What the list of states, views and groups must hash to; set when a run begins, so that it holds out the same."""

    def sealed(self) -> Self:
        found = replace(self, folder=str(_there(self.folder)), sha256=None)
        return replace(found, sha256=_listing(found.read()))

    def read(self) -> ViewTable:
        if self.sha256 is not None and not Path(self.folder).is_dir():
            raise InputError(f"There is no folder {self.folder} any more, which has the images of this run. {MOVED}")
        table = self._table(_there(self.folder))
        if self.sha256 is not None and self.sha256 != _listing(table):
            raise InputError(
                f"{self.folder} does not list the images that it did when this run began; it has "
                f"{len(table)} now. Held-out states would be others. Put the images back, or begin a new "
                "run."
            )
        return table

    @abstractmethod
    def _table(self, folder: Path) -> ViewTable: ...


@dataclass(frozen=True)
class ImageFolders(_Listed):
    """A folder with a folder of images for each view, where files of one name show one state."""

    kind: ClassVar[str] = "folders"

    def _table(self, folder: Path) -> ViewTable:
        return MultiViewTable.from_folder(folder)


@dataclass(frozen=True)
class SmallNORBFiles(_Listed):
    """smallNORB's binary files as they are published, gzipped or not."""

    kind: ClassVar[str] = "smallnorb"

    views: Literal["azimuth", "camera"] = "azimuth"
    """What the views of a state are: directions it is seen from, or the two cameras."""
    official: bool = True
    """Hold out the instances that smallNORB keeps for testing; or else a share of all, as of other images."""

    def __post_init__(self) -> None:
        check_literals(self)

    def _table(self, folder: Path) -> ViewTable:
        return SmallNORB.read(folder, views=self.views)


@dataclass(frozen=True)
class NuScenes(_Listed):
    """nuScenes' tables and samples; its cameras are the views, and samples the states."""

    kind: ClassVar[str] = "nuscenes"

    version: str | None = None
    """The folder of tables, such as v1.0-mini, where there are several."""
    cameras: tuple[str, ...] = ()
    """The views that are read: images of other cameras need not be there. All, where none are named."""

    def _table(self, folder: Path) -> ViewTable:
        return read_nuscenes(folder, self.version, cameras=self.cameras)


@dataclass(frozen=True)
class ImageNet(_Listed):
    """ImageNet, or any class folders; agents see the same images through different augmentation pipelines."""

    kind: ClassVar[str] = "imagenet"

    split: str = "train"
    """The folder of class folders."""

    def _table(self, folder: Path) -> ViewTable:
        return read_imagenet(folder, self.split)


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
        raise InputError("Images are to come from a folder, but none is named. Give its path (--images.folder).")
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"There is no folder {folder}.")
    return place.resolve()


def _listing(table: ViewTable) -> str:
    """Of what a split is made from, row by row; not of where the images lie, which may be moved."""
    columns = {
        name: table.columns[name].tolist() for name in ("state", "view", "group", "split") if name in table.columns
    }
    return sha256_of_bytes(json.dumps(columns).encode())
