"""Which of many moments to look at first."""

from __future__ import annotations

from collections import deque


def spread_order(n: int) -> list[int]:
    """Positions 0 to n - 1: the last, the first, then always the middle of what lies between two of them.

    So whatever number of them is taken tells the whole course as evenly as it can.

    Args:
        n: how many there are.

    Example:
        >>> spread_order(6)
        [5, 0, 2, 1, 3, 4]
    """
    order, gaps = list(dict.fromkeys([n - 1, 0])) if n else [], deque([(0, n - 1)])
    while gaps:
        low, high = gaps.popleft()
        if high - low < 2:
            continue
        middle = (low + high) // 2
        order.append(middle)
        gaps.extend([(low, middle), (middle, high)])
    return order
