"""Are these latents the world's own coordinates? Takes plain arrays, so it judges anyone's model."""

from jepatlas.identify.bound import bound, bound_terms, epsilon_null
from jepatlas.identify.certificate import certify
from jepatlas.identify.recovery import linear_response, recovery, recovery_null, rotation_error

__all__ = [
    "bound",
    "bound_terms",
    "certify",
    "epsilon_null",
    "linear_response",
    "recovery",
    "recovery_null",
    "rotation_error",
]
