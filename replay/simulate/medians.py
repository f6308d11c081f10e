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
    order = np.lexsort((values, groups))
    sorted_groups, sorted_values = groups[order], values[order]
    first = np.flatnonzero(np.append(True, sorted_groups[1:] != sorted_groups[:-1]))
    size = np.diff(np.append(first, len(order)))
    middle = (sorted_values[first + (size - 1) // 2] + sorted_values[first + size // 2]) / 2
    known = size >= least
    found[sorted_groups[first[known]]] = middle[known]
    return found
