"""HTML as a tree: whatever text goes in comes out as text, because only the tree's writer makes markup."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, tostring

from stream_sort.formats.terminal_text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

Content = Element | str | None


def tag(name: str, /, *content: Content, **attributes: str | None) -> Element:
    """Return an element; `class_` stands for class, `aria_label` for aria-label, None for no attribute."""
    names = {word: word.rstrip("_").replace("_", "-") for word in attributes}
    made = Element(name, {names[word]: visible(value) for word, value in attributes.items() if value is not None})
    fill(made, content)
    return made


def fill(parent: Element, content: Iterable[Content]) -> None:
    """Append elements and texts; None is nothing."""
    for one in content:
        if isinstance(one, Element):
            parent.append(one)
        elif one is not None:
            _append_text(parent, visible(one))


def document(title: str, style: str, body: Element) -> str:
    """Return a whole page that may load nothing and run nothing: its one style is allowed by its hash."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    root = Element("html", {"lang": "en"})
    head = SubElement(root, "head")
    fill(
        head,
        [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("meta", name="generator", content=GENERATOR),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("title", title),
        ],
    )
    SubElement(head, "style").text = style
    root.append(body)
    return "<!doctype html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


# By which a page of ours is known again.
GENERATOR = "stream-sort report"


def _append_text(parent: Element, text: str) -> None:
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text
