"""Positions of many queues as one small text: what a streaming query keeps as its offset. Pure."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from stream_sort.errors import InvalidInput, shown
from stream_sort.replay.files.json_content import value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1


def packed(positions: Mapping[str, int], begins: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The offset that holds these positions; the same positions give the same text.

    `begins` are those queues that the offset before did not have, and after which seq each begins. Spark writes an
    offset for every micro-batch and keeps a hundred of them: packed, a thousand queues take some kilobytes.
    """
    offset = {"format": FORMAT, "positions": _pack(positions), "queues": len(positions)}
    return offset | {"begins": _pack(begins)} if begins else offset


def unpacked(offset: Mapping[str, Any], name: str = "positions") -> dict[str, int]:
    """The positions that an offset holds; or its `begins`, none if it was written before there were any."""
    try:
        if offset["format"] != FORMAT:
            raise InvalidInput(f"the offset {shown(offset)} was written by another version of stream_sort")
        if name == "begins" and name not in offset:
            return {}
        held = value_of(zlib.decompress(b64decode(offset[name])))
        return {str(queue): int(position) for queue, position in held.items()}
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise InvalidInput(f"the offset {shown(offset)} of this query's checkpoint is damaged: {error}") from error


def _pack(seqs: Mapping[str, int]) -> str:
    text = json.dumps(dict(sorted(seqs.items())), separators=(",", ":"), ensure_ascii=False)
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def shared_out(due: Mapping[str, int], most: int) -> dict[str, int]:
    """How many rows each queue may give so that all give at most so many: equal shares, and no queue waits for ever.

    A queue that has less than its share leaves the rest to the others; where there are more queues than rows, the
    ones with most to give come first.
    """
    shares: dict[str, int] = {}
    left = most
    line = sorted(due.items(), key=lambda one: (one[1], one[0]))
    if len(line) > most:
        line = line[-most:]
    for place, (queue, rows) in enumerate(line):
        shares[queue] = min(rows, left // (len(line) - place))
        left -= shares[queue]
    return shares
