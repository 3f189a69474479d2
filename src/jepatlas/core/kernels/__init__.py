"""Compiled kernels for the CPU. Each has an equivalent in plain torch or numpy; tests compare the two.

Kernels are single-threaded: parallel runs have one core each, and numba's threads conflict with torch's.
"""
