"""Fast paths for the CPU, each with a plain-torch twin that runs anywhere; tests hold the two equal.

Kernels are serial: runs in parallel have a core each, and numba's own threads do not go with torch's.
"""
