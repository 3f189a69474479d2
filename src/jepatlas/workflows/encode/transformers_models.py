"""Models of transformers as encoders of images, video clips and texts, with their own preprocessing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import read_json
from jepatlas.core.parsing import parse_json
from jepatlas.nn import pooled_encoder
from jepatlas.workflows.encode.encoder_model import EncoderModel, Latents, ModelOptions, default_device
from jepatlas.workflows.encode.preprocessing import Preprocessing

__all__ = ["pooled_tokens", "text_preparation", "transformers_model"]

FRAMES = ("frames_per_clip", "num_frames")  # in the configs of video models
SETTINGS = ("video_preprocessor_config.json", "preprocessor_config.json")
LONGEST = 512  # tokens of a text, if the tokenizer names no limit


def transformers_model(name: str, options: ModelOptions) -> EncoderModel:
    """Open a local folder, or a name on the HuggingFace Hub, by `AutoModel`. Foreign code is never run."""
    library = require("transformers", "interop", "Encoding with a model of HuggingFace")
    device = default_device(options.device)
    model: Any = _load(library, name, options).to(device).eval()
    if getattr(model.config, "vision_config", None) is not None and hasattr(model, "vision_model"):
        model = model.vision_model  # of CLIP and its relatives, which also have a tower for texts
    if model.main_input_name == "input_ids":
        options.refuse(name, "size", "mean", "std", "clip", "tokenizer")
        return _text_model(name, model, options, device)
    return _pixel_model(library, name, model, options, device)


def _load(library: Any, name: str, options: ModelOptions) -> nn.Module:
    bars = library.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        if options.untrained:
            config = library.AutoConfig.from_pretrained(name)
            with torch.random.fork_rng():
                torch.manual_seed(0)
                return library.AutoModel.from_config(config)
        return library.AutoModel.from_pretrained(name, dtype=torch.float32)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        where = "" if Path(name).is_dir() else " A name is looked for on the HuggingFace Hub and in its cache."
        first = str(error).strip().split("\n", maxsplit=1)[0]
        raise InputError(f"The model '{name}' could not be opened as a model of HuggingFace: {first}{where}") from error
    finally:
        if shown:
            bars.enable_progress_bar()


def _pixel_model(library: Any, name: str, model: Any, options: ModelOptions, device: torch.device) -> EncoderModel:
    own_frames = next((getattr(model.config, key) for key in FRAMES if hasattr(model.config, key)), None)
    video = own_frames is not None
    options.refuse(name, "tokenizer", *(() if video else ("clip",)))
    encoder = pooled_encoder(model, "mean", mean=(0.0,) * 3, std=(1.0,) * 3)
    encoder.pool = _pool(options, encoder.has_class)
    prepare = _video_preprocessing(name, options) if video else _image_preprocessing(library, name, options)

    def encode(pixels: Tensor) -> Latents:
        x = pixels.to(device)
        return {"h": encoder(x)} if options.layers is None else options.chosen(encoder.layers(x))

    frames = options.clip or own_frames or 1
    return EncoderModel(name, "clips" if video else "images", prepare, encode, device, frames)


def _pool(options: ModelOptions, has_class: bool) -> str:
    if options.pool == "auto":
        return "cls" if has_class else "mean"
    return options.pool


def _image_preprocessing(library: Any, name: str, options: ModelOptions) -> Callable[[Sequence[np.ndarray]], Tensor]:
    if options.size is None and options.mean is None and options.std is None:
        try:
            own = library.AutoImageProcessor.from_pretrained(name)
        except (ImportError, OSError, ValueError, KeyError):  # without torchvision, or without settings
            own = None
        if own is not None:
            return lambda images: own(images=list(images), return_tensors="pt")["pixel_values"]
    one = _from_settings(name, options)
    return lambda images: torch.from_numpy(one(images))


def _video_preprocessing(name: str, options: ModelOptions) -> Callable[[Sequence[np.ndarray]], Tensor]:
    """The video processors of transformers need torchvision; their settings are followed without it."""
    one = _from_settings(name, options)
    return lambda clips: torch.from_numpy(np.stack([one(clip) for clip in clips]))


def _from_settings(name: str, options: ModelOptions) -> Preprocessing:
    config = _settings(name)
    if config is None and None in (options.size, options.mean, options.std):
        raise InputError(
            f"'{name}' has no {SETTINGS[1]}, so its preprocessing is unknown. Give --size, --mean and --std, such as "
            "--size 224 --mean 0.485 0.456 0.406 --std 0.229 0.224 0.225."
        )
    return Preprocessing.from_config(config or {}).changed(options.size, options.mean, options.std)


def _settings(name: str) -> dict[str, Any] | None:
    """The preprocessor's settings in the folder, or in the cache of the Hub."""
    for file in SETTINGS:
        place = Path(name) / file
        if not Path(name).is_dir():
            hub = require("huggingface_hub", "interop", "Models of the HuggingFace Hub")
            try:
                place = Path(hub.hf_hub_download(name, file))
            except (OSError, ValueError, hub.errors.HfHubHTTPError):
                continue
        if place.is_file():
            return parse_json(place.read_bytes(), place)
    return None


