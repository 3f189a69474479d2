"""Pairs brought toward isotropic, Gaussian exploration, by a knob; and what recovery gains by that."""
