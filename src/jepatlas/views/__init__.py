"""What a learner is given: pairs of views, steps, windows of episodes, and their streams of batches; image tables."""

from jepatlas.views.collecting import collect
from jepatlas.views.episode_arrays import DrawnColumn, EpisodeArrays
from jepatlas.views.episode_columns import rows_of_episodes
from jepatlas.views.episode_layout import Column
from jepatlas.views.episode_splits import split_episodes
from jepatlas.views.episode_writer import EpisodeWriter
from jepatlas.views.episodes import EpisodeFile
from jepatlas.views.experience import check_experience, experience_from_arrays
from jepatlas.views.history import rows_together, stacked
from jepatlas.views.pairs import AnyPairLaw, PairStream, Siblings, Transitions
from jepatlas.views.pictures import channels_last, for_networks, seen_shape
from jepatlas.views.policies import Policy, RandomPolicy, RemembersAnEpisode
from jepatlas.views.prefetch import Prefetched
from jepatlas.views.steps import StepStream
from jepatlas.views.windows import WindowStream

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
