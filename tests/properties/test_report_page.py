"""Whatever a text holds, on the page of `stream-sort report` it is text."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from stream_sort.cli.page.drawing import Drawing, Ink, time_ticks, whole_ticks
from stream_sort.cli.page.elements import document, tag
from stream_sort.formats.terminal_text import UNSAFE, visible

MARKUP = st.text(st.sampled_from("<>&\"'`=/!-[]{};:%\\ \n\t\0\x1b\u2028\u202e\ufeff\ud800#xscriptonSTYLE😀"))
OF_THE_PAGE = ["html", "head", *["meta"] * 6, "title", "style", "body", "p"]


class Reader(HTMLParser):
    """Tags and texts, as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.titles: list[str] = []
        self.labels: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.titles += [value or "" for name, value in attrs if name == "title"]
        self.labels += [value or "" for name, value in attrs if name == "aria-label"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@given(st.one_of(st.text(), MARKUP))
@example("</title></style></p><script>alert(1)</script>")
@example('"><img src=x onerror=alert(1)>')
@example("<!-- ]]> &#x3c;script&#62; &lt")
@example("\r\n\x00\ud800")
def test_a_text_comes_out_as_it_went_in_and_makes_no_element(text: str) -> None:
    page = document(text, "p { color: red }", tag("body", tag("p", text, title=text)))
    page.encode()
    read = Reader(page)
    assert read.tags == OF_THE_PAGE
    assert read.titles == [visible(text)]
    assert "".join(read.texts).split("\n", 1)[1] == f"{visible(text)}p {{ color: red }}{visible(text)}\n"
    assert not UNSAFE.search(page.replace("\n", ""))


@given(st.one_of(st.text(min_size=1), MARKUP.filter(bool)))
@example("$\\frac{1}{")
@example("</title></text></svg><script>alert(1)</script>")
def test_a_text_of_a_chart_is_text_and_makes_no_element(text: str) -> None:
    drawing = Drawing("chart", text, (100, 50), left=10)
    drawing.text(0, 0, text)
    drawing.bar(Ink.ARRIVED, (0, 1), (0, 1), text)
    read = Reader(document("title", "", tag("body", drawing.element)))
    assert read.tags == [*OF_THE_PAGE[:-1], "svg", "text", "rect", "title"]
    assert read.labels == [visible(text)]
    assert "".join(read.texts).rstrip("\n").endswith(2 * visible(text))


@given(st.integers(0, 2**63), st.integers(0, 2**63), st.integers(3, 12))
@example(7, 7, 3)
@example(2**63 - 2, 2**63 - 1, 3)
def test_an_axis_has_a_few_round_marks_and_none_twice(one: int, other: int, most: int) -> None:
    low, high = sorted((one, other))
    ticks = whole_ticks(low, high, most)
    assert 1 <= len(ticks) <= most
    assert low <= ticks[0] <= ticks[-1] <= high
    assert len({later - earlier for earlier, later in pairwise(ticks)}) <= 1


@given(st.floats(0, 4e9), st.floats(10, 1e9), st.integers(3, 12))
def test_an_axis_of_time_has_a_few_round_times_and_none_twice(begin: float, span: float, most: int) -> None:
    ticks = time_ticks(begin, begin + span, most)
    assert len(ticks) <= most + 1
    assert all(begin <= at <= begin + span for at, _ in ticks)
    assert len({text for _, text in ticks}) == len(ticks)
