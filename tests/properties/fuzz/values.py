"""Values that input is made of: hostile texts, JSON-like documents, and sound input with something broken in it."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import DrawFn, SearchStrategy

EXPRESSIONS = [
    "#x",
    ":v",
    "attribute_exists(a)",
    "a = :b",
    '"',
    "'",
    "'; DELETE FROM Items--",
    "?",
    "size(#q)",
    "a.b[0]",
]
PATHS = ["..", "../../x", "/etc/passwd", "a/b", "{x,y}", "a*b", "_x", ".x", "x" * 1_024, "é" * 600, "\\\\host\\x", "~"]
TERMINALS = [
    *("\x1b[2J", "\x1b]8;;http://x\x1b\\y\x1b]8;;\x1b\\", "\x07", "\u202eabc", "a\rb", "a\nb", "\x9b31m", "\u2066x"),
    *("\x1b]0;title\x07", "[red]x[/red]", "[link=http://x]y[/link]"),
]
CELLS = [
    "=1+1",
    "@SUM(1)",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "<script>alert(1)</script>",
    "</script>",
    "&amp;",
    "${x}",
    "%s",
]
ODD = ["", " ", "\x00", "\ud800", "\ufeff", "0", "-0", "1e5", "007", "NaN", "null", "true", "9" * 30, "9" * 5_000, "٣"]
HOSTILE = [*EXPRESSIONS, *PATHS, *TERMINALS, *CELLS, *ODD]

TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=12)
WHOLE = st.integers(-2, 6) | st.sampled_from([2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**40]) | st.integers()
NUMBERS = WHOLE | st.floats()
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS


def documents(names: SearchStrategy[str] = TEXTS, leaves: SearchStrategy[Any] = SCALARS) -> SearchStrategy[Any]:
    """JSON-like values."""
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=8
    )


VALUES = documents()
# What is drawn next must not depend on how long a thing is: a compressed one has its own idea of that.
PLACES = st.integers(0, 2**16)
# Deeper than any reader goes, in the text alone: nobody can build such a value.
DEEP = st.sampled_from([b"[" * 5_000, b'{"a":' * 5_000, b'[{"a":' * 2_500])


@st.composite
def mangled(draw: DrawFn, whole: SearchStrategy[Any], values: SearchStrategy[Any] = VALUES, most: int = 3) -> Any:
    """A value with some of its parts replaced or removed; often with none."""
    document = deepcopy(draw(whole))
    for _ in range(draw(st.integers(0, most))):
        places = list(_places(document))
        if not places:
            return draw(values)
        holder, key = places[draw(PLACES) % len(places)]
        if draw(st.booleans()):
            # Some of what is drawn is the same object each time, and may be changed itself later on.
            holder[key] = deepcopy(draw(values))
        else:
            del holder[key]
    return document


@st.composite
def bitten(draw: DrawFn, whole: SearchStrategy[bytes], most: int = 3) -> bytes:
    """Bytes with some of them changed, doubled or lost; often with none."""
    content = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, most))):
        start = draw(PLACES) % (len(content) + 1)
        stop = min(len(content), start + draw(st.integers(0, 20)))
        content[start:stop] = draw(st.binary(max_size=8) | st.just(bytes(content[start:stop]) * 2))
    return bytes(content)


def as_json(values: SearchStrategy[Any]) -> SearchStrategy[bytes]:
    """Values as JSON text, as Python writes it: with NaN and lone surrogates, which are no JSON."""
    plain = st.builds(lambda value, ascii_only: _text(value, ascii_only=ascii_only), values, st.booleans())
    return plain | DEEP


def _text(value: Any, *, ascii_only: bool) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a value that holds another one."""
    each = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in each:
        yield value, key
        yield from _places(inner)
