"""Frames that are in a source more than once, and those that are in more than one part of its split."""

import hashlib
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from forgefield.data.joined import Joined

DIGITS = 1e4  # per Å: coordinates that agree to 4 decimals are the same
LISTED = 100


def fingerprints(joined: Joined) -> bytes:
    """A hash of 8 bytes of each structure's elements, positions and cell."""
    # "C" as hashes go by the order in memory, and without -0.0
    positions, cells = (np.rint(x * DIGITS, order="C") + 0.0 for x in (joined.positions, joined.cells))
    ends, hashes = joined.starts + joined.sizes, bytearray()
    for i, (start, end) in enumerate(zip(joined.starts.tolist(), ends.tolist(), strict=True)):
        digest = hashlib.blake2b(joined.numbers[start:end], digest_size=8)
        for content in (positions[start:end], cells[i], joined.pbc[i]):
            digest.update(content)
        hashes += digest.digest()
    return bytes(hashes)


class Fingerprints:
    """Those of all structures of a source."""

    def __init__(self) -> None:
        self._hashes = bytearray()

    def add(self, hashes: bytes) -> None:
        """Take in the :func:`fingerprints` of structures that follow each other."""
        self._hashes += hashes

    def repeated(self, indices: np.ndarray, parts: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """How many structures repeat an earlier one, and how many of them lie in different parts.

        Args:
            indices: the frame number of each structure.
            parts: by name, the positions of its structures among all that were taken in.

        Returns:
            ``count`` and the first groups of frames that are the same, with the first frames of each, in ``groups``;
            and in ``between_parts`` the same for each two parts that have frames in common.
        """
        hashes = np.frombuffer(bytes(self._hashes), np.uint64)
        groups = _groups(hashes)
        frames = [indices[group[:LISTED]].tolist() for group in groups[:LISTED]]
        count = sum(map(len, groups)) - len(groups)
        between = {f"{a} and {b}": _between(hashes, indices, parts[a], parts[b]) for a, b in combinations(parts, 2)}
        return {"count": count, "groups": frames, "between_parts": {k: v for k, v in between.items() if v["count"]}}


def _groups(hashes: np.ndarray) -> list[np.ndarray]:
    """Positions whose hashes are the same, at least two of each, ascending."""
    order = np.argsort(hashes, kind="stable")
    is_next_same = np.diff(hashes[order]) == 0
    # without the others, of each of which there would be an array
    order = order[np.append(is_next_same, False) | np.append(False, is_next_same)]
    groups = np.split(order, np.flatnonzero(np.diff(hashes[order])) + 1) if len(order) else []
    return sorted(groups, key=lambda group: group[0])


def _between(hashes: np.ndarray, indices: np.ndarray, first: np.ndarray, second: np.ndarray) -> dict[str, Any]:
    """The frames of ``second`` that are also in ``first``, with one of these."""
    known = np.unique(hashes[first], return_index=True)
    places = np.searchsorted(known[0], hashes[second]).clip(max=len(known[0]) - 1)
    same = known[0][places] == hashes[second]
    pairs = np.stack([indices[first][known[1][places[same]]], indices[second][same]], axis=1)
    return {"count": int(same.sum()), "frames": pairs[:LISTED].tolist()}


def warnings_about(repeated: Mapping[str, Any]) -> list[str]:
    """At most one line that says what :meth:`Fingerprints.repeated` found."""
    if not repeated["count"]:
        return []
    first, second = repeated["groups"][0][:2]
    line = f"{repeated['count']} frames repeat an earlier one (frame {second} is frame {first})"
    leaks = [
        f"{found['count']} in {parts} (frames {found['frames'][0][0]} and {found['frames'][0][1]})"
        for parts, found in repeated["between_parts"].items()
    ]
    return [f"{line}; the same frames are in two parts of the split: {', '.join(leaks)}" if leaks else line]
