"""Number of dimensions: rank of the latents, redundancy, and the part of the state that they capture."""
