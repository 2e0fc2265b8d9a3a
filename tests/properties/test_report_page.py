"""Whatever a text holds, on the page of `stream-sort report` it is text."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_sort.cli.page.drawing import Drawing, looks
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
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.titles += [value or "" for name, value in attrs if name == "title"]

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


@settings(max_examples=20, deadline=None)
@given(st.one_of(st.text(min_size=1), MARKUP.filter(bool)))
@example("$\\frac{1}{")
@example("label-7")
def test_a_label_of_a_chart_is_text_and_no_formula(text: str) -> None:
    with looks():
        drawing = Drawing("chart", 100, 50)
        drawing.figure.text(0, 0, drawing.label(text)).set_gid(drawing.tip(text))
        made = drawing.element("told")
    (label,) = made.iter("text")
    (tip,) = made.iter("title")
    assert (label.text, tip.text) == (visible(text), visible(text))
    assert {one.tag for one in made.iter()} <= {"svg", "defs", "g", "path", "text", "title"}
