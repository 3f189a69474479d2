"""What a learner is given: pairs of views, steps, windows of episodes, and their streams of batches; image tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.data.collecting import collect
    from jepatlas.data.episode_arrays import DrawnColumn, EpisodeArrays
    from jepatlas.data.episode_columns import rows_of_episodes
    from jepatlas.data.episode_layout import Column
    from jepatlas.data.episode_splits import split_episodes
    from jepatlas.data.episode_writer import EpisodeWriter
    from jepatlas.data.episodes import EpisodeFile
    from jepatlas.data.experience import check_experience, experience_from_arrays
    from jepatlas.data.history import rows_together, stacked
    from jepatlas.data.pairs import AnyPairLaw, PairStream, Siblings, Transitions
    from jepatlas.data.pictures import channels_last, for_networks, seen_shape
    from jepatlas.data.policies import Policy, RandomPolicy, RemembersAnEpisode
    from jepatlas.data.prefetch import Prefetched
    from jepatlas.data.steps import StepStream
    from jepatlas.data.windows import WindowStream
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "AnyPairLaw",
    "Column",
    "DrawnColumn",
    "EpisodeArrays",
    "EpisodeFile",
    "EpisodeWriter",
    "PairStream",
    "Policy",
    "Prefetched",
    "RandomPolicy",
    "RemembersAnEpisode",
    "Siblings",
    "StepStream",
    "Transitions",
    "WindowStream",
    "channels_last",
    "check_experience",
    "collect",
    "experience_from_arrays",
    "for_networks",
    "rows_of_episodes",
    "rows_together",
    "seen_shape",
    "split_episodes",
    "stacked",
]
