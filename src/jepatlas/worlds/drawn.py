"""Worlds that hold something to draw with: made at the first picture, closed once, never sent to another process."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Generic, Protocol, Self, TypeVar

__all__ = ["DrawnWorld"]


class Renderer(Protocol):
    def close(self) -> None: ...


R = TypeVar("R", bound=Renderer)


class DrawnWorld(ABC, Generic[R]):
    """The renderer's life. Drawing opens an OpenGL context; `close`, or `with`, gives it back."""

    @abstractmethod
    def _open(self) -> R: ...

    @cached_property
    def _renderer(self) -> R:
        renderer = self._open()
        weakref.finalize(self, renderer.close).atexit = False  # the renderer sees to the exit itself
        return renderer

    def close(self) -> None:
        """Give the OpenGL context back; the next picture opens a new one."""
        if (renderer := vars(self).pop("_renderer", None)) is not None:
            renderer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Without the renderer, which no other process can use."""
        return {name: value for name, value in vars(self).items() if name != "_renderer"}
