"""Precondition audit: do pairs satisfy the assumptions of the theorems? The true state is not needed."""
