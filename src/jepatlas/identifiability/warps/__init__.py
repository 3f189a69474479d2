"""The monotone warp that stays open in a world that is not Gaussian: predicted, fitted, and undone."""
