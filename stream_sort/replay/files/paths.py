"""Names in paths: any queue as one safe path segment, any seq as text that sorts like the number.

Paths are read by systems that glob, skip, fold case and guess types: lower-case letters, digits, `-` and `_` are safe.
"""

from __future__ import annotations

import hashlib
import re

from stream_sort.errors import InvalidInput, shown

SHORT = "q-"
LONG = "long-"
# A segment may have 255 bytes on most file systems, and a whole S3 key 1,024.
MAX_SEGMENT = 200
SEQ_DIGITS = 19
_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
_SEQ = re.compile(r"-?[0-9]{19}")


def encode_queue(queue: str) -> str:
    """Return a queue's name as one path segment; names that differ get segments that differ, whatever their case.

    A name too long for that becomes its sha256; whoever stores under such a segment stores the name, too.
    """
    name = queue.encode()
    segment = SHORT + "".join(chr(byte) if byte in _SAFE else f"_{byte:02x}" for byte in name)
    return segment if len(segment) <= MAX_SEGMENT else LONG + hashlib.sha256(name).hexdigest()


def decode_queue(segment: str) -> str | None:
    """Return the queue of a path segment, None if the name was too long for one; InvalidInput for other segments."""
    if re.fullmatch(LONG + "[0-9a-f]{64}", segment):
        return None
    try:
        body = segment.removeprefix(SHORT).encode("ascii")
        queue = re.sub(rb"_([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), body).decode()
        known = encode_queue(queue) == segment
    except UnicodeError:
        known = False
    if not known:
        raise InvalidInput(f"{shown(segment)} is no queue's path segment; who put it there?")
    return queue


def encode_seq(seq: int) -> str:
    """Return a seq as text that sorts like the number."""
    # A negative one is counted up from -10^19, and `-` sorts before digits.
    return f"{seq:0{SEQ_DIGITS}d}" if seq >= 0 else f"-{10**SEQ_DIGITS + seq:0{SEQ_DIGITS}d}"


def decode_seq(text: str) -> int:
    """Return the seq of such a text; InvalidInput for other texts."""
    if not _SEQ.fullmatch(text):
        raise InvalidInput(f"{shown(text)} is no seq as paths have it; who put it there?")
    return int(text) if text[0] != "-" else int(text[1:]) - 10**SEQ_DIGITS
