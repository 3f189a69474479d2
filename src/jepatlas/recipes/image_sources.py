"""Sources of images: a table, folders, a published data set or a rendered world, all read as a `ViewTable`.

Which states are held out follows from the list of all images. A run therefore records a hash of that list when it
starts and refuses a changed one, because training states could become held-out states.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError
from jepatlas.core.sealing import MOVED, sha256_of_bytes
from jepatlas.worlds.objects import RenderedObjects

if TYPE_CHECKING:
    from jepatlas.data.images import ViewTable

__all__ = ["AnyImages", "ImageFolders", "ImageNet", "ImageTable", "NuScenes", "ObjectImages", "SmallNORBFiles"]


@dataclass(frozen=True)
class ImageTable:
    """A CSV table with the columns path, state, view and optionally label, group and more."""

    kind: ClassVar[str] = "table"

    path: str = ""
    """The table, or a folder that holds a views.csv."""
    sha256: str | None = None
    """Hash of its states, views and groups. It is set when a run starts, and checked when the run is resumed. Labels
    may be added or corrected later."""

    def sealed(self) -> ImageTable:
        from jepatlas.data.images import MultiViewTable

        place = os.path.abspath(self._file())  # noqa: PTH100  (keeps links: images lie beside them)
        return replace(self, path=place, sha256=_listing(MultiViewTable.read(place)))

    def read(self) -> ViewTable:
        from jepatlas.data.images import MultiViewTable

        if self.sha256 is not None and not self._file().exists():
            raise InputError(f"{self.path}, which lists the images of this run, does not exist any more. {MOVED}")
        table = MultiViewTable.read(self._file())
        if self.sha256 is not None and self.sha256 != _listing(table):
            raise InputError(
                f"{self._file()} has changed since this run started: it lists other states, views or groups, so that "
                "other states would be held out. Restore it, or start a new run."
            )
        return table

    def _file(self) -> Path:
        if not self.path:
            raise InputError("The images are a table, but no path is given. Give it with --images.path.")
        place = Path(self.path)
        return place / "views.csv" if place.is_dir() else place


@dataclass(frozen=True)
class _Listed(ABC):
    """Images of a folder, listed by reading the folder."""

    folder: str = ""
    sha256: str | None = field(default=None, kw_only=True)
    """Hash of the states, views and groups. It is set when a run starts, and checked when the run is resumed."""

    def sealed(self) -> Self:
        found = replace(self, folder=str(_there(self.folder)), sha256=None)
        return replace(found, sha256=_listing(found.read()))

    def read(self) -> ViewTable:
        if self.sha256 is not None and not Path(self.folder).is_dir():
            raise InputError(f"{self.folder}, which has the images of this run, does not exist any more. {MOVED}")
        table = self._table(_there(self.folder))
        if self.sha256 is not None and self.sha256 != _listing(table):
            raise InputError(
                f"{self.folder} has changed since this run started: it now has {len(table)} images, and other states "
                "would be held out. Restore the images, or start a new run."
            )
        return table

    @abstractmethod
    def _table(self, folder: Path) -> ViewTable: ...


@dataclass(frozen=True)
class ImageFolders(_Listed):
    """A folder with one folder of images per view. Files of the same name show the same state."""

    kind: ClassVar[str] = "folders"

    def _table(self, folder: Path) -> ViewTable:
        from jepatlas.data.images import MultiViewTable

        return MultiViewTable.from_folder(folder)


@dataclass(frozen=True)
class SmallNORBFiles(_Listed):
    """The published binary files of smallNORB, gzipped or not."""

    kind: ClassVar[str] = "smallnorb"

    views: Literal["azimuth", "camera"] = "azimuth"
    """The views of a state: viewing directions, or the two cameras."""
    official: bool = True
    """Hold out the published test instances. Otherwise a share of all instances, as for other images."""

    def __post_init__(self) -> None:
        check_literals(self)

    def _table(self, folder: Path) -> ViewTable:
        from jepatlas.data.images import SmallNORB

        return SmallNORB.read(folder, views=self.views)


@dataclass(frozen=True)
class NuScenes(_Listed):
    """The tables and samples of nuScenes: cameras are views, and samples are states."""

    kind: ClassVar[str] = "nuscenes"

    version: str | None = None
    """The folder of tables, such as v1.0-mini. Required if there are several."""
    cameras: tuple[str, ...] = ()
    """The cameras to read; by default all. Images of other cameras may be missing."""

    def _table(self, folder: Path) -> ViewTable:
        from jepatlas.data.images import read_nuscenes

        return read_nuscenes(folder, self.version, cameras=self.cameras)


@dataclass(frozen=True)
class ImageNet(_Listed):
    """ImageNet, or any folder of class folders. There is one view: agents differ in their augmentation pipelines."""

    kind: ClassVar[str] = "imagenet"

    split: str = "train"
    """The folder of class folders."""

    def _table(self, folder: Path) -> ViewTable:
        from jepatlas.data.images import read_imagenet

        return read_imagenet(folder, self.split)


@dataclass(frozen=True)
class ObjectImages:
    """Rendered objects, seen by several cameras. They are rendered once and need no download."""

    kind: ClassVar[str] = "objects"

    world: RenderedObjects = field(default_factory=RenderedObjects)

    def sealed(self) -> ObjectImages:
        return self  # the settings of the world decide what is rendered

    def read(self) -> ViewTable:
        from jepatlas.data.images import MultiViewTable
        from jepatlas.worlds.objects import render

        return MultiViewTable.read(render(self.world))


AnyImages = ImageTable | ImageFolders | SmallNORBFiles | NuScenes | ImageNet | ObjectImages


def _there(folder: str) -> Path:
    if not folder:
        raise InputError("The images are a folder, but no path is given. Give it with --images.folder.")
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"There is no folder {folder}.")
    return place.resolve()


def _listing(table: ViewTable) -> str:
    """Hash of the columns that a split depends on. Paths are left out, because images may be moved."""
    columns = {
        name: table.columns[name].tolist() for name in ("state", "view", "group", "split") if name in table.columns
    }
    return sha256_of_bytes(json.dumps(columns).encode())
