"""Readers of episodes of other libraries. Each returns `EpisodeArrays`; images are decoded once into a cache."""
