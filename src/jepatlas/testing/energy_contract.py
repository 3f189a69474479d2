"""Contract of energy heads: what a head declares holds for all parameters."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from jepatlas.core.seeding import forked_rng, torch_generator
from jepatlas.testing.contract import check_rules, expect, expect_input_error, round_trips

__all__ = ["ENERGY_RULES", "build_head", "check_energy", "worst_triangle_violation"]

WIDTH = 12


class HeadConfig(Protocol):
    """A configuration of an energy head. What it builds is an `nn.Module` that follows `contracts.Energy`."""

    def build(self, width: int) -> nn.Module: ...


def check_energy(config: HeadConfig, width: int = WIDTH) -> None:
    """Check a configuration whose `build(width)` gives an energy head on latents of that width."""
    check_rules(config, [round_trips])
    check_rules(config, ENERGY_RULES, width)


def build_head(config: HeadConfig, width: int = WIDTH, *, perturbed: bool = True) -> Any:
    """A head with random parameters in float64; its properties must hold for all parameters."""
    with forked_rng(0, "head"):
        head = config.build(width).double()
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.add_(torch.randn_like(parameter) * perturbed)
    return head


def _points(width: int, *shape: int) -> Tensor:
    return torch.randn(*shape, width, dtype=torch.float64, generator=torch_generator(0, "points"))


def worst_triangle_violation(head: Any, width: int = WIDTH) -> float:
    """The largest (E(x, z) − E(x, y) − E(y, z)) / E(x, z) over 10,000 triples.

    The triples are at many scales, near a segment, and optimised to violate the inequality.
    """
    x, y, z = _points(width, 3, 5000) * 10 ** torch.linspace(-3, 2, 5000, dtype=torch.float64)[:, None]
    share = torch.rand(5000, 1, dtype=torch.float64, generator=torch_generator(0, "share"))
    middle = x + share * (z - x)
    middle[::2] += 1e-3 * y[::2]
    anywhere, near = torch.stack([x, y, z])[:, :4000], torch.stack([x, middle, z])
    led = torch.cat([anywhere[:, 500:2000:3], near[:, 500:2000:3]], dim=1).clone().requires_grad_()
    optimizer = torch.optim.Adam([led], lr=0.03)
    for _ in range(25):
        optimizer.zero_grad()
        (-_violations(head, led)).sum().backward()
        optimizer.step()
    triples = torch.cat([anywhere, near, led.detach()], dim=1)
    return float(_violations(head, triples).detach().max())


def _violations(head: Any, triples: Tensor) -> Tensor:
    x, y, z = triples
    direct, first, second = head(x, z), head(x, y), head(y, z)
    return (direct - first - second) / (direct.detach() + 1e-6)


def is_non_negative_and_zero_at_identical_points(config: HeadConfig, width: int) -> None:
    """E(x, y) ≥ 0, and E(x, x) = 0 exactly, also far from the origin."""
    head = build_head(config, width)
    x, y = _points(width, 2, 500)
    expect((head(x, y) >= 0).all(), f"the smallest energy is {head(x, y).min()}.")
    for point in (x, x + 1e6, x * 1e30, torch.zeros_like(x)):
        worst = float(head(point, point).detach().abs().max())
        expect(worst == 0, f"E(x, x) is {worst} near {float(point[0, 0]):.3g}.")


def satisfies_the_triangle_inequality_if_declared(config: HeadConfig, width: int) -> None:
    """With `guaranteed_quasimetric`, E(x, z) ≤ E(x, y) + E(y, z) for all points and parameters."""
    head = build_head(config, width)
    if head.guaranteed_quasimetric:
        worst = worst_triangle_violation(head, width)
        expect(worst < 1e-8, f"E(x, z) exceeds E(x, y) + E(y, z) by {worst:.3g} of itself.")


def distinct_points_have_positive_energy_unless_declared(config: HeadConfig, width: int) -> None:
    """Without `pseudo`, E(x, y) > 0 for distinct points, also where no coordinate of y is larger."""
    head = build_head(config, width)
    if head.pseudo:
        return
    x = _points(width, 200)
    lower = x.clone()
    lower[:, width // 2 :] -= x[:, width // 2 :].abs() + 0.1
    for y in (x - 1, lower, 2 * x):
        smallest = float(head(x, y).detach().min())
        expect(smallest > 0, f"E(x, y) is {smallest}.")


def is_symmetric_if_declared(config: HeadConfig, width: int) -> None:
    """With `symmetric`, E(x, y) = E(y, x)."""
    head = build_head(config, width)
    x, y = _points(width, 2, 100)
    gap = float((head(x, y) - head(y, x)).detach().abs().max())
    expect(gap < 1e-12 or not head.symmetric, f"E(x, y) and E(y, x) differ by {gap:.3g}.")


def gradients_match_finite_differences(config: HeadConfig, width: int) -> None:
    """Gradients are those of finite differences, and every parameter has one that is not zero."""
    head = build_head(config, width)
    x, y = (point.clone().requires_grad_() for point in _points(width, 2, 4))
    torch.autograd.gradcheck(head, (x, y))
    head(x, y).sum().backward()
    for name, parameter in head.named_parameters():
        gradient = parameter.grad
        if gradient is None:
            raise AssertionError(f"no gradient reaches {name}.")
        expect(gradient.isfinite().all(), f"the gradient of {name} is {gradient}.")
        expect(gradient.abs().sum() > 0, f"the gradient of {name} is zero.")


def all_pairs_match_broadcast_pairs(config: HeadConfig, width: int) -> None:
    """`all_pairs(x, y, tile)` gives the values and gradients of all pairs, whatever the size of a tile."""
    head = build_head(config, width)
    x, y = _points(width, 7).requires_grad_(), _points(width, 6)[1:].clone().requires_grad_()
    wanted = head(x[:, None], y)
    gradients = torch.autograd.grad(wanted.square().sum(), (x, y))
    for tile in (None, 1, 3, 100):  # untiled, single rows, uneven tiles, one larger tile
        found = head.all_pairs(x, y, tile)
        torch.testing.assert_close(found, wanted)
        for a, b in zip(torch.autograd.grad(found.square().sum(), (x, y)), gradients, strict=True):
            torch.testing.assert_close(a, b)
    with torch.no_grad():
        torch.testing.assert_close(head.all_pairs(x, tile=4), head(x[:, None], x))


def leading_dimensions_broadcast(config: HeadConfig, width: int) -> None:
    """(..., d), (..., d) → (...), with the leading dimensions of both broadcast."""
    head = build_head(config, width)
    x, y = _points(width, 3, 1, 2), _points(width, 4, 1)
    expect(head(x, y).shape == (3, 4, 2), f"the shape is {tuple(head(x, y).shape)}, not (3, 4, 2).")
    torch.testing.assert_close(head(x, y)[2, 1, 0], head(x[2, 0, 0], y[1, 0]))
    expect(head(x[0, 0, 0], x[0, 0, 1]).shape == (), "two points do not give one number.")
    expect(head(x[:0], y).shape == (0, 4, 2), "no points do not give an empty result.")


def state_restores_the_head(config: HeadConfig, width: int) -> None:
    """All of the state is in `state_dict`."""
    head, other = build_head(config, width), build_head(config, width, perturbed=False)
    other.load_state_dict(head.state_dict())
    x, y = _points(width, 2, 20)
    expect(torch.equal(head(x, y), other(x, y)), "energies differ after loading.")


def invalid_shapes_are_rejected(config: HeadConfig, width: int) -> None:
    """Different widths and shapes that do not broadcast raise InputError, and so does a width of 0."""
    head = build_head(config, width)
    x = _points(width, 5)
    expect_input_error(lambda: head(x, x[:, 1:]))
    expect_input_error(lambda: head(x, x[:4]))
    expect_input_error(lambda: head.all_pairs(x[0], x))
    expect_input_error(lambda: head.all_pairs(x, tile=0))
    expect_input_error(lambda: config.build(0))


ENERGY_RULES = (
    is_non_negative_and_zero_at_identical_points,
    satisfies_the_triangle_inequality_if_declared,
    distinct_points_have_positive_energy_unless_declared,
    is_symmetric_if_declared,
    gradients_match_finite_differences,
    all_pairs_match_broadcast_pairs,
    leading_dimensions_broadcast,
    state_restores_the_head,
    invalid_shapes_are_rejected,
)
