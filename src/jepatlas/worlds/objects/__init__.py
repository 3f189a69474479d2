"""A rendered multi-view world: procedurally built objects, seen by several cameras at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.worlds.objects.catalogue import CATEGORIES, Category
    from jepatlas.worlds.objects.image_folder import render
    from jepatlas.worlds.objects.object_rendering import LIGHTS, Lighting
    from jepatlas.worlds.objects.rendered_objects import RenderedObjects, state_columns
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = ["CATEGORIES", "LIGHTS", "Category", "Lighting", "RenderedObjects", "render", "state_columns"]
