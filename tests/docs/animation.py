"""What a terminal showed, and when, as one SVG that plays it: text, colours, CSS; no script, nothing from elsewhere.

The screen is as long as all that was written. Each version of a line is shown from when it was written until it was
written over, and the page moves up as the last line does. A poster covers the screen until the film begins; where
nothing is animated, it is all that is seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

import pyte

from tests.docs.poster import draw_poster

if TYPE_CHECKING:
    from collections.abc import Iterable

COLUMNS, ROWS = 100, 30
LONGEST = 600
CHARACTER, LINE, MARGIN, BAR = 8.4, 19, 14, 30
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
BACKGROUND, FOREGROUND = "#16181d", "#d6d9e0"
COLOURS = {
    "black": "#3b4048",
    "red": "#f07178",
    "green": "#a5d66f",
    "brown": "#e6c07b",
    "blue": "#6cb6ff",
    "magenta": "#c792ea",
    "cyan": "#66d9e8",
    "white": "#d6d9e0",
    "brightblack": "#7d8590",
    "default": FOREGROUND,
}


class Written(NamedTuple):
    """What went to a terminal, so many seconds after the beginning."""

    at: float
    text: str


class Run(NamedTuple):
    """Characters of one look, from a column on."""

    column: int
    text: str
    colour: str
    bold: bool


@dataclass(frozen=True, slots=True)
class Version:
    """A line as it was for a time; `until` is None for what stays."""

    row: int
    runs: tuple[Run, ...]
    since: float
    until: float | None


@dataclass(slots=True)
class Film:
    """All versions of all lines, where the cursor was, and how far the page was moved up at which time."""

    versions: list[Version]
    cursor: list[tuple[float, int, int]]
    moves: list[tuple[float, int]]
    seconds: float


def develop(written: Iterable[Written], hold: float) -> Film:
    """Show it all to a terminal, and note what that shows after each part; the end is held for so many seconds."""
    screen = pyte.Screen(COLUMNS, LONGEST)
    stream = pyte.Stream(screen)
    shown: dict[int, tuple[tuple[Run, ...], float]] = {}
    film = Film([], [(0.0, 0, 0)], [(0.0, 0)], 0.0)
    for at, text in written:
        screen.dirty.clear()
        stream.feed(text)
        for row in sorted(screen.dirty):
            _replace(film, shown, row, (_runs(screen, row), at))
        film.cursor.append((at, screen.cursor.x, screen.cursor.y))
        moved = max(0, screen.cursor.y + 1 - ROWS)
        if moved > film.moves[-1][1]:
            film.moves.append((at, moved))
        film.seconds = at + hold
    film.versions += [Version(row, runs, since, None) for row, (runs, since) in shown.items() if runs]
    return film


def _replace(
    film: Film, shown: dict[int, tuple[tuple[Run, ...], float]], row: int, new: tuple[tuple[Run, ...], float]
) -> None:
    """A line is another from now on."""
    old = shown.get(row)
    if old is not None and old[0] == new[0]:
        return
    if old is not None and old[0]:
        film.versions.append(Version(row, *old, new[1]))
    shown[row] = new


def _runs(screen: pyte.Screen, row: int) -> tuple[Run, ...]:
    """The line as it is now, without what is empty."""
    cells = [screen.buffer[row][column] for column in range(COLUMNS)]
    found, column = [], 0
    for (colour, bold), group in groupby(cells, key=lambda cell: (cell.fg, cell.bold)):
        text = "".join(cell.data for cell in group)
        if text.strip():
            start = column + len(text) - len(text.lstrip())
            found.append(Run(start, text.strip(), COLOURS.get(colour, f"#{colour}"), bold))
        column += len(text)
    return tuple(found)


def draw(film: Film, title: str, opening: float) -> str:
    """The film as SVG, behind a poster that is taken away after so many seconds."""
    width, height = round(COLUMNS * CHARACTER + 2 * MARGIN), ROWS * LINE + 2 * MARGIN + BAR
    times = sorted({(one.since, one.until) for one in film.versions}, key=lambda pair: (pair[0], pair[1] or 0))
    names = {pair: f"t{number}" for number, pair in enumerate(times)}
    lines = "\n".join(_line(one, names) for one in sorted(film.versions, key=lambda one: (one.row, one.since)))
    dots = "".join(
        f'<circle cx="{MARGIN + 6 + 18 * number}" cy="{BAR / 2}" r="5" fill="{colour}"/>'
        for number, colour in enumerate(("#f07178", "#e6c07b", "#a5d66f"))
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<title>{escape(title)}</title>
<style>
text{{font:14px {FONT};white-space:pre}}.b{{font-weight:bold}}text.h{{font-size:17px;font-weight:bold}}
{_styles(film, names)}
{_opening(opening, film.seconds)}
@media (prefers-reduced-motion:reduce){{*{{animation:none!important}}}}
</style>
<clipPath id="page"><rect width="{width}" height="{ROWS * LINE + 4}"/></clipPath>
<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>{dots}
<g transform="translate({MARGIN} {BAR + MARGIN})" clip-path="url(#page)"><g id="scroll" fill="{FOREGROUND}">
{lines}
<rect id="cursor" width="{CHARACTER}" height="{LINE}" opacity="0.5"/>
</g></g>
{draw_poster(width, BAR, height)}
</svg>
"""


