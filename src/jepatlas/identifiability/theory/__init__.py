"""What theory says of a Gaussian world: Hermite degrees, Mehler's ladder, the bound, the geometry, the dynamics."""
