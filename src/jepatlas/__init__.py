"""jepatlas: trust, translate and plan with joint-embedding predictive world models.

Every trained encoder is a chart of the same world. `identify` tells whether a chart is the world's own
coordinates. The rooms are imported by name (`from jepatlas.objectives import LeJEPA`); this file imports nothing,
so that the command line answers at once.
"""

__version__ = "0.1.0"
