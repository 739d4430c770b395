"""What the libraries need to be imported and to stay off the network, before any test imports them."""

from __future__ import annotations

import os

from tests.support.vision_operators import declare_missing_operators

declare_missing_operators()
os.environ["HF_HUB_OFFLINE"] = "1"
