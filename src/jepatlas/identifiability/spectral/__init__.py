"""Slow functions of a process from pairs (x, x') alone: S v = λ C₀₀ v on features of x, read as a ladder."""
