"""Contract of objectives on pairs."""

from __future__ import annotations

import copy
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from jepatlas.core.records import Loss, Pairs
from jepatlas.core.seeding import forked_rng
from jepatlas.data import PairStream, Transitions
from jepatlas.nn.mlp import mlp
from jepatlas.objectives import Parts
from jepatlas.testing.contract import check_rules, expect, expect_input_error, round_trips
from jepatlas.worlds import Coupling, LatentWorld, OrnsteinUhlenbeck

__all__ = ["OBJECTIVE_RULES", "check_objective"]

DIM = 3
WORLD = LatentWorld(OrnsteinUhlenbeck(dim=DIM, rho=0.9), Coupling(layers=4))


class ObjectiveConfig(Protocol):
    """A configuration of an objective on pairs. What it builds is an `nn.Module` that follows `contracts.Objective`."""

    def build(self, parts: Parts) -> nn.Module: ...


def check_objective(config: ObjectiveConfig) -> None:
    """Check a configuration whose `build(parts)` gives an objective on pairs."""
    check_rules(config, OBJECTIVE_RULES)


def _encoder(seed: int = 0) -> nn.Module:
    with forked_rng(seed, "encoder"):
        return mlp(DIM, DIM, width=16, depth=2)


def _build(config: ObjectiveConfig, encoder: nn.Module | None = None, seed: int = 0) -> Any:
    return config.build(Parts(_encoder(seed) if encoder is None else encoder, DIM, None, seed))


def _batch(step: int = 0, rows: int = 32) -> Pairs:
    return PairStream(WORLD, Transitions(), rows, seed=0)(step)


def _double(batch: Pairs) -> Pairs:
    return Pairs(batch.x.double(), batch.x_next.double(), batch.z.double(), batch.z_next.double())


def _gradients(objective: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in objective.named_parameters() if p.grad is not None}


def _descend(objective: Any, steps: int) -> None:
    optimizer = torch.optim.AdamW([p for p in objective.parameters() if p.requires_grad], lr=3e-3)
    for step in range(steps):
        optimizer.zero_grad()
        objective(_batch(step, 64), step).total.backward()
        optimizer.step()
        objective.after_step(step)


def gives_a_finite_loss_with_gradients(config: ObjectiveConfig) -> None:
    """A loss is one finite number with named terms, and every trained parameter has a finite gradient."""
    objective = _build(config)
    loss = objective(_batch(), 0)
    expect(isinstance(loss, Loss) and loss.terms, f"it returns {type(loss).__name__}, not a Loss with terms.")
    expect(loss.total.shape == () and loss.total.isfinite(), f"total is {loss.total}.")
    expect(loss.total.requires_grad, "total does not depend on the parameters.")
    for name, term in loss.terms.items():
        expect(term.shape == () and term.isfinite(), f"the term '{name}' is {term}.")
        expect(not term.requires_grad, f"the term '{name}' requires a gradient: detach it.")
    loss.total.backward()
    found = _gradients(objective)
    missing = {name for name, p in objective.named_parameters() if p.requires_grad} - found.keys()
    expect(not missing, f"no gradient reaches {', '.join(sorted(missing))}.")
    infinite = [name for name, gradient in found.items() if not gradient.isfinite().all()]
    expect(not infinite, f"the gradient of {', '.join(infinite)} is not finite.")
    expect(any(gradient.abs().sum() > 0 for gradient in found.values()), "all gradients are zero.")


def gradients_match_finite_differences(config: ObjectiveConfig) -> None:
    """Gradients of the loss with respect to the latents are those of finite differences (`loss(h, h_next, step)`)."""
    objective = _build(config).double()
    if not hasattr(objective, "loss"):
        return
    pairs = _double(_batch(rows=8))
    h, h_next = (objective.encoder(x).detach() * 2 + 0.1 for x in (pairs.x, pairs.x_next))
    inputs = (h.requires_grad_(), h_next.requires_grad_())
    torch.autograd.gradcheck(lambda a, b: objective.loss(a, b, 3).total, inputs)


def training_lowers_the_loss(config: ObjectiveConfig) -> None:
    """Sixty steps of AdamW lower the loss on other pairs by at least 2%."""
    objective = _build(config)
    held = PairStream(WORLD, Transitions(), 256, seed=99)(0)
    before = float(objective(held, 0).total.detach())
    _descend(objective, 60)
    after = float(objective(held, 0).total.detach())
    expect(after < before - 0.02 * abs(before), f"the loss was {before:.4g}, and is {after:.4g}.")


def encodes_rows_independently(config: ObjectiveConfig) -> None:
    """`encode` gives one latent per row, which does not depend on the other rows in evaluation mode."""
    objective = _build(config).eval()
    x = _batch(rows=10).x
    h = objective.encode(x)
    expect(h.shape == (10, DIM) and h.isfinite().all(), f"10 rows give {tuple(h.shape)}, finite: {h.isfinite().all()}.")
    torch.testing.assert_close(objective.encode(x[3:5]), h[3:5])


