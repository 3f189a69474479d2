"""Recipes of agents that are taught: a student with the latents of a teacher, or two agents that teach each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import tyro

from jepatlas.core.arrays import check_finite, read_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.sealing import check_unchanged, seal_file
from jepatlas.objectives.teaching import AnyTeaching, MigrationConfig, MutualConfig
from jepatlas.recipes.vision_recipe import ViewImages, VisionRecipe, build_vision, crop_stream, read_images
from jepatlas.training import TrainingConfig

if TYPE_CHECKING:
    from jepatlas.data import Prefetched
    from jepatlas.data.images import ImageStream
    from jepatlas.objectives.teaching import MutualTeaching, Student

__all__ = [
    "MutualRecipe",
    "TaughtRecipe",
    "TeacherFile",
    "TeachingTargets",
    "build_mutual",
    "build_taught",
    "shared_states",
    "teaching_targets",
]

SHOWN = 3  # states listed in a message


@dataclass(frozen=True)
class TeacherFile:
    """A file of a teacher's latents, as 'jepatlas encode' writes it.

    It holds `h` and the `ids` of the states, and `labels` if logits are to be distilled. Neither the network nor the
    images of the teacher are needed.
    """

    kind: ClassVar[str] = "latents"

    path: str = ""
    sha256: str | None = None
    """Hash of the file. It is set when a run starts."""

    def sealed(self) -> TeacherFile:
        """With the absolute path and the hash of the file."""
        path, sha256 = seal_file(self.path)
        return replace(self, path=path, sha256=sha256)


@dataclass(frozen=True)
class TaughtRecipe:
    """A student that also learns from a teacher's latents of shared states."""

    kind: ClassVar[str] = "taught"

    teacher: Annotated[TeacherFile, tyro.conf.Suppress] = field(default_factory=TeacherFile)
    teaching: AnyTeaching = field(default_factory=MigrationConfig)
    pairs: int = 64
    """Shared states in one step, over all processes."""
    student: Annotated[VisionRecipe, tyro.conf.arg(name="")] = field(default_factory=VisionRecipe)

    def __post_init__(self) -> None:
        _check_pairs(self.pairs, self.training)

    @property
    def seed(self) -> int:
        return self.student.seed

    @property
    def training(self) -> TrainingConfig:
        return self.student.training

    @property
    def agents(self) -> dict[str, tuple[VisionRecipe, str]]:
        """The recipe of each agent of a run, and the name of its submodule in the objective."""
        return {"student": (self.student, "own")}

    def sealed(self) -> TaughtRecipe:
        """With the hashes of the images and of the teacher's file."""
        return replace(self, student=self.student.sealed(), teacher=self.teacher.sealed())

    def build(self) -> tuple[Student, Prefetched]:
        """The objective with initial weights, and the stream of its batches."""
        return build_taught(self)


@dataclass(frozen=True)
class MutualRecipe:
    """Two agents that teach each other. They are trained together, so their training settings must be equal."""

    kind: ClassVar[str] = "mutual"

    first: VisionRecipe = field(default_factory=VisionRecipe)
    second: VisionRecipe = field(default_factory=lambda: VisionRecipe(seed=1))
    teaching: MutualConfig = field(default_factory=MutualConfig)
    pairs: int = 64
    """Shared states in one step, over all processes."""

    def __post_init__(self) -> None:
        _check_pairs(self.pairs, self.training)
        if self.first == self.second:
            raise InputError(
                "Both agents have the same recipe, including view and seed, so they would be identical. Give two "
                "views, or two seeds."
            )
        first = self.first.training
        second = self.second.training
        if first != second:
            different = [name for name, value in vars(first).items() if value != getattr(second, name)]
            raise InputError(
                "Two agents that teach each other need the same training settings, but their recipes differ in "
                f"{', '.join(different)}."
            )

    @property
    def seed(self) -> int:
        return self.first.seed

    @property
    def training(self) -> TrainingConfig:
        return self.first.training

    @property
    def agents(self) -> dict[str, tuple[VisionRecipe, str]]:
        """The recipe of each agent of a run, and the name of its submodule in the objective."""
        return {"first": (self.first, "first"), "second": (self.second, "second")}

    def sealed(self) -> MutualRecipe:
        """With the hashes of the images."""
        return replace(self, first=self.first.sealed(), second=self.second.sealed())

    def build(self) -> tuple[MutualTeaching, Prefetched]:
        """The objective with initial weights, and the stream of its batches."""
        return build_mutual(self)


def _check_pairs(pairs: int, training: TrainingConfig) -> None:
    if pairs < 1 or pairs % training.accumulate:
        raise InputError(
            f"pairs must be a positive multiple of the {training.accumulate} micro-batches of a step, but {pairs} was "
            "given."
        )


@dataclass(frozen=True)
class TeachingTargets:
    """What a student is taught about states that it is trained on."""

    rows: np.ndarray  # of the student's images
    targets: np.ndarray  # (rows, k), float32: standardised latents of the teacher, or logits


def build_taught(recipe: TaughtRecipe) -> tuple[Student, Prefetched]:
    """The student with initial weights, and the stream of its crops and shared states."""
    from jepatlas.core.seeding import forked_rng
    from jepatlas.data import Prefetched
    from jepatlas.data.images import PairedStream
    from jepatlas.training import check_no_running_statistics

    agent = recipe.student
    images = read_images(agent)
    taught = teaching_targets(recipe, images)
    width = taught.targets.shape[1]
    own = build_vision(agent, images)
    with forked_rng(recipe.seed, "lesson"):
        student = recipe.teaching.build(own, agent.encoder.width, width)
    if recipe.training.ema:
        check_no_running_statistics(student)
    targets = np.zeros((len(images.images), width), np.float32)
    targets[taught.rows] = taught.targets
    shared = _shared_stream(agent, images, taught.rows, recipe.pairs, recipe.seed)
    return student, Prefetched(PairedStream((crop_stream(agent, images),), (shared,), targets))