def _text_model(name: str, model: Any, options: ModelOptions, device: torch.device) -> EncoderModel:
    prepare, pool, unit = text_preparation(name, options)

    def encode(tokens: Any) -> Latents:
        tokens = tokens.to(device)
        output = model(**tokens, output_hidden_states=options.layers is not None)
        mask = tokens["attention_mask"]
        if options.layers is None:
            return {"h": pooled_tokens(output.last_hidden_state, mask, pool, unit)}
        layers = (*output.hidden_states[1:-1], output.last_hidden_state)
        return options.chosen([pooled_tokens(layer, mask, pool, unit) for layer in layers])

    return EncoderModel(name, "texts", prepare, encode, device)


def text_preparation(name: str, options: ModelOptions) -> tuple[Callable[[Sequence[str]], Any], str, bool]:
    """The tokenizer of a model, how its tokens are pooled, and whether latents have unit length."""
    library = require("transformers", "interop", "Encoding texts")
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().split("\n", maxsplit=1)[0]
        raise InputError(f"The tokenizer of '{name}' could not be opened: {first}") from error
    pool, longest, unit = _sentence_settings(name, options)
    longest = min(longest or LONGEST, tokenizer.model_max_length)

    def prepare(texts: Sequence[str]) -> Any:
        return tokenizer(list(texts), padding=True, truncation=True, max_length=longest, return_tensors="pt")

    return prepare, pool, unit


def pooled_tokens(tokens: Tensor, mask: Tensor, pool: str, unit: bool) -> Tensor:
    """The mean over the tokens of each text, or its first token: (b, n, d), (b, n) → (b, d)."""
    weights = mask[..., None].to(tokens.dtype)
    h = tokens[:, 0] if pool == "cls" else (tokens * weights).sum(1) / weights.sum(1).clamp(min=1)
    return nn.functional.normalize(h, dim=1) if unit else h


def _sentence_settings(name: str, options: ModelOptions) -> tuple[str, int | None, bool]:
    """Pooling, longest text and unit length, as a folder of sentence-transformers states them; else the mean."""
    folder = Path(name)
    pool = "mean" if options.pool == "auto" else options.pool
    if not (folder / "modules.json").is_file():
        return pool, None, False
    modules = read_json(folder / "modules.json")
    kinds = {str(one.get("type", "")).rpartition(".")[2]: folder / str(one.get("path", "")) for one in modules}
    if options.pool == "auto" and "Pooling" in kinds:
        modes = read_json(kinds["Pooling"] / "config.json")
        pool = "cls" if modes.get("pooling_mode_cls_token") else "mean"
        if not (modes.get("pooling_mode_cls_token") or modes.get("pooling_mode_mean_tokens", True)):
            raise InputError(f"'{name}' pools by {json.dumps(modes)}, but only the mean and the class token are known.")
    others = sorted(kinds.keys() - {"Transformer", "Pooling", "Normalize"})
    if others:
        raise InputError(f"'{name}' has the module {others[0]}, which is not known. Encode with your own function.")
    limit = folder / "sentence_bert_config.json"
    longest = read_json(limit).get("max_seq_length") if limit.is_file() else None
    return pool, longest, "Normalize" in kinds
