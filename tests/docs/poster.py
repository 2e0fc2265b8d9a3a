"""The first frame of the recording: what goes in, and what comes out. A viewer that plays nothing shows only this."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

from stream_sort import StreamSorter

if TYPE_CHECKING:
    from collections.abc import Iterator

ARRIVALS = [("ada", 2), ("bob", 0), ("ada", 0), ("ada", 0), ("bob", 2), ("ada", 3), ("ada", 1)]
COLOURS = {"ada": "#6cb6ff", "bob": "#a5d66f"}
DIM, FOREGROUND, BACKGROUND = "#7d8590", "#d6d9e0", "#16181d"
LEFT, CHIP, HEIGHT, STEP = 66, 88, 40, 104


class Lane(NamedTuple):
    """A queue as it comes out: the seqs released in order, and what waits behind the seqs that are missing."""

    queue: str
    released: list[int]
    missing: list[int]
    waiting: list[int]


def lanes() -> list[Lane]:
    """Put the arrivals, and see what is released."""
    sorter = StreamSorter.in_memory()
    for queue, seq in ARRIVALS:
        sorter.put({"queue": queue, "seq": seq})
    return [_lane(sorter, queue) for queue in COLOURS]


def _lane(sorter: StreamSorter, queue: str) -> Lane:
    released = [message["seq"] for message in sorter.read(queue)]
    missing = [seq for gap in sorter.gaps(queue) for seq in gap]
    waiting = sorted({seq for name, seq in ARRIVALS if name == queue} - set(released))
    return Lane(queue, released, missing, waiting)


def draw_poster(width: int, top: int, height: int) -> str:
    """Draw it as SVG, over all of the terminal below its bar."""
    parts = [
        f'<rect y="{top}" width="{width}" height="{height - top}" rx="8" fill="{BACKGROUND}"/>',
        _heading(130, "What goes in: messages as they come"),
        *_arrivals(),
        _text(LEFT, 260, "stream_sort stores each one at once, and waits for what is missing", DIM),
        _heading(320, "What comes out: each queue in order, nothing missing, nothing twice"),
    ]
    for row, lane in enumerate(lanes()):
        parts += _out(lane, 350 + row * 72)
    parts.append(_text(LEFT, 518, "Then: a queue is stuck, explain says why, skip frees it", DIM))
    return f'<g id="poster">{"".join(parts)}</g>'


def _arrivals() -> Iterator[str]:
    for place, (queue, seq) in enumerate(ARRIVALS):
        x = LEFT + place * STEP
        yield _chip(x, 160, f"{queue} {seq}", COLOURS[queue])
        if (queue, seq) in ARRIVALS[:place]:
            yield _text(x + CHIP / 2, 222, "again", DIM, anchor="middle")


def _out(lane: Lane, y: int) -> Iterator[str]:
    colour = COLOURS[lane.queue]
    for place, seq in enumerate(lane.released):
        yield _chip(LEFT + place * STEP, y, f"{lane.queue} {seq}", colour)
    x = LEFT + len(lane.released) * STEP
    if lane.waiting:
        missing = ", ".join(map(str, lane.missing))
        yield _chip(x, y, f"{lane.queue} {missing}", DIM, dashes=' stroke-dasharray="5 4"')
        text = f"is missing: {', '.join(map(str, lane.waiting))} waits until it comes, or is skipped"
        yield _text(x + STEP, y + 25, text, DIM)


def _chip(x: float, y: float, text: str, colour: str, dashes: str = "") -> str:
    box = f'<rect x="{x}" y="{y}" width="{CHIP}" height="{HEIGHT}" rx="6" fill="none" stroke="{colour}"{dashes}/>'
    return box + _text(x + CHIP / 2, y + 25, text, colour, anchor="middle")


def _heading(y: float, text: str) -> str:
    return f'<text x="{LEFT}" y="{y:g}" fill="{FOREGROUND}" class="h">{escape(text)}</text>'


def _text(x: float, y: float, text: str, colour: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}" text-anchor="{anchor}">{escape(text)}</text>'
