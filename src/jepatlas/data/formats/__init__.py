"""Readers of episodes in the formats of others. Each returns `EpisodeArrays`; images are decoded once into a cache."""
