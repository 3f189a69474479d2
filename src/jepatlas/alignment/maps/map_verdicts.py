"""Maps, judged. Few pairs, constant dimensions, lost rank, bad condition are no errors: they limit what can be said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.records import Direction, Estimate, Verdict

if TYPE_CHECKING:
    from jepatlas.alignment.maps.conditioning import Conditioning

__all__ = ["map_verdicts"]


def map_verdicts(found: Conditioning, n_pairs: int) -> list[Verdict]:
    """What a map fitted on so many pairs can and cannot say, and which prior would help."""
    return [*_pairs(found, n_pairs), *_sides(found, n_pairs), *_map(found, n_pairs), *_shape(found, n_pairs)]


def _pairs(found: Conditioning, n: int) -> list[Verdict]:
    # one pair more than dimensions: the offset takes one
    return [
        _judge(
            "pairs_beyond_dimensions",
            n - found.d_in,
            n,
            "higher",
            1,
            good=f"{n} pairs for {found.d_in} source dimensions determine a linear map; how well, held-out R² says.",
            bad=f"{n} pairs for {found.d_in} source dimensions: least squares fits any target exactly, so its score "
            "on these pairs says nothing, and outside of their span it knows nothing. A penalty chosen by "
            "held-out score needs fewer pairs, and a rotation as prior, if both charts are certified, fewest; "
            "with either, go by the held-out score alone.",
        ),
    ]


def _sides(found: Conditioning, n: int) -> list[Verdict]:
    if found.source_rank is None or found.constant_source is None or found.constant_target is None:
        return []
    return [
        _judge(
            "constant_source",
            found.constant_source,
            n,
            "lower",
            0,
            good="Every source dimension varies.",
            bad=f"{found.constant_source} of {found.d_in} source dimensions never vary: the map cannot know what "
            "they would do. No prior helps: drop them, or add "
            "pairs in which they vary.",
        ),
        _judge(
            "constant_target",
            found.constant_target,
            n,
            "lower",
            0,
            good="Every target dimension varies.",
            bad=f"{found.constant_target} of {found.d_out} target dimensions never vary: they are predicted by "
            "their constant, which R² does not count, and nothing can be read from them on the way back. No "
            "prior helps: drop them.",
        ),
        _judge(
            "source_rank",
            found.source_rank,
            n,
            "higher",
            found.d_in - found.normed[0],
            good=f"Every source direction varies{_normed(found.normed[0])}.",
            bad=f"The source varies in {found.source_rank} of {found.d_in} directions. Between those the map can be "
            "trusted as far as its score; along the others nothing is known, and what a rotation says there is "
            "a guess. Fewer dimensions (by PCA) say the same with less.",
        ),
    ]


def _map(found: Conditioning, n: int) -> list[Verdict]:
    return [
        _judge(
            "map_rank",
            found.rank,
            n,
            "higher",
            found.full,
            good=f"The map carries all {found.full} directions that it could{_normed(any(found.normed))}.",
            bad=f"The map carries {found.rank} of {found.full} directions: it translates forwards, but what lies in "
            "the others is lost, and comes back as the mean. " + _remedy(found),
        ),
        _judge(
            "condition",
            found.condition,
            n,
            "lower",
            found.limit,
            good=f"κ = {found.condition:.3g}: noise grows by no more than that on the way back.",
            bad=f"κ = {found.condition:.3g} is above {found.limit:.3g}: the map translates forwards, but on the way "
            "back its weakest directions would be noise, and are left out; a probe that reads them cannot be "
            "migrated. " + _remedy(found),
        ),
    ]


def _normed(lacking: bool) -> str:
    """Of one direction there is a harmless reason."""
    return ", but for the one that a last layer normalisation takes: nothing is lost there" if lacking else ""


def _shape(found: Conditioning, n: int) -> list[Verdict]:
    """What only informs: no map is wrong because it is no rotation."""
    signs = {1: "no reflection", -1: "a reflection", 0: "a direction that is lost"}
    shape = {
        "orthogonality": (found.orthogonality, "lower", "‖WᵀW − I‖/‖I‖ in whitened coordinates: 0 for a rotation."),
        "effective_rank": (
            found.effective_rank,
            "higher",
            "Directions that the map carries, weighed by how much: the "
            f"exponential of the entropy of σ², {min(found.d_in, found.d_out)} at most.",
        ),
        "determinant_sign": (
            found.determinant_sign,
            "higher",
            "Sign of det W, of the map between standardised "
            f"coordinates where it has any: {signs.get(found.determinant_sign or 0)}.",
        ),
    }
    return [
        Verdict.judge(name, Estimate(value, value, value, n), direction=direction, good=good)
        for name, (value, direction, good) in shape.items()
        if value is not None
    ]


def _remedy(found: Conditioning) -> str:
    """What could carry more; no prior brings back what never varied on either side."""
    if found.constant_target == found.d_out or found.source_rank == 0:
        side = "source" if found.source_rank == 0 else "target"
        return f"The {side} does not vary at all, so there is nothing to carry: give pairs in which it does."
    return (
        "More pairs or a penalty may help where directions are only weak, and so may a rotation as prior, if both "
        "charts are certified; nothing brings back those that do not vary."
    )


def _judge(name: str, value: float, n: int, direction: Direction, threshold: float, *, good: str, bad: str) -> Verdict:
    return Verdict.judge(
        name, Estimate(value, value, value, n), direction=direction, threshold=threshold, good=good, bad=bad
    )
