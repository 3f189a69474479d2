"""Progress of long loops, reported to listeners: the command line shows bars, Python shows nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["listening", "track"]

Listener = Callable[[str, int, int], object]
"""Called with the name of a loop, the number of rounds that are done, and their total."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within this block, the listener receives the progress of all loops."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def track(name: str, rounds: int) -> Iterator[int]:
    """`range(rounds)`, with a report after each round. A loop that is left early reports its last round.

    >>> reports = []
    >>> with listening(lambda *report: reports.append(report)):
    ...     _ = [number for number in track("bootstrap", 2)]
    >>> reports
    [('bootstrap', 1, 2), ('bootstrap', 2, 2)]
    """
    listener = _listener.get()
    done = 0
    try:
        for number in range(rounds):
            yield number
            done = number + 1
            if listener is not None:
                listener(name, done, rounds)
    finally:
        if listener is not None and done < rounds:
            listener(name, rounds, rounds)
