"""Timings of two implementations side by side, as ratios, because absolute times depend on the load of the machine."""