def loaded_state_gives_the_same_outputs(config: ObjectiveConfig) -> None:
    """All of the state is in `state_dict`: loaded into another objective, it gives the same latents and losses."""
    first, second = _build(config), _build(config, _encoder(seed=5))
    _descend(first, 5)
    batch = _batch(7)
    expect(not torch.equal(first.encode(batch.x), second.encode(batch.x)), "latents do not depend on the encoder.")
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    expect(torch.equal(first.encode(batch.x), second.encode(batch.x)), "the latents differ.")
    one, other = first(batch, 7), second(batch, 7)
    expect(torch.equal(one.total, other.total), f"the losses are {one.total} and {other.total}.")
    expect(one.terms.keys() == other.terms.keys(), "the terms differ.")
    for name, term in one.terms.items():
        expect(torch.equal(term, other.terms[name]), f"the term '{name}' differs.")


def randomness_depends_on_seed_and_step_only(config: ObjectiveConfig) -> None:
    """The loss of a batch follows from the seed and the step, and not from torch's global generator."""
    batch = _batch()
    encoder = _encoder()
    for seed, step in ((0, 1), (0, 2), (1, 1)):
        values = set()
        for state in (1, 2):
            with torch.random.fork_rng():
                torch.manual_seed(state)
                values.add(float(_build(config, encoder, seed)(batch, step).total.detach()))
        expect(len(values) == 1, f"at step {step}, the same batch has the losses {values}.")


def computes_in_float64(config: ObjectiveConfig) -> None:
    """In float64 the loss is float64, and equals that in float32 up to rounding."""
    batch = _batch()
    single, double = _build(config), _build(config).double()
    with_double_encoder = _build(config, _encoder().double())  # only the encoder is converted
    wanted = double(_double(batch), 0)
    expect(wanted.total.dtype == torch.float64, f"total is {wanted.total.dtype}.")
    torch.testing.assert_close(single(batch, 0).total.double(), wanted.total, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(with_double_encoder(_double(batch), 0).total, wanted.total, rtol=1e-6, atol=0)
    found = with_double_encoder.encode(batch.x.double()).dtype
    expect(found == torch.float64, f"the latents of a float64 encoder are {found}.")


def computes_losses_of_half_precision_in_float32(config: ObjectiveConfig) -> None:
    """Under bfloat16 autocast the loss is computed in float32, because batch statistics need the digits."""
    batch = _batch()
    exact = _build(config)(batch, 0)
    mixed = _build(config)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = mixed(batch, 0)
        expect(mixed.encode(batch.x).isfinite().all(), "latents are not finite.")
    types = {loss.total.dtype, *(term.dtype for term in loss.terms.values())}
    expect(types == {torch.float32}, f"total and terms are {types}.")
    torch.testing.assert_close(loss.total, exact.total, rtol=0.1, atol=0.05)
    loss.total.backward()
    expect(all(g.isfinite().all() for g in _gradients(mixed).values()), "gradients are not finite.")


def accepts_its_smallest_batch(config: ObjectiveConfig) -> None:
    """A batch of `smallest_batch(dim)` rows gives a finite loss and gradient, for every width."""
    for dim in (1, 2, 5, 6):
        network = nn.Linear(dim, dim, bias=False).double()
        objective: Any = config.build(Parts(network, dim)).double()
        rows = objective.smallest_batch(dim)
        views = [
            torch.randn(rows, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(i)) for i in (0, 1)
        ]
        loss = objective(Pairs(*views, *views), 0)
        loss.total.backward()
        expect(loss.total.isfinite(), f"for {rows} rows of width {dim}, total is {loss.total}.")
        gradient = network.weight.grad
        expect(gradient is not None and gradient.isfinite().all(), f"for width {dim}, the gradient is {gradient}.")


def rejects_views_of_different_length(config: ObjectiveConfig) -> None:
    """Two views with different numbers of rows raise InputError."""
    batch = _batch(rows=8)
    expect_input_error(lambda: _build(config)(Pairs(batch.x, batch.x_next[:6], batch.z, batch.z_next), 0))


def rejects_latents_that_are_not_vectors(config: ObjectiveConfig) -> None:
    """An encoder that gives one number or a matrix per row raises InputError, in training and in `encode`."""

    class Wrong(nn.Module):
        def __init__(self, shape: tuple[int, ...]) -> None:
            super().__init__()
            self.shape = shape

        def forward(self, x: Tensor) -> Tensor:
            return x.sum(1).reshape(-1, *(1 for _ in self.shape)).expand(-1, *self.shape)

    batch = _batch(rows=8)
    for shape in ((), (DIM, 2)):
        objective = _build(config, Wrong(shape))
        expect_input_error(lambda one=objective: one(batch, 0))
        expect_input_error(lambda one=objective: one.encode(batch.x))


OBJECTIVE_RULES = (
    round_trips,
    gives_a_finite_loss_with_gradients,
    gradients_match_finite_differences,
    training_lowers_the_loss,
    encodes_rows_independently,
    loaded_state_gives_the_same_outputs,
    randomness_depends_on_seed_and_step_only,
    computes_in_float64,
    computes_losses_of_half_precision_in_float32,
    accepts_its_smallest_batch,
    rejects_views_of_different_length,
    rejects_latents_that_are_not_vectors,
)
