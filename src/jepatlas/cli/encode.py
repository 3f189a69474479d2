"""`jepatlas encode`: write the latents of any encoder on images, videos, texts or episodes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro

from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, defer_interrupts, emit, say
from jepatlas.core.errors import InputError
from jepatlas.recipes import Part

if TYPE_CHECKING:
    import numpy as np

    from jepatlas.recipes import ViewImages

OF_RUNS = ("part", "pipeline", "seed")  # options for a run without --model


@dataclass(frozen=True)
class Encode:
    """Write the latents of images, videos, texts or episodes, for align, migrate, atlas and certify.

    Example: jepatlas encode photos --model facebook/dinov2-small --out dino.npz

    Example: jepatlas encode drive/views.csv --view left --model efficientnet-lite0 --untrained --out lite0.npz

    Example: jepatlas encode videos --model facebook/vjepa2-vitl-fpc64-256 --out videos.npz

    Example: jepatlas encode texts.txt --model sentence-transformers/all-MiniLM-L6-v2 --out new.npz

    Example: jepatlas encode runs/left --out left.npz

    The last one encodes the images of a run of 'jepatlas train vision' by its own agent. To continue an interrupted
    command, repeat it.
    """

    most_used: ClassVar[str] = "model out pool layers view stride batch device half untrained"

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SOURCE")]
    """A folder of images, a multi-view table (CSV), 'fashion-mnist', a folder of videos, a text file with one text per
    line, or episodes. Or a run of 'jepatlas train vision', without --model."""
    model: str | None = None
    """A name on the HuggingFace Hub or a folder, timm:NAME, efficientnet-lite0 (1, 2), your own code (file.py:function,
    module:Class), a file (.onnx; with --trust .pt2 of torch.export, or .pt of TorchScript), or a run."""
    pool: Literal["auto", "cls", "mean"] = "auto"
    """What becomes the latent: the class token or the mean of the others. By default the class token if there is
    one; for texts what the model states, else the mean."""
    layers: str | None = None
    """'all': also write the latents after each block. A number: take those after that block as the latents."""
    untrained: bool = False
    """Also write the latents of the same architecture with random weights, as a control for align."""
    view: str | None = None
    """The view of a table that has several."""
    stride: int | None = None
    """Videos and episodes: frames from h to h_next (1; for clips their length)."""
    clip: int | None = None
    """Frames of a clip, for models of videos. By default those of the model."""
    most: int | None = None
    """Encode an even subsample of this many images or texts."""
    size: int | None = None
    """Height and width that images are resized to, if the model does not state its own."""
    mean: tuple[float, ...] | None = None
    """Mean of the pixels of each channel, in 0 … 1, if the model does not state its own."""
    std: tuple[float, ...] | None = None
    """Their standard deviation."""
    tokenizer: str | None = None
    """Folder or name of the tokenizer for an ONNX file of texts. By default in the folder of the file."""
    batch: int | None = None
    """Items at once. By default 32 on a CPU and 128 on a GPU, divided by the frames of a clip."""
    half: bool = False
    """Store latents in half precision."""
    shard_gb: float = 2.0
    """Split results above this size into numbered files, which are read under the name of --out."""
    device: str | None = None
    """Such as cuda:1. By default the GPU if there is one."""
    part: Part = "held"
    """For a run without --model: the states to encode, held out, training states (learnt), or all."""
    pipeline: str | None = None
    """For a run without --model: augment each image once by this pipeline (A, B, mild, plain), to give agents different
    views of one image."""
    seed: int = 0
    """For a run without --model: seed of the augmentations."""
    out: Path | None = None
    """The file (npz, safetensors, parquet). By default latents.npz, in the run folder for a run."""
    json: str | None = None
    """Write a summary as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Encode, "encode", _with_all_layers(args))
    if options.model is not None:
        return _encode_by_model(options, options.model)
    if not (Path(options.source) / "recipe.yaml").is_file():
        raise InputError(f"{options.source} is not a run folder. Name the model that encodes it with --model.")
    _refuse(options, {one for one in asdict(Encode("")) if one not in (*OF_RUNS, "source", "layers", "out", "json")})
    return _encode_run(options)


