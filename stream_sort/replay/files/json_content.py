"""JSON files that somebody else may have written: whatever is wrong with one is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def flaw(error: Exception) -> str:
    """Return what is wrong with the content of a file, by the error of reading it; without Python's names."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error) if isinstance(error, ValueError) else "its form is another"


def value_of(content: str | bytes) -> Any:
    """Return the value of a JSON file; ValueError for what is none, or nested deeper than can be read."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