def build_mutual(recipe: MutualRecipe) -> tuple[MutualTeaching, Prefetched]:
    """Both agents with initial weights, and the stream of their crops and shared states."""
    from jepatlas.data import Prefetched
    from jepatlas.data.images import PairedStream
    from jepatlas.training import check_no_running_statistics

    first, second = recipe.first, recipe.second
    images = (read_images(first), read_images(second))
    rows = shared_states(*images)
    agents = (build_vision(first, images[0]), build_vision(second, images[1]))
    mutual = recipe.teaching.build(agents, (first.encoder.width, second.encoder.width))
    if recipe.training.ema:
        check_no_running_statistics(mutual)
    shared = (
        _shared_stream(first, images[0], rows[0], recipe.pairs, recipe.seed),
        _shared_stream(second, images[1], rows[1], recipe.pairs, recipe.seed),
    )
    own = (crop_stream(first, images[0]), crop_stream(second, images[1]))
    return mutual, Prefetched(PairedStream(own, shared))


def _shared_stream(agent: VisionRecipe, images: ViewImages, rows: np.ndarray, pairs: int, seed: int) -> ImageStream:
    """Images without augmentation, as the teacher's latents are of such images."""
    from jepatlas.core.distributed import rank, world_size
    from jepatlas.data.images import CropPlan, ImageStream

    if pairs > len(rows):
        raise InputError(f"pairs is {pairs}, but there are only {len(rows)} shared states. Choose --pairs {len(rows)}.")
    return ImageStream(
        images.images,
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


def teaching_targets(recipe: TaughtRecipe, images: ViewImages) -> TeachingTargets:
    """The teacher's latents or logits of the student's training states. Held-out states are left out."""
    path = str(check_unchanged(recipe.teacher.path, recipe.teacher.sha256))
    arrays = read_arrays(path)
    h, ids = _latents(path, arrays)
    row_of = {state: number for number, state in enumerate(ids)}
    if len(row_of) < len(ids):
        raise InputError(f"{path}: {len(ids) - len(row_of)} states occur more than once, but must be unique.")
    mine = images.table.column("state")[images.learnt].tolist()
    shared = np.array([number for number, state in enumerate(mine) if state in row_of], np.int64)
    if len(shared) < 2:
        raise InputError(
            f"The student and the teacher share {len(shared)} training states, but at least 2 are needed. The student "
            f"is trained on {len(mine)} states ({', '.join(mine[:SHOWN])}, …); {path} has {len(ids)} "
            f"({', '.join(ids[:SHOWN])}, …). Write the teacher's latents of its training states with 'jepatlas encode "
            "RUN --part learnt'."
        )
    rows = np.array([row_of[mine[number]] for number in shared.tolist()])
    if recipe.teaching.tells == "latents":
        return TeachingTargets(images.learnt[shared], _standardised(h[rows]))
    return TeachingTargets(images.learnt[shared], _logits(path, arrays, h, rows))


def _latents(path: str, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, list[str]]:
    missing = [name for name in ("h", "ids") if name not in arrays]
    if missing:
        raise InputError(f"{path} has no array {' and '.join(missing)}. A teacher's file needs latents h and ids.")
    h = arrays["h"]
    ids = arrays["ids"]
    if h.ndim != 2 or ids.shape != h.shape[:1]:
        raise InputError(
            f"{path} must have one row of h and one id per state, but h has shape {h.shape} and ids {ids.shape}."
        )
    check_finite(f"{path}: h", h)
    return h.astype(np.float64), [str(state) for state in ids.tolist()]


def _standardised(h: np.ndarray) -> np.ndarray:
    centred = h - h.mean(0)
    spread = np.sqrt(np.square(centred).mean())
    return (centred / (spread or 1.0)).astype(np.float32)


def _logits(path: str, arrays: dict[str, np.ndarray], h: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Logits of a linear probe that is fitted to the teacher's latents of the shared states."""
    from jepatlas.alignment.probes import LinearProbe

    if "labels" not in arrays:
        raise InputError(
            f"Distilling logits needs labels, to fit a probe on the teacher's latents, but {path} has none. Add "
            "labels, or distil latents with --teaching.tells latents."
        )
    return LinearProbe.fit(h[rows], arrays["labels"][rows]).logits(h[rows]).astype(np.float32)


def shared_states(one: ViewImages, other: ViewImages) -> tuple[np.ndarray, np.ndarray]:
    """Rows of both agents' training images that show the same states, in the same order."""
    states = one.table.column("state")
    other_states = other.table.column("state")
    _check_no_leak(states[one.held], other_states[other.learnt])
    _check_no_leak(other_states[other.held], states[one.learnt])
    row_of = dict(zip(other_states[other.learnt].tolist(), other.learnt.tolist(), strict=True))
    rows = [row for row in one.learnt.tolist() if states[row] in row_of]
    if len(rows) < 2:
        raise InputError(
            f"The agents share {len(rows)} of their {len(one.learnt)} and {len(other.learnt)} training states, but at "
            "least 2 are needed. Give them views of the same states."
        )
    return np.array(rows), np.array([row_of[states[row]] for row in rows])


def _check_no_leak(held: np.ndarray, learnt: np.ndarray) -> None:
    """Held-out states of one agent must not reach it through the other."""
    leaked = set(held.tolist()) & set(learnt.tolist())
    if leaked:
        raise InputError(
            f"{len(leaked)} held-out states of one agent are training states of the other, such as '{min(leaked)}'. "
            "Give both agents the same images, --held and --split."
        )
