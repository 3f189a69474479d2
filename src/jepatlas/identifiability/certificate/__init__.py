"""All that is known of some latents, in verdicts, and what these say together."""
