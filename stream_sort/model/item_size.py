"""The size of a message at rest, measured: what it takes in a DynamoDB item, with the note on its types."""

from __future__ import annotations

import json
from typing import Any

from stream_sort.model.numbers import float_fits_number, float_is_noted, int_fits_number

# Of a map or a list; and of each of their entries.
HOLDER_BYTES = 3
ENTRY_BYTES = 1
# `{"float":[],"int":[]}`, the frame of the note.
FRAME_BYTES = 21
BRACKETS_AND_COMMA = 3


def item_size(document: dict[str, Any]) -> int:
    """Return the size of a checked message at rest by DynamoDB's rules, or a little more where they are not exact.

    Slower than the estimate that each message gets, which takes every number, and every path in the note, for as long
    as it can be. Fields count as entries of a map, as they are when the message is kept beside a tombstone.
    """
    paths: list[int] = []
    size = _entries_size(document, 0, paths)
    return size + (FRAME_BYTES + sum(paths) if paths else 0)


def _entries_size(entries: dict[str, Any], above: int, paths: list[int]) -> int:
    """Return the size of a map's entries; `above` is the length of the path to it, `paths` those of what is noted."""
    return sum(
        ENTRY_BYTES + len(name.encode()) + _size(value, above + _step_size(name), paths)
        for name, value in dict.items(entries)
    )


def _size(value: Any, path: int, paths: list[int]) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, int | float):
        return _number_size(value, path, paths)
    if isinstance(value, dict):
        return HOLDER_BYTES + _entries_size(value, path, paths)
    elements = enumerate(list.__iter__(value))
    return HOLDER_BYTES + sum(ENTRY_BYTES + _size(inner, path + _step_size(index), paths) for index, inner in elements)


def _number_size(value: float, path: int, paths: list[int]) -> int:
    fits = int_fits_number(value) if isinstance(value, int) else float_fits_number(value)
    if not fits or (isinstance(value, float) and float_is_noted(value)):
        paths.append(path + BRACKETS_AND_COMMA)
    text = int.__repr__(value) if isinstance(value, int) else float.__repr__(value)
    if not fits:
        return len(text)
    digits = text.partition("e")[0].replace(".", "").lstrip("-").strip("0")
    # Two digits a byte, of which a number may take half a one at either end, and the exponent; a sign is as a digit.
    return (len(digits) + (value < 0)) // 2 + 2


def _step_size(step: str | int) -> int:
    """Return the length of one step of a path, as JSON with its comma."""
    return 1 + len(json.dumps(step, ensure_ascii=False).encode())
