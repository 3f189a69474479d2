"""Hypothesis for a shared machine: no deadlines, and the same examples in every run."""

from hypothesis import settings

settings.register_profile("jepatlas", deadline=None, derandomize=True)
settings.load_profile("jepatlas")
