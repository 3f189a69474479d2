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
from jepatlas.views.images import ImageStream, MultiViewTable
from jepatlas.views.pairs import AnyPairLaw, PairStream, Siblings, Transitions
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
    "ImageStream",
    "MultiViewTable",
    "PairStream",
    "Policy",
    "Prefetched",
    "RandomPolicy",
    "RemembersAnEpisode",
    "Siblings",
    "StepStream",
    "Transitions",
    "WindowStream",
    "check_experience",
    "collect",
    "experience_from_arrays",
    "rows_of_episodes",
    "rows_together",
    "split_episodes",
    "stacked",
]
