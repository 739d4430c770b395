"""Image-text and clip-text pairs: one Parquet reader, the shipped sample sets, reproducible batches."""

from uwml_core.data.dataset import CaptionedItems, PairDataset
from uwml_core.data.errors import DataError
from uwml_core.data.loading import load_pairs, load_sample
from uwml_core.data.opening import DECODE, open_data
from uwml_core.data.samples import SAMPLES, sample_path
from uwml_core.data.sampling import draw_captions, epoch_batches
from uwml_core.data.selection import LANGUAGES, parse_only
from uwml_core.data.swapping import swap_captions

__all__ = [
    "DECODE",
    "LANGUAGES",
    "SAMPLES",
    "CaptionedItems",
    "DataError",
    "PairDataset",
    "draw_captions",
    "epoch_batches",
    "load_pairs",
    "load_sample",
    "open_data",
    "parse_only",
    "sample_path",
    "swap_captions",
]
