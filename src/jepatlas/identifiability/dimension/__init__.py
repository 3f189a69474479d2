"""How many directions there are: what latents repeat, what they hold of the state, and what they lose of it."""
