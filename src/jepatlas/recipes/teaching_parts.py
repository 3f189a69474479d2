"""From the recipe of agents that are taught to what the loop trains: the objective, and the stream of shared states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.arrays import check_finite, read_arrays
from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.sealing import check_unchanged
from jepatlas.core.seeding import forked_rng
from jepatlas.data import Prefetched
from jepatlas.data.images import CropPlan, ImageStream, PairedStream
from jepatlas.objectives.teaching import MutualTeaching, Student
from jepatlas.recipes.teaching import MutualRecipe, TaughtRecipe
from jepatlas.recipes.vision import VisionRecipe
from jepatlas.recipes.vision_parts import SeenImages, build_vision, crop_stream, see
from jepatlas.training import check_no_running_statistics

__all__ = ["Lessons", "build_mutual", "build_taught", "lessons_for", "shared_states"]

SHOWN = 3  # states that a message names


@dataclass(frozen=True)
class Lessons:
    """What a teacher tells a student, of states that the student learns from."""

    rows: np.ndarray  # of the student's images
    told: np.ndarray  # (rows, k), float32: latents about their mean in units of their spread, or logits


def build_taught(recipe: TaughtRecipe) -> tuple[Student, Prefetched]:
    seen = see(recipe.student)
    lessons = lessons_for(recipe, seen)
    own = build_vision(recipe.student, seen)
    with forked_rng(recipe.seed, "lesson"):
        student = recipe.teaching.build(own, recipe.student.encoder.width, lessons.told.shape[1])
    if recipe.training.ema:
        check_no_running_statistics(student)
    told = np.zeros((len(seen.images), lessons.told.shape[1]), np.float32)
    told[lessons.rows] = lessons.told
    shared = (_shared(recipe.student, seen, lessons.rows, recipe.pairs, recipe.seed),)
    return student, Prefetched(PairedStream((crop_stream(recipe.student, seen),), shared, told))


def build_mutual(recipe: MutualRecipe) -> tuple[MutualTeaching, Prefetched]:
    agents = (recipe.first, recipe.second)
    seen = [see(agent) for agent in agents]
    rows = shared_states(seen[0], seen[1])
    one, two = (build_vision(*each) for each in zip(agents, seen, strict=True))
    mutual = recipe.teaching.build((one, two), (recipe.first.encoder.width, recipe.second.encoder.width))
    if recipe.training.ema:
        check_no_running_statistics(mutual)
    shared = [_shared(*part, recipe.pairs, recipe.seed) for part in zip(agents, seen, rows, strict=True)]
    own = [crop_stream(agent, images) for agent, images in zip(agents, seen, strict=True)]
    return mutual, Prefetched(PairedStream(tuple(own), tuple(shared)))


def _shared(agent: VisionRecipe, seen: SeenImages, rows: np.ndarray, pairs: int, seed: int) -> ImageStream:
    """Images as they are: a teacher's latents are of such, too."""
    if pairs > len(rows):
        raise InputError(
            f"A step is to show {pairs} shared states, but there are only {len(rows)}. Choose --pairs "
            f"{len(rows)} or fewer."
        )
    return ImageStream(
        seen.images,
        pairs // agent.training.accumulate,
        seed,
        plan=CropPlan("one", ("none",)),
        rows=rows,
        shuffle=agent.shuffle,
        name="shared",
        device=agent.training.device,
        rank=rank(),
        world_size=world_size(),
    )


def lessons_for(recipe: TaughtRecipe, seen: SeenImages) -> Lessons:
    """Of the teacher's latents those of states that the student learns from: what is held out stays so."""
    path = str(check_unchanged(recipe.teacher.path, recipe.teacher.sha256))
    arrays = read_arrays(path)
    h, ids = _latents(path, arrays)
    place = {state: number for number, state in enumerate(ids)}
    if len(place) < len(ids):
        raise InputError(f"{path}: {len(ids) - len(place)} states come more than once. A teacher tells of each once.")
    mine = seen.table.column("state")[seen.learnt].tolist()
    shared = np.array([number for number, state in enumerate(mine) if state in place], np.int64)
    if len(shared) < 2:
        raise InputError(
            f"The student learns from {len(mine)} states ({', '.join(mine[:SHOWN])}, …), and {len(shared)} of them are "
            f"among the {len(ids)} of {path} ({', '.join(ids[:SHOWN])}, …): there is nothing to teach. Are the "
            "teacher's latents those of the states that it learned from ('jepatlas encode RUN --part learnt')?"
        )
    rows = np.array([place[mine[number]] for number in shared.tolist()])
    if recipe.teaching.tells == "latents":
        return Lessons(seen.learnt[shared], _in_units(h[rows]))
    return Lessons(seen.learnt[shared], _logits(path, arrays, h, rows))


def _latents(path: str, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, list[str]]:
    if missing := [name for name in ("h", "ids") if name not in arrays]:
        raise InputError(
            f"{path} has no array {' and '.join(missing)}, but a teacher's latents come with the ids of their states."
        )
    h, ids = arrays["h"], arrays["ids"]
    if h.ndim != 2 or ids.shape != h.shape[:1]:
        raise InputError(
            f"{path}: there must be one latent and one id for each state, but h is {h.shape} and ids {ids.shape}."
        )
    check_finite(f"{path}: h", h)
    return h.astype(np.float64), [str(state) for state in ids.tolist()]


def _in_units(h: np.ndarray) -> np.ndarray:
    centred = h - h.mean(0)
    spread = np.sqrt(np.square(centred).mean())
    return (centred / (spread or 1.0)).astype(np.float32)


def _logits(path: str, arrays: dict[str, np.ndarray], h: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Of a probe that is trained where the teacher is, on the same states."""
    if "labels" not in arrays:
        raise InputError(
            f"Logits are to be distilled, which a probe on the teacher's latents gives, but {path} has no "
            "labels. Label the states, or distil latents: --teaching.tells latents."
        )
    from jepatlas.alignment.probes import LinearProbe  # noqa: PLC0415  (scikit-learn takes a second to import)

    return LinearProbe.fit(h[rows], arrays["labels"][rows]).logits(h[rows]).astype(np.float32)


def shared_states(one: SeenImages, other: SeenImages) -> tuple[np.ndarray, np.ndarray]:
    """Rows of both agents' images that show the same states, which both learn from."""
    states = [seen.table.column("state") for seen in (one, other)]
    _refuse_told_tests(states, one, other)
    place = dict(zip(states[1][other.learnt].tolist(), other.learnt.tolist(), strict=True))
    rows = [row for row in one.learnt.tolist() if states[0][row] in place]
    if len(rows) < 2:
        raise InputError(
            f"The agents learn from {len(one.learnt)} and {len(other.learnt)} states and share {len(rows)}"
            " of them: there is nothing to teach. Give them views of the same states."
        )
    return np.array(rows), np.array([place[states[0][row]] for row in rows])


def _refuse_told_tests(states: list[np.ndarray], one: SeenImages, other: SeenImages) -> None:
    """What one is judged by must not reach it through the other."""
    for a, b in ((0, 1), (1, 0)):
        held = (one, other)[a].held
        if found := set(states[a][held].tolist()) & set(states[b][(one, other)[b].learnt].tolist()):
            raise InputError(
                f"One agent is judged by {len(found)} states that the other learns from, such as "
                f"'{min(found)}'. Give both the same images, share held out and split."
            )
