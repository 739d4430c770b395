"""Lets torchvision be imported where its compiled operators do not load, as beside a CPU build of torch.

Only boxes and regions need them; transforms and models, which open_clip and timm use, are Python.
"""

from __future__ import annotations

import torch

# what torchvision registers shapes for on import
_NEEDED = ("nms", "qnms")
_declared: list[torch.library.Library] = []


def declare_missing_operators() -> None:
    """Declare the operators that importing torchvision needs; nothing where it works as it is."""
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
    else:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in _NEEDED:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    # it forgets its operators when it is collected
    _declared.append(library)
    import torchvision  # noqa: F401
