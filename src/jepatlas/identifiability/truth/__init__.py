"""Latents beside the true states: maps between them, fitted on one half of the rows and scored on the other."""
