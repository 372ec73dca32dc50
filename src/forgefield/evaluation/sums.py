"""Errors as sums by part of the data and by block of the bootstrap: any number of values in constant memory."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np


class Items(NamedTuple):
    """Sums over the values of each of k atoms or structures.

    Attributes:
        n, absent: (k,) values with and without a reference.
        absolute, squared, largest: (k,) sum of |error|, sum of error^2, and the largest |error|.
    """

    n: np.ndarray
    absent: np.ndarray
    absolute: np.ndarray
    squared: np.ndarray
    largest: np.ndarray

    def joined(self, owner: np.ndarray, count: int) -> "Items":
        """The sums over the items of each of ``count`` owners; ``owner`` (k,) counts from 0."""
        *sums, largest = self
        most = np.zeros(count)
        np.maximum.at(most, owner, largest)
        return Items(*(np.bincount(owner, values, count) for values in sums), most)


def items_of(error: np.ndarray) -> Items:
    """The sums over the values (k, c) of each item; NaN where there is no reference."""
    absent = np.isnan(error)
    absolute = np.where(absent, 0.0, np.abs(error))
    absent = absent.sum(axis=1)
    squared = (absolute**2).sum(axis=1)
    return Items(error.shape[1] - absent, absent, absolute.sum(axis=1), squared, absolute.max(axis=1))


class ErrorSums:
    """Sums over the errors of one quantity, for each of several parts of the data.

    Attributes:
        n, absolute, squared: (parts, blocks) the number of values, the sums of |error| and of error^2.
        absent, largest: (parts,) values without a reference, and the largest |error|.
    """

    def __init__(self, parts: int, blocks: int) -> None:
        self.n, self.absolute, self.squared = np.zeros((3, parts, blocks))
        self.absent, self.largest = np.zeros((2, parts))

    def add(self, items: Items, part: np.ndarray, block: np.ndarray) -> None:
        """Count items (k,), each in its part and block; part -1 is none of them."""
        inside = part >= 0
        items, part, block = Items(*(values[inside] for values in items)), part[inside], block[inside]
        place = part * self.n.shape[1] + block
        for total, values in ((self.n, items.n), (self.absolute, items.absolute), (self.squared, items.squared)):
            total += np.bincount(place, values, total.size).reshape(total.shape)
        self.absent += np.bincount(part, items.absent, len(self.absent))
        np.maximum.at(self.largest, part, items.largest)


@dataclass
class Spread:
    """The squared deviations of values from their mean.

    Chan, Golub and LeVeque (1979): joining means and squared deviations loses no digits to large means.
    """

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, values: np.ndarray) -> Self:
        """Count values of any shape; a NaN is none."""
        values = values[~np.isnan(values)]
        if not values.size:
            return self
        first = values[0]
        mean = float(first + (values - first).mean())
        step, n = mean - self.mean, self.n + values.size
        self.squares += float(((values - mean) ** 2).sum()) + step**2 * self.n * values.size / n
        self.mean += step * values.size / n
        self.n = n
        return self
