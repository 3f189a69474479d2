"""Monotone warps: predicted (Sturm–Liouville), fitted, and undone."""
