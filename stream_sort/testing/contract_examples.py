"""Messages and times that the contracts are tried with."""

from __future__ import annotations

from typing import Any

from stream_sort.model.message import KeyNames, Message, check_message
from stream_sort.model.records import Arrival, Tombstones

NOW = 1_700_000_000.25
EVERY_TYPE: dict[str, Any] = {
    "text": "naïve 🦄",
    "int": 7,
    "float": 7.0,
    "big": 10**60,
    "huge": 1e300,
    "tiny": 5e-324,
    "minus_zero": -0.0,
    "third": 1 / 3,
    "bytes": b"\x00\xff",
    "nothing": None,
    "true": True,
    "empty": {"text": "", "list": [], "map": {}, "bytes": b""},
    "list": [1, 1.0, "1", [2.0, {"deep": 3.0}]],
    'it\'s "quoted"': 1,
}


def message(queue: str, seq: int, **fields: Any) -> Message:
    """Return a checked message."""
    return check_message({"queue": queue, "seq": seq, **fields}, KeyNames())


def arrival(queue: str, seq: int, *, seen: int | None = None, **fields: Any) -> Arrival:
    """Return a message on its way in."""
    return Arrival(message(queue, seq, **fields), seen)


def tombstones(queue: str, seqs: list[int], reason: str, *, seen: int | None = None) -> Tombstones:
    """Seqs to be given up."""
    return Tombstones(queue, tuple(seqs), reason, seen)
