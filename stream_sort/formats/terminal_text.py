"""Texts of strangers as a terminal may show them: control characters are shown, not obeyed. Pure."""

from __future__ import annotations

import re
import shlex

# What moves a terminal's cursor, changes its state, breaks the line or turns the direction of the text.
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
LATIN_1 = 0x100


def visible(text: object) -> str:
    r"""Return a text as it may go to a terminal: what a terminal would obey stands there as \x1b or \u202e."""
    return UNSAFE.sub(lambda match: _escaped(match[0]), str(text))


def visible_json(line: str) -> str:
    """Return a line of JSON as it may go to a terminal: the same value, escaped as JSON has it."""
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def shell_word(text: str) -> str:
    """Return a word as a shell takes it, whatever is in it."""
    if UNSAFE.search(text) is None:
        return shlex.quote(text)
    return "$'" + visible(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def _escaped(character: str) -> str:
    code = ord(character)
    return NAMED.get(character) or (f"\\x{code:02x}" if code < LATIN_1 else f"\\u{code:04x}")