def _with_all_layers(args: list[str]) -> list[str]:
    """`--layers` alone means all of them, as in version 0.1."""
    bare = [i for i, word in enumerate(args) if word == "--layers" and (i + 1 == len(args) or args[i + 1][:1] == "-")]
    return args if not bare else [*args[: bare[0] + 1], "all", *args[bare[0] + 1 :]]


def _refuse(options: Encode, names: set[str]) -> None:
    default = asdict(replace(Encode(""), layers=None))
    for name, value in asdict(options).items():
        if name in names and value != default[name]:
            kind = "needs --model" if options.model is None else "is for a run without --model"
            raise InputError(f"--{name.replace('_', '-')} {kind}.")


def _encode_by_model(options: Encode, model_name: str) -> int:
    _refuse(options, set(OF_RUNS))
    with defer_interrupts():
        from jepatlas.workflows.encode import (
            EncodeOptions,
            ModelOptions,
            SourceOptions,
            encode_to_file,
            open_model,
            open_source,
        )

    console = console_for(options.json)
    given = ModelOptions(
        options.pool,
        options.layers,
        options.size,
        options.mean,
        options.std,
        options.clip,
        options.tokenizer,
        device=options.device,
    )
    how = EncodeOptions(options.batch, options.half, round(options.shard_gb * 1e9))
    chosen = SourceOptions(options.view, options.stride, options.most)
    out = options.out or Path("latents.npz")
    model = open_model(model_name, given)
    control = open_model(model_name, replace(given, untrained=True, layers=None)) if options.untrained else None
    source = open_source(options.source, chosen, model.reads, model.frames)
    files, notes, (count, width) = encode_to_file(
        model, source, out, options=how, control=control, key=repr(replace(given, device=None))
    )
    written = {"source": options.source, "model": model_name, "out": str(out), "files": [str(file) for file in files]}
    emit(options.json, written | {"rows": count, "width": width, "notes": notes})
    for note in notes:
        say(console, note)
    split = f" in {len(files)} files" if len(files) > 1 else ""
    say(console, f"{count} latents of width {width}: {out}{split}.")
    if source.pairs is not None:
        say(console, f"Next: jepatlas certify {quote(str(out))}")
    else:
        say(console, f"Next, with those of another model: jepatlas align {quote(str(out))} OTHER")
    return 0


def _encode_run(options: Encode) -> int:
    with defer_interrupts():
        from jepatlas.core.arrays import write_arrays
        from jepatlas.workflows.vision import latents_of, load_agent

    if options.layers not in (None, "all"):
        raise InputError(
            f"--layers {options.layers} needs --model. For a run, --layers all writes those of all blocks."
        )
    console = console_for(options.json)
    run = Path(options.source)
    agent = load_agent(run)
    layers = options.layers is not None
    arrays = latents_of(
        agent, options.part, layers=layers, pipeline=options.pipeline, seed=options.seed, untrained=True
    )
    place = options.out or run / "latents.npz"
    write_arrays(place, arrays)
    count, width = arrays["h"].shape
    notes = _notes(agent.seen, arrays)
    emit(options.json, {"run": str(run), "out": str(place), "rows": count, "width": width, "notes": notes})
    for note in notes:
        say(console, note)
    say(console, f"{count} latents of width {width}: {place}.")
    say(console, f"Next, with those of another agent: jepatlas align {quote(str(place))} OTHER")
    return 0


def _notes(images: ViewImages, arrays: dict[str, np.ndarray]) -> list[str]:
    """Which images and columns of the table are left out of the file."""
    notes = [images.message] if images.message else []
    for name, column in (("labels", "label"), ("groups", "group")):
        if column in images.table.columns and name not in arrays:
            notes.append(f"No {name} are written: the column '{column}' is empty for some of these states.")
    return notes
