"""From a figure of matplotlib's to an SVG element of the page, in colours that the page's style decides on.

SVG needs no script, so that the page can forbid them all; a script that draws (plotly.js) would be 4 MB by itself.
No text from outside goes through matplotlib, which would read it as formulas and miss glyphs: charts write labels by
number, and they are put in afterwards, as text. Nor has the SVG styles, scripts or links of its own.
"""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, fromstring

import matplotlib as mpl
from matplotlib.figure import Figure

from stream_sort.cli.page.elements import fill, tag

if TYPE_CHECKING:
    from collections.abc import Iterator

UNITS_AN_INCH = 72
FONT_SIZE = 12.0
LOOKS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "stream_sort",
    "font.size": FONT_SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "xtick.major.size": 4,
    "ytick.major.size": 0,
    "grid.linewidth": 1,
}
LABEL = re.compile(r"label-([0-9]+)")
REFERENCE = re.compile(r"#([A-Za-z][\w.-]*)")


class Ink(StrEnum):
    """Colours by what they mean; matplotlib draws with stand-ins, the page's style gives the real ones."""

    TEXT = "#010001"
    FAINT = "#010002"
    LINE = "#010003"
    ARRIVED = "#010004"
    RELEASED = "#010005"
    WAITING = "#010006"
    SKIPPED = "#010007"
    FILLED = "#010008"
    FIRST = "#010011"
    SECOND = "#010012"
    THIRD = "#010013"
    FOURTH = "#010014"
    FIFTH = "#010015"
    SIXTH = "#010016"

    @property
    def variable(self) -> str:
        """The variable of the style."""
        return f"--{self.name.lower()}"


@dataclass
class Drawing:
    """A figure with labels and tips to be put in as text; `name` tells its ids from those of other drawings."""

    name: str
    width: float
    height: float
    labels: list[str] = field(default_factory=list)
    tips: list[str] = field(default_factory=list)
    figure: Figure = field(init=False)

    def __post_init__(self) -> None:
        self.figure = Figure(figsize=(self.width / UNITS_AN_INCH, self.height / UNITS_AN_INCH))

    def label(self, text: str) -> str:
        """What to write instead of a text from outside."""
        self.labels.append(text)
        return f"label-{len(self.labels) - 1}"

    def tip(self, text: str) -> str:
        """The id (gid) of something that tells this when it is pointed at."""
        self.tips.append(text)
        return f"tip-{len(self.tips) - 1}"

    def element(self, told: str) -> Element:
        """The drawing; `told` is for who cannot see it."""
        written = io.StringIO()
        self.figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
        root = fromstring(written.getvalue())  # noqa: S314  # matplotlib's own, with no word from outside
        size = root.attrib["viewBox"]
        root.attrib = {"viewBox": size, "role": "img", "aria-label": told, "class": f"drawing {self.name}"}
        self._clean(root)
        return root

    def _clean(self, parent: Element) -> None:
        _rename(parent, self.name)
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
                continue
            tip = child.attrib.get("id", "")
            self._clean(child)
            if tip.startswith("tip-"):
                child.insert(0, tag("title", self.tips[int(tip.removeprefix("tip-"))]))
        match = LABEL.fullmatch(parent.text or "")
        if match:
            parent.text = None
            fill(parent, [self.labels[int(match[1])]])


@contextmanager
def looks() -> Iterator[None]:
    """Draw in the page's manner, whatever a matplotlibrc of the user says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(LOOKS)
        yield


def _rename(element: Element, prefix: str) -> None:
    """Plain names, ids of its own, and what was in style attributes as attributes: the page allows no styles."""
    element.tag = element.tag.rpartition("}")[2]
    kept = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    for part in kept.pop("style", "").split(";"):
        name, _, value = part.partition(":")
        if value and name.strip() != "font-family":
            kept[name.strip()] = _colour(value.strip())
    if kept.get("transform", "").startswith("rotate(-0 "):
        del kept["transform"]
    for name in ("href", "clip-path"):
        if name in kept:
            kept[name] = REFERENCE.sub(rf"#{prefix}-\1", kept[name])
    if "id" in kept:
        kept["id"] = f"{prefix}-{kept['id']}"
    element.attrib = kept
    if element.tail is not None:
        element.tail = None


def _colour(value: str) -> str:
    try:
        return f"var({Ink(value).variable})"
    except ValueError:
        return value
