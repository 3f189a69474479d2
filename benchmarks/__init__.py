"""Side-by-side timings, as ratios taken in one run: a shared machine makes absolute ones meaningless."""
