"""Positions of many queues as one small text: what a streaming query keeps as its offset. Pure."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from stream_sort.errors import InvalidInput, shown
from stream_sort.replay.files.json_content import value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT = 1


def packed(
    positions: Mapping[str, int],
    begins: Mapping[str, int] | None = None,
    *,
    turn: str | None = None,
    is_initial: bool = False,
) -> dict[str, Any]:
    """Return the offset that holds these positions; the same positions give the same text.

    `begins` are those queues whose beginning the offset before does not tell, and after which seq each begins. `turn`
    is the queue that was the last to get its turn, where some got none. Spark writes an offset for every micro-batch
    and keeps a hundred of them: packed, a thousand queues take some kilobytes.
    """
    offset: dict[str, Any] = {"format": FORMAT, "positions": _pack(positions), "queues": len(positions)}
    if begins:
        offset["begins"] = _pack(begins)
    if turn is not None:
        offset["turn"] = turn
    return offset | {"initial": True} if is_initial else offset


def unpacked(offset: Mapping[str, Any], name: str = "positions") -> dict[str, int]:
    """Return the positions that an offset holds; or its `begins`, none if it was written before there were any."""
    try:
        if offset["format"] != FORMAT:
            raise InvalidInput(f"the offset {shown(offset)} was written by another version of stream_sort")
        if name == "begins" and name not in offset:
            return {}
        held = value_of(zlib.decompress(b64decode(offset[name])))
        return {str(queue): int(position) for queue, position in held.items()}
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise InvalidInput(f"the offset {shown(offset)} of this query's checkpoint is damaged: {error}") from error


def is_initial(offset: Mapping[str, Any]) -> bool:
    """Return True if an offset was read off the tables for a query without a checkpoint: asked again, it differs."""
    return bool(offset.get("initial"))


def turn_of(offset: Mapping[str, Any]) -> str | None:
    """Return the queue that was the last to get its turn; None if all had theirs."""
    turn = offset.get("turn")
    return None if turn is None else str(turn)


def _pack(seqs: Mapping[str, int]) -> str:
    text = json.dumps(dict(sorted(seqs.items())), separators=(",", ":"), ensure_ascii=False)
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def shared_out(due: Mapping[str, int], most: int, turn: str | None = None) -> dict[str, int]:
    """Return how many rows each queue may give if all may give so many: equal shares, and no queue waits for ever.

    A queue that has less than its share leaves the rest to the others. Where there are more queues than rows, they
    take turns behind `turn`, one row each: the last one of the answer is the next `turn`.
    """
    if len(due) > most:
        return dict.fromkeys(_in_turn(due, turn)[:most], 1)
    shares: dict[str, int] = {}
    left = most
    for place, (queue, rows) in enumerate(sorted(due.items(), key=lambda one: (one[1], one[0]))):
        shares[queue] = min(rows, left // (len(due) - place))
        left -= shares[queue]
    return shares


def _in_turn(queues: Iterable[str], turn: str | None) -> list[str]:
    """Return all queues in the order of a ring, from behind `turn` on.

    Not by name: if queues came with ever higher names, and faster than they are read, the ring would never be round.
    """
    line = sorted(queues, key=_place)
    return line if turn is None else sorted(line, key=lambda queue: _place(queue) <= _place(turn))


def _place(queue: str) -> tuple[int, str]:
    return zlib.crc32(queue.encode()), queue
