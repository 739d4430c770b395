"""Tiny models of transformers and sentence-transformers with random weights, made without downloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizer,
    CLIPConfig,
    CLIPImageProcessor,
    CLIPModel,
    CLIPProcessor,
    CLIPTokenizer,
)

WORDS = ("red", "green", "blue", "round", "square", "cup", "cat", "tree", "on", "under", "a", "the")
END = 31


def clip(seed: int = 0) -> CLIPModel:
    """Pictures of 8 pixels and texts of 8 tokens of 32, embedded in 6 numbers."""
    torch.manual_seed(seed)
    size: dict[str, Any] = {
        "hidden_size": 8,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    text = {
        "vocab_size": 32,
        "max_position_embeddings": 8,
        "bos_token_id": 27,
        "eos_token_id": END,
        "pad_token_id": 0,
    }
    vision = {"image_size": 8, "patch_size": 4}
    return CLIPModel(
        CLIPConfig(text_config={**size, **text}, vision_config={**size, **vision}, projection_dim=6)
    )


def clip_rows(n: int, labels: int = 1000) -> list[dict[str, Any]]:
    """Rows of a data set: a picture and its text, items from 100 on, labels that repeat."""
    random = torch.Generator().manual_seed(1)
    rows = []
    for k in range(n):
        words = torch.randint(1, 30, (5,), generator=random)
        rows.append(
            {
                "pixel_values": torch.randn(3, 8, 8, generator=random),
                "input_ids": torch.cat((words, torch.tensor([END]))),
                "item_id": 100 + k,
                "label": k % labels,
            }
        )
    return rows


def bert_folder(folder: Path) -> Path:
    """A saved BERT of 16 numbers with a word tokenizer."""
    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    BertTokenizer(vocab={word: k for k, word in enumerate(vocabulary)}).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def clip_folder(folder: Path) -> Path:
    """The CLIP model with its processor; the tokenizer knows letters."""
    letters = "abcdefghijklm"
    vocabulary = ["!", *letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>"]
    tokens = {token: k for k, token in enumerate(vocabulary)}
    tokens["<|endoftext|>"] = END
    tokenizer = CLIPTokenizer(vocab=tokens, merges=[], model_max_length=8)
    pictures = CLIPImageProcessor(size={"shortest_edge": 8}, crop_size={"height": 8, "width": 8})
    CLIPProcessor(pictures, tokenizer).save_pretrained(folder)
    clip().save_pretrained(folder)
    return folder
