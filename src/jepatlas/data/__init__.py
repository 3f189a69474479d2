"""Training data: pairs, steps and windows of episodes as streams of batches; collecting, reading and writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.data.batches import Prefetched
    from jepatlas.data.collecting import collect
    from jepatlas.data.episode_arrays import EpisodeArrays, Episodes, RenderedColumn, rows_of_episodes, split_episodes
    from jepatlas.data.episode_formats import is_episodes, open_episodes
    from jepatlas.data.episode_writer import EpisodeWriter
    from jepatlas.data.episodes import Column, EpisodeFile
    from jepatlas.data.experience import experience_from_arrays, states_of_episodes
    from jepatlas.data.formats.minari_writer import write_minari
    from jepatlas.data.image_axes import channels_last, network_shape
    from jepatlas.data.pairs import PairStream, Siblings, Transitions
    from jepatlas.data.policies import RandomPolicy
    from jepatlas.data.rollouts import check_actions, observed_columns
    from jepatlas.data.steps import StepStream
    from jepatlas.data.windows import WindowStream, history_rows, stack_history
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "Column",
    "EpisodeArrays",
    "EpisodeFile",
    "EpisodeWriter",
    "Episodes",
    "PairStream",
    "Prefetched",
    "RandomPolicy",
    "RenderedColumn",
    "Siblings",
    "StepStream",
    "Transitions",
    "WindowStream",
    "channels_last",
    "check_actions",
    "collect",
    "experience_from_arrays",
    "history_rows",
    "is_episodes",
    "network_shape",
    "observed_columns",
    "open_episodes",
    "rows_of_episodes",
    "split_episodes",
    "stack_history",
    "states_of_episodes",
    "write_minari",
]
