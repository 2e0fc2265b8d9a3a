"""Was it all right? Reads everything back, and the cursor stream too, and compares with what was sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.cli.demo.traffic import make_message
from stream_sort.errors import StreamSortError
from stream_sort.local.streams import CursorChange, broken_link, cursor_changes

if TYPE_CHECKING:
    from stream_sort.sorter import Sorter


@dataclass(frozen=True, slots=True)
class QueueVerdict:
    """What was found in one queue; `problem` is None when everything is as it should be."""

    queue: str
    read: int
    moves: int
    problem: str | None


def judge(sorter: Sorter, streams: Any, cursor_table: str, lengths: dict[str, int]) -> list[QueueVerdict]:
    """Check every queue: complete, in order, unchanged, and released by an unbroken chain of cursor moves."""
    chains: dict[str, list[CursorChange]] = {queue: [] for queue in lengths}
    for change in cursor_changes(streams, cursor_table):
        chains.setdefault(change.queue, []).append(change)
    return [_judge(sorter, queue, lengths.get(queue, 0), chain) for queue, chain in chains.items()]


def _judge(sorter: Sorter, queue: str, length: int, chain: list[CursorChange]) -> QueueVerdict:
    read, problem = _read_back(sorter, queue, length)
    moves = sum(change.old != change.new for change in chain)
    if problem is None:
        problem = _check_chain(chain, length)
    return QueueVerdict(queue, read, moves, problem)


def _read_back(sorter: Sorter, queue: str, length: int) -> tuple[int, str | None]:
    expected = 0
    try:
        for message in sorter.read(queue):
            if message != make_message(queue, expected):
                return expected, f"place {expected} holds another message: {message!r:.80}"
            expected += 1
    except StreamSortError as error:
        return expected, str(error)
    return expected, None if expected == length else f"{expected:,} of {length:,} messages released"


def _check_chain(chain: list[CursorChange], length: int) -> str | None:
    if not chain:
        return "the cursor stream is empty"
    if chain[-1].new != length - 1:
        return f"the cursor stream ends at {chain[-1].new}, not at {length - 1}"
    return broken_link(chain)
