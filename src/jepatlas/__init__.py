"""jepatlas: trust, translate and plan with joint-embedding predictive world models.

Import from the subpackages, for example `from jepatlas.objectives import LeJEPA`. This module imports nothing, so that
the command line starts quickly.
"""

__version__ = "0.1.0"
