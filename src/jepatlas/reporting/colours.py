"""Colours of samples: a wheel for two coordinates, a ramp for one, evenly spaced hues for names.

Samples with similar true states get similar colours, so that a plot of latents shows whether the geometry was kept.
Lightness is constant (OKLCH, Ottosson 2020), so that no direction stands out on a light or dark background.
"""

from __future__ import annotations

import numpy as np

__all__ = ["CENTRE", "RAMP_STOPS", "WHEEL_STOPS", "hues", "ramp", "wheel"]

LIGHTNESS, CHROMA = 0.68, 0.155


def wheel(xy: np.ndarray) -> list[str]:
    """Hue from the direction of each row (n, 2) relative to the mean, chroma from its distance."""
    offset = xy - np.nanmean(xy, axis=0)
    radius = np.hypot(*offset.T)
    largest = np.nanquantile(radius, 0.95) or 1.0
    strength = 0.25 + 0.75 * np.clip(radius / largest, 0, 1)
    return _hex(np.arctan2(offset[:, 1], offset[:, 0]), strength)


def ramp(values: np.ndarray) -> list[str]:
    """From blue for the lowest to orange for the highest of n values."""
    low, high = np.nanmin(values), np.nanmax(values)
    share = (values - low) / ((high - low) or 1.0)
    return _hex(_ramp_hue(share), np.ones(len(values)))


def hues(count: int) -> list[str]:
    """`count` colours, evenly around the wheel."""
    return _hex(np.deg2rad(30 + 360 * np.arange(count) / max(count, 1)), np.ones(count))


def _ramp_hue(share: np.ndarray) -> np.ndarray:
    return np.deg2rad(260 - 200 * share)


def _hex(hue: np.ndarray, strength: np.ndarray) -> list[str]:
    """OKLCH to sRGB by the matrices of its definition; colours outside sRGB are clipped."""
    hue, strength = np.nan_to_num(hue), np.nan_to_num(strength)
    a, b = CHROMA * strength * np.cos(hue), CHROMA * strength * np.sin(hue)
    to_lms = np.array([[0.3963377774, 0.2158037573], [-0.1055613458, -0.0638541728], [-0.0894841775, -1.2914855480]])
    lms = (LIGHTNESS + np.stack([a, b], axis=-1) @ to_lms.T) ** 3
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip(lms @ to_rgb.T, 0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.round(255 * srgb).astype(int)]


# For the colour keys of the page. CSS angles run clockwise from the top, hues counter-clockwise from the right.
WHEEL_STOPS = _hex(np.deg2rad(90 - np.arange(0, 361, 30)), np.ones(13))
CENTRE = _hex(np.zeros(1), np.zeros(1))[0]
RAMP_STOPS = _hex(_ramp_hue(np.linspace(0, 1, 9)), np.ones(9))