def _styles(film: Film, names: dict[tuple[float, float | None], str]) -> str:
    """Without animation, what is there at the end is shown."""
    rules = [f"@keyframes {name}{{{_shown(pair, film.seconds)}}}" for pair, name in names.items()]
    for (_, until), name in names.items():
        hidden = "" if until is None else "visibility:hidden;"
        rules.append(f".{name}{{{hidden}animation:{name} {film.seconds:.2f}s step-end infinite}}")
    rules += _moving("scroll", [(at, 0, -moved) for at, moved in film.moves], film.seconds)
    rules += _moving("cursor", film.cursor, film.seconds)
    return "\n".join(rules)


def _opening(opening: float, seconds: float) -> str:
    """The poster is there when nothing is animated, and for so many seconds at the beginning of each round."""
    frames = f"0%{{visibility:visible}}{_percent(opening, seconds)}{{visibility:hidden}}"
    return f"@keyframes poster{{{frames}}}\n#poster{{animation:poster {seconds:.2f}s step-end infinite}}"


def _moving(name: str, places: list[tuple[float, int, int]], seconds: float) -> list[str]:
    """The rules that move an element by columns and rows; without animation, it is where it is at the end."""
    steps = [
        f"{_percent(at, seconds)}{{transform:translate({column * CHARACTER:.1f}px,{row * LINE}px)}}"
        for at, column, row in places
    ]
    _, last = steps[-1].split("{", 1)
    return [
        f"@keyframes {name}{{{''.join(steps)}}}",
        f"#{name}{{{last.rstrip('}')};animation:{name} {seconds:.2f}s step-end infinite}}",
    ]


def _shown(pair: tuple[float, float | None], seconds: float) -> str:
    since, until = pair
    steps = "" if since == 0 else "0%{visibility:hidden}"
    steps += f"{_percent(since, seconds)}{{visibility:visible}}"
    return steps + ("" if until is None else f"{_percent(until, seconds)}{{visibility:hidden}}")


def _percent(at: float, seconds: float) -> str:
    return f"{100 * at / seconds:.3f}%"


def _line(version: Version, names: dict[tuple[float, float | None], str]) -> str:
    runs = "".join(_text(run, version.row) for run in version.runs)
    return f'<g class="{names[version.since, version.until]}">{runs}</g>'


def _text(run: Run, row: int) -> str:
    """Each run has its place and its width: columns stay columns, whatever the font."""
    x, y, width = run.column * CHARACTER, row * LINE + LINE * 0.75, len(run.text) * CHARACTER
    look = ' class="b"' if run.bold else ""
    look += f' fill="{run.colour}"' if run.colour != FOREGROUND else ""
    return f'<text x="{x:.1f}" y="{y:g}" textLength="{width:.1f}"{look}>{escape(run.text)}</text>'
