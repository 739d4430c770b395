"""Names of encoders: ``library:model``, or the name of a package that carries its weights."""

from __future__ import annotations

from collections.abc import Sequence

# what follows the colon is the library's own name of a model, or a local folder where it takes one
IMAGE_LIBRARIES = ("timm", "torchvision", "transformers", "open_clip", "efficientnet-lite0")
TEXT_LIBRARIES = ("sentence-transformers", "transformers", "open_clip", "minilm")
# these packages are one model
_WHOLE = frozenset({"efficientnet-lite0", "minilm"})


def check_encoder(name: str, libraries: Sequence[str], key: str) -> tuple[str, str]:
    """Library and model of an encoder's name.

    Args:
        name: such as ``timm:resnet18`` or ``minilm``.
        libraries: ``IMAGE_LIBRARIES`` or ``TEXT_LIBRARIES``.
        key: setting that names it, for the message.

    Raises:
        ValueError: for another library, or a name without a model.

    Example:
        >>> check_encoder("open_clip:ViT-B-32/openai", IMAGE_LIBRARIES, "model.image_encoder")
        ('open_clip', 'ViT-B-32/openai')
        >>> check_encoder("minilm", TEXT_LIBRARIES, "model.text_encoder")
        ('minilm', '')
    """
    library, colon, model = name.partition(":")
    if library not in libraries:
        forms = ", ".join(known if known in _WHOLE else f"{known}:NAME" for known in libraries)
        raise ValueError(f"{key}={name!r} is unknown; expected one of {forms}")
    if (library in _WHOLE) == bool(colon) or (colon and not model):
        form = library if library in _WHOLE else f"{library}:NAME"
        raise ValueError(f"{key}={name!r} is not understood; expected {form}")
    return library, model
