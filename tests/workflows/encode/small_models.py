"""Small untrained models in folders, as HuggingFace saves them, and videos to encode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

__all__ = ["save_text_model", "save_video_model", "save_vision_model", "write_images", "write_video"]

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 16,
    "patch_size": 8,
}


def save_vision_model(folder: Path, family: str, **options: Any) -> Any:
    """A model of this family with an image processor of its own settings."""
    torch.manual_seed(1)
    config = getattr(transformers, f"{family}Config")(**SIZES | options)
    model = getattr(transformers, f"{family}Model")(config).eval()
    model.save_pretrained(folder)
    processor = transformers.ViTImageProcessorPil(
        size={"height": 16, "width": 16}, image_mean=list(MEAN), image_std=list(STD)
    )
    processor.save_pretrained(folder)
    return model


def save_video_model(folder: Path, family: str) -> Any:
    """V-JEPA 2 or VideoMAE on clips of 4 frames of 16 × 16 pixels."""
    torch.manual_seed(1)
    if family == "VJEPA2":
        config = transformers.VJEPA2Config(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            crop_size=16,
            patch_size=8,
            frames_per_clip=4,
            pred_hidden_size=12,
            pred_num_attention_heads=1,
            pred_num_hidden_layers=1,
        )
        settings = '"size": {"shortest_edge": 18}, "crop_size": {"height": 16, "width": 16}'
        name = "video_preprocessor_config.json"
    else:
        config = transformers.VideoMAEConfig(**SIZES, num_frames=4, tubelet_size=2)
        settings, name = '"size": {"height": 16, "width": 16}', "preprocessor_config.json"
    model = getattr(transformers, f"{family}Model")(config).eval()
    model.save_pretrained(folder)
    (folder / name).write_text(f'{{{settings}, "image_mean": {[*MEAN]}, "image_std": {[*STD]}}}')
    return model


def save_text_model(folder: Path, *, words: str, sentence: bool) -> Any:
    """A BERT that knows these words; with `sentence`, as sentence-transformers saves it, with unit length."""
    torch.manual_seed(1)
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *sorted(set(words.split()))])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()  # pyright: ignore[reportAttributeAccessIssue]
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")
    fast.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
    )
    model = transformers.BertModel(config).eval()
    model.save_pretrained(folder)
    if sentence:
        prefix = "sentence_transformers.models"
        modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
        listed = ", ".join(f'{{"type": "{prefix}.{kind}", "path": "{path}"}}' for kind, path in modules)
        (folder / "modules.json").write_text(f"[{listed}]")
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    return model


def write_images(folder: Path, count: int, size: tuple[int, int] = (20, 24), seed: int = 0) -> np.ndarray:
    """Images in PNG files; returns them as (b, height, width, 3)."""
    folder.mkdir(parents=True, exist_ok=True)
    images = np.random.default_rng(seed).integers(0, 256, (count, *size, 3), dtype=np.uint8)
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number:03d}.png")
    return images


def write_video(path: Path, frames: np.ndarray, rate: int = 10) -> None:
    """Frames (b, height, width, 3) as a video without loss."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("ffv1", rate=rate)
        stream.height, stream.width, stream.pix_fmt = *frames.shape[1:3], "bgr0"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
