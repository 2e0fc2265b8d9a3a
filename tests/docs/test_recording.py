"""The recording that README shows: a picture and nothing else, of commands that are there."""

from __future__ import annotations

import re
import shlex
from xml.etree import ElementTree as ET

import pytest

from tests.docs import recording
from tests.docs.animation import BAR, ROWS, Film, Version, Written, develop, draw
from tests.docs.poster import ARRIVALS, draw_poster, lanes
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


def test_the_first_frame_shows_what_goes_in_shuffled_and_what_comes_out_in_order(picture: str) -> None:
    ada, bob = lanes()
    assert [seq for queue, seq in ARRIVALS if queue == "ada"] == [2, 0, 0, 3, 1]
    assert (ada.released, ada.waiting) == ([0, 1, 2, 3], [])
    assert (bob.released, bob.missing, bob.waiting) == ([0], [1], [2])
    *_, poster = ET.fromstring(picture)
    shown = [text.text for text in poster.iter(f"{SVG}text")]
    assert poster.get("id") == "poster", "it covers all else"
    assert ET.tostring(poster, encoding="unicode").strip() == ET.tostring(drawn_poster(), encoding="unicode")
    assert [text for text in shown if re.fullmatch(r"ada \d", text or "")] == [
        *(f"{queue} {seq}" for queue, seq in ARRIVALS if queue == "ada"),
        *(f"ada {seq}" for seq in ada.released),
    ]


def drawn_poster() -> ET.Element:
    width, height = (int(size) for size in re.findall(r'(?:width|height)="(\d+)"', recording.TARGET.read_text())[:2])
    return ET.fromstring(draw_poster(width, BAR, height).replace("<g ", f'<g xmlns="{SVG.strip("{}")}" ', 1))


def test_the_poster_is_there_when_nothing_is_animated_and_gone_when_the_film_begins(picture: str) -> None:
    (rule,) = re.findall(r"#poster\{([^}]*)\}", picture)
    assert "visibility" not in rule
    (frames,) = re.findall(r"@keyframes poster\{(.*)\}", picture)
    assert re.fullmatch(r"0%\{visibility:visible\}[\d.]+%\{visibility:hidden\}", frames)
    began = min(float(start) for start in re.findall(r"@keyframes t\d+\{0%\{visibility:hidden\}([\d.]+)%", picture))
    assert float(re.findall(r"([\d.]+)%", frames)[1]) <= began


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
    assert "&lt;end&gt;" in draw(film, "a film", 0.5)


def test_colours_are_kept() -> None:
    film: Film = develop([Written(0.0, "\x1b[1;31mred\x1b[0m  plain")], hold=1.0)
    (line,) = film.versions
    assert isinstance(line, Version)
    assert [(run.column, run.text, run.bold) for run in line.runs] == [(0, "red", True), (5, "plain", False)]
    assert line.runs[0].colour != line.runs[1].colour
