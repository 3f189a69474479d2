"""Theory of Gaussian worlds: Hermite degrees, Mehler's formula, Theorem 3, and dynamics under actions."""
