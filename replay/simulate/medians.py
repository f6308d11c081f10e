"""Medians of many groups at once."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def medians(values: Floats, groups: Ints, number: int, least: int = 1) -> Floats:
    """Return the median of the values of each group 0..number-1, NaN for groups of less than `least` values."""
    found = np.full(number, np.nan)
    if not len(values):
        return found
    order = _by_group(np.argsort(values), groups, number)
    sorted_groups, sorted_values = groups[order], values[order]
    first = np.flatnonzero(np.append(True, sorted_groups[1:] != sorted_groups[:-1]))
    size = np.diff(np.append(first, len(order)))
    middle = (sorted_values[first + (size - 1) // 2] + sorted_values[first + size // 2]) / 2
    known = size >= least
    found[sorted_groups[first[known]]] = middle[known]
    return found


def _by_group(order: Ints, groups: Ints, number: int) -> Ints:
    """Bring `order` into that of the groups, else as it is; by 16 bits at a time, which numpy counts out unsorted."""
    for low in range(0, max(number - 1, 1).bit_length(), 16):
        digit = (groups[order] >> low).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
    return order
