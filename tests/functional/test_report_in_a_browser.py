"""The page of `stream-sort report`, seen: each picture it takes is in the folder that `pytest -s` names."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from stream_sort import StreamSorter
from stream_sort.cli.output import visible
from tests.functional.browser import a_browser, box, open_page
from tests.functional.command_line import VARIABLES, Line
from tests.functional.report_scene import HOSTILE, POISON, WRITTEN_PAST_US, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

TO_TEXT = "() => document.body.innerText"
FITS = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
# What would show that a script ran, and what could make one run.
TRACES = "() => [window.owned === undefined, document.querySelectorAll('script, iframe, object, embed, img').length]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        client = boto3.client("dynamodb", region_name="eu-west-1")
        StreamSorter(client=client).create_tables()
        scene = Scene(client)
        scene.play()
        scene.add_hostile()
        Line().run("report", "-o", str(path), "--queues", "20")
        client.close()
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_where_they_should_be_and_of_the_colours_of_the_style(
    browser: Browser, page: Path, tmp_path: Path, scheme: str
) -> None:
    with open_page(browser, page, scheme=scheme) as sight:
        shot = sight.shoot(tmp_path / f"{scheme}.png")
        print(f"see {tmp_path / scheme}.png")
        ink = {name: sight.colour(f"--{name}") for name in ("arrived", "released", "waiting", "filled", "skipped")}
        assert len(set(ink.values())) == 5
        assert shot.at_middle(sight.tipped("seq 2-3: missing since").first) == ink["waiting"]
        assert shot.at_middle(sight.tipped("seq 1: missing since").filter(has_text="came after").first) == ink["filled"]
        assert shot.at_middle(sight.tipped("skipped after").first) == ink["skipped"]
        assert shot.at_middle(sight.tipped(": 1 seq skipped").first) == ink["skipped"]
        for word in ("arrived", "released"):
            bars = sight.tipped(f" {word}")
            assert bars.count() > 10
            assert {shot.at_middle(bar) for bar in bars.all()} == {ink[word]}
        panels = sight.page.locator("figure.card")
        assert panels.count() == 6
        for panel in panels.all():
            assert shot.count(panel, ink["released"]) > 50
            assert shot.count(panel, ink["waiting"]) + shot.count(panel, ink["arrived"]) > 3


def test_arrivals_go_up_and_releases_down_from_one_line(browser: Browser, page: Path) -> None:
    with open_page(browser, page) as sight:
        feet = [box(bar)[1] + box(bar)[3] for bar in sight.tipped(" arrived").all()]
        heads = [box(bar)[1] for bar in sight.tipped(" released").all()]
        assert max(chain(feet, heads)) - min(chain(feet, heads)) < 2


def test_bars_of_the_lag_are_as_long_as_the_lag(browser: Browser, page: Path, tmp_path: Path) -> None:
    with open_page(browser, page) as sight:
        shot = sight.shoot(tmp_path / "lag.png")
        ten, five = (sight.tipped(f"billing in {name}: ").first for name in ("behind", "half"))
        assert box(ten)[2] == pytest.approx(2 * box(five)[2], abs=2)
        assert shot.at_middle(ten) == sight.colour("--second")
        assert shot.at_middle(sight.tipped("archive in behind: ").first) == sight.colour("--first")


def test_a_gap_that_is_still_there_reaches_until_now_and_began_with_the_first_later_message(
    browser: Browser, page: Path
) -> None:
    with open_page(browser, page) as sight:
        still = box(sight.tipped("seq 2-3: missing since").first)
        came = box(sight.tipped("seq 1: missing since").filter(has_text="came after").first)
        chart = box(sight.page.locator("figure.wide svg").nth(1))
        assert chart[0] + chart[2] - 40 < still[0] + still[2] < chart[0] + chart[2]
        # The seqs 2 and 3 of one queue were missed in minute 3; seq 1 of the other in minute 11, for two minutes.
        minute = came[2] / 2
        assert came[0] - still[0] == pytest.approx(8 * minute, rel=0.1)


def test_nothing_hostile_runs_loads_or_speaks(browser: Browser, page: Path) -> None:
    with open_page(browser, page) as sight:
        sight.page.wait_for_timeout(300)
        for tip in sight.page.locator("figure.wide svg :has(> title)").all()[:20]:
            tip.hover()
        assert sight.requests == [page.as_uri()]
        assert sight.said == []
        assert sight.page.evaluate(TRACES) == [True, 0]
        assert sight.page.title() == "9 of 13 queues are in trouble · stream_sort"


def test_the_page_would_be_harmless_without_its_policy_too(browser: Browser, page: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.html"
    text = page.read_text("utf-8")
    bare.write_text(text.replace('http-equiv="Content-Security-Policy"', 'name="nothing"'), "utf-8")
    assert bare.read_text("utf-8") != text
    with open_page(browser, bare) as sight:
        sight.page.wait_for_timeout(300)
        assert (sight.requests, sight.said) == ([bare.as_uri()], [])
        assert sight.page.evaluate(TRACES) == [True, 0]


def test_the_policy_stops_what_should_ever_get_through(browser: Browser, page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    leak = "<script>window.owned = 1</script><img src='http://127.0.0.1:9/x' onerror='window.owned = 2'>"
    broken.write_text(page.read_text("utf-8").replace("<main>", f"{leak}<main>"), "utf-8")
    with open_page(browser, broken) as sight:
        sight.page.wait_for_timeout(300)
        assert sight.page.evaluate("() => window.owned === undefined")
        assert len(sight.said) >= 2


def test_hostile_names_are_there_to_be_read(browser: Browser, page: Path) -> None:
    with open_page(browser, page) as sight:
        text = " ".join(sight.page.evaluate(TO_TEXT).split())
        for name in (*HOSTILE, WRITTEN_PAST_US):
            assert " ".join(visible(name).split()) in text
        assert POISON in text
        labels = sight.page.locator("figure.wide svg text").all_text_contents()
        assert {visible(name) for name in HOSTILE[:6]} <= set(labels)
        # A long name keeps to its place.
        assert sight.page.evaluate(FITS)
        assert max(box(name)[3] for name in sight.page.locator("tbody .name").all()) < 100


def test_it_fits_a_phone(browser: Browser, page: Path, tmp_path: Path) -> None:
    with open_page(browser, page, width=390) as sight:
        shot = sight.shoot(tmp_path / "narrow.png")
        assert sight.page.evaluate(FITS)
        assert not any(figure.is_visible() for figure in sight.page.locator("figure.wide").all())
        figures = sight.page.locator("figure.narrow")
        assert figures.count() == 3
        for figure, ink in zip(figures.all(), ("arrived", "waiting", "second"), strict=True):
            x, _, width, _ = box(figure)
            assert x >= 0
            assert x + width <= 390
            assert shot.count(figure, sight.colour(f"--{ink}")) > 100


def test_it_prints_light_and_whole_whatever_the_screen_is(browser: Browser, page: Path) -> None:
    with open_page(browser, page, scheme="dark") as sight:
        dark = sight.colour("--text")
        sight.page.emulate_media(media="print")
        assert sum(sight.colour("--text")) < 150 < sum(dark)
        assert sight.page.locator("figure.wide").first.is_visible()
        assert sight.page.pdf(format="A4").startswith(b"%PDF-")
