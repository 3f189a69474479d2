"""Types of command-line options, importable without scikit-learn and torch."""

from __future__ import annotations

from typing import Literal

__all__ = ["HALF", "MapKind", "Through"]

MapKind = Literal["ridge", "least-squares", "procrustes", "similarity", "robust"]
"""How a map is fitted."""

Through = Literal["backwards", "inverse"]
"""How a probe is migrated: through a map B → A fitted on the same pairs, or through the inverse of the map A → B."""

HALF = 0.5
"""Share of rows that is held out by default."""
