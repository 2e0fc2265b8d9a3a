"""Whatever stands in a file, a name or an argument: the command line takes it, or refuses it by name."""

from __future__ import annotations

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from stream_sort.cli.arguments import seqs_of
from stream_sort.cli.message_file import entries
from stream_sort.cli.output import json_line, shell_word, visible
from stream_sort.errors import InvalidInput
from stream_sort.formats.terminal_text import UNSAFE

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
LINES = st.lists(DOCUMENTS.filter(lambda one: not isinstance(one, list)), min_size=1)


@given(st.binary() | st.text().map(str.encode) | st.text('[]{},:"0\n \t\\eE.-u').map(str.encode))
def test_any_file_is_entries_or_bad_input(raw: bytes) -> None:
    try:
        found = list(entries(io.BytesIO(raw)))
    except InvalidInput:
        assert raw.lstrip(b"\xef\xbb\xbf \t\r\n\x0b\x0c").startswith(b"[")
        return
    for entry in found:
        assert entry.place >= 1
        assert json.loads(json_line({"message": entry.document}))


@given(LINES)
def test_json_lines_and_an_array_hold_the_same_documents(documents: list[object]) -> None:
    lines = "\n".join(map(json.dumps, documents)).encode()
    array = json.dumps(documents, indent=1).encode()
    for raw in (lines, array):
        found = list(entries(io.BytesIO(raw)))
        assert [entry.document for entry in found] == documents
        assert not any(entry.error for entry in found)


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_shown(text: str) -> None:
    for shown in (visible(text), shell_word(text), json_line({"text": text})):
        assert UNSAFE.search(shown) is None
    assert json.loads(json_line({"text": text})) == {"text": text}


@given(st.text("0123456789-.x ", max_size=30))
def test_any_argument_is_seqs_or_bad_input(text: str) -> None:
    try:
        found = seqs_of(text)
    except InvalidInput:
        return
    assert found.stop > found.start
