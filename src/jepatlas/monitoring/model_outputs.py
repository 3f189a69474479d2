"""The latents of paired views among what a training step or a model returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jepatlas.core.errors import InputError

__all__ = ["Pairs", "check_pairs", "find_pairs"]

Pairs = Sequence[str] | Callable[[Any, Any, Any], Sequence[Any]]
"""Keys of the outputs, or a function of (outputs, batch, module)."""


def check_pairs(pairs: Pairs) -> None:
    """Raise InputError unless these are two or three keys, or a function."""
    if not callable(pairs) and (isinstance(pairs, str) or len(pairs) not in (2, 3)):
        raise InputError(f"pairs is {pairs!r}, but it must be two or three keys, or a function.")


def find_pairs(pairs: Pairs, outputs: Any, batch: Any, module: Any, source: str) -> Sequence[Any]:
    """The latents of both views and, on request, the true states; `source` is what returned the outputs."""
    if callable(pairs):
        return pairs(outputs, batch, module)
    if not isinstance(outputs, Mapping):
        raise InputError(
            f"{source} returned a {type(outputs).__name__}, but 'pairs' names keys of a dictionary. Return a "
            "dictionary with 'loss' and the latents, or give a function as 'pairs'."
        )
    missing = [key for key in pairs if key not in outputs]
    if missing:
        known = ", ".join(map(str, outputs))
        raise InputError(f"pairs has {missing[0]!r}, which {source} did not return. It returned: {known}.")
    return [outputs[key] for key in pairs]
