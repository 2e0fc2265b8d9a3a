"""The recording that README shows: a picture and nothing else, of commands that are there."""

from __future__ import annotations

import re
import shlex
from xml.etree import ElementTree as ET

import pytest

from tests.docs import recording
from tests.docs.animation import ROWS, Film, Version, Written, develop, draw
from tests.functional.command_line import Line

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "title", "style", "clipPath", "rect", "circle", "g", "text"}
MOST = 300 * 1024


@pytest.fixture(scope="module")
def picture() -> str:
    return recording.TARGET.read_text(encoding="utf-8")


def shown(picture: str) -> list[str]:
    """The lines that are there at the end, from top to bottom."""
    root = ET.fromstring(picture)
    stays = set(re.findall(r"\.(t\d+)\{animation", picture))
    lines = [line for line in root.iter(f"{SVG}g") if line.get("class") in stays]
    return [" ".join(text.text or "" for text in line) for line in lines]


def test_the_recording_is_text_and_style_and_nothing_that_acts_or_comes_from_elsewhere(picture: str) -> None:
    assert len(picture.encode()) < MOST
    elements = list(ET.fromstring(picture).iter())
    assert {one.tag.removeprefix(SVG) for one in elements} == ELEMENTS
    names = {name for one in elements for name in one.attrib}
    assert not {name for name in names if name.startswith("on") or name.endswith("href")}
    assert set(re.findall(r"url\([^)]*\)", picture)) == {"url(#page)"}
    (style,) = [one.text or "" for one in elements if one.tag == f"{SVG}style"]
    assert "@import" not in style
    assert "@font-face" not in style


def test_the_recording_shows_the_commands_of_the_script_and_they_are_there(picture: str) -> None:
    typed = [line.removeprefix("$ ") for line in shown(picture) if line.startswith("$ ")]
    assert typed == list(recording.COMMANDS)
    for command in typed:
        program, *words = shlex.split(command)
        if program != "stream-sort":
            continue
        path = words[:2] if words[0] == "local" else words[:1]
        told = Line().run(*path, "--help").stdout
        assert all(option in told for option in words if option.startswith("--")), command


def test_the_recording_tells_the_whole_story_and_nothing_of_the_machine(picture: str) -> None:
    text = "\n".join(shown(picture))
    assert f"It waits for seq {recording.MISSING}" in text
    assert "1,499 accepted" in text
    assert "down; nothing is left" in text
    assert "stream-sort: " not in text
    assert not re.search(r"/(home|root|work|tmp|Users|var)/", text)
    assert str(recording.ROOT) not in text


def test_readme_shows_it_near_the_top() -> None:
    readme = (recording.ROOT / "README.md").read_text()
    assert 0 < readme.index("(docs/demo.svg)") < readme.index("\n## ")


def test_a_line_that_is_written_over_is_shown_until_then_and_the_page_follows_the_cursor() -> None:
    film = develop([Written(1.0, "10 %"), Written(2.0, "\r20 %"), Written(3.0, "\r\n" * ROWS + "<end>")], hold=1.0)
    assert [(one.row, one.since, one.until) for one in film.versions] == [
        (0, 1.0, 2.0),
        (0, 2.0, None),
        (ROWS, 3.0, None),
    ]
    assert (film.moves, film.seconds) == ([(0.0, 0), (3.0, 1)], 4.0)
    assert "&lt;end&gt;" in draw(film, "a film")


def test_colours_are_kept() -> None:
    film: Film = develop([Written(0.0, "\x1b[1;31mred\x1b[0m  plain")], hold=1.0)
    (line,) = film.versions
    assert isinstance(line, Version)
    assert [(run.column, run.text, run.bold) for run in line.runs] == [(0, "red", True), (5, "plain", False)]
    assert line.runs[0].colour != line.runs[1].colour
