"""Do pairs look like the world that the theorems speak of? Asked of the pairs themselves, with no truth at hand."""
