"""Point-in-time exports: both manifests, their checksums, and the data files."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from stream_sort.errors import StreamSortError
from stream_sort.model.message import KeyNames
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.export.columns import PlainLines
from stream_sort.replay.origins.export.files import read_keys, read_slots
from stream_sort.replay.origins.export.lines import items_of, slots_of
from stream_sort.replay.origins.export.manifest import FILES, SUMMARY, open_export
from stream_sort.replay.slots import SlotDecoder
from tests.properties.fuzz.target import Target
from tests.properties.fuzz.values import DEEP, TEXTS, VALUES, WHOLE, as_json, bitten, mangled

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

DATA = "data/0000abcdefghijklmnop.json.gz"
KEY = f"AWSDynamoDB/01693685827463-2d8752fd/{DATA}"
WIRE = st.recursive(
    st.fixed_dictionaries({"S": TEXTS})
    | st.fixed_dictionaries({"N": WHOLE.map(str) | TEXTS})
    | st.sampled_from([{"BOOL": True}, {"NULL": True}, {"B": "AAE="}, {"SS": ["b", "a"]}, {"NS": ["2", "1e3"]}]),
    lambda inner: (
        st.fixed_dictionaries({"L": st.lists(inner, max_size=3)})
        | st.fixed_dictionaries({"M": st.dictionaries(TEXTS, inner, max_size=3)})
    ),
    max_leaves=5,
)
ITEMS = st.fixed_dictionaries(
    {"queue": st.fixed_dictionaries({"S": TEXTS}), "seq": st.fixed_dictionaries({"N": WHOLE.map(str)})},
    optional={
        "x": WIRE,
        "_ss_at": st.just({"N": "1700000000000"}) | WIRE,
        "_ss_skipped": st.just({"S": "lost"}) | WIRE,
        "_ss_late": st.just({"M": {}}) | WIRE,
        "_ss_types": WIRE,
    },
)
ODD_LINES = DEEP.map(lambda text: b'{"Item":{"x":' + text + b"\n") | st.sampled_from([b"null\n", b"{}null\n", b"1 2\n"])
DOCUMENTS = mangled(st.lists(st.fixed_dictionaries({"Item": ITEMS}), max_size=4), WIRE | VALUES)


@st.composite
def exports(draw: DrawFn) -> dict[str, bytes]:
    """The files of an export; what is wrong with one of them is right by the checksum of another, as often as not."""
    documents = draw(DOCUMENTS)
    lines = [json.dumps(one).encode() + b"\n" for one in documents] if isinstance(documents, list) else [b"\n"]
    lines += draw(st.lists(ODD_LINES, max_size=1))
    content = draw(bitten(st.just(gzip.compress(draw(bitten(st.just(b"".join(lines)))), mtime=0)), most=1))
    md5 = base64.b64encode(hashlib.md5(content).digest()).decode()
    row = {"itemCount": len(lines), "md5Checksum": md5, "etag": "x", "dataFileS3Key": KEY}
    rows = draw(mangled(st.just([row]), most=1))
    listed = "".join(json.dumps(one) + "\n" for one in rows) if isinstance(rows, list) else json.dumps(rows)
    summary = {
        "tableArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/Items",
        "itemCount": len(lines),
        "outputFormat": "DYNAMODB_JSON",
        "exportType": "FULL_EXPORT",
    }
    found = {
        DATA: content,
        FILES: draw(bitten(st.just(listed.encode()), most=1)),
        SUMMARY: draw(bitten(as_json(mangled(st.just(summary), most=1)), most=1)),
    }
    for name in draw(st.lists(st.sampled_from([DATA, FILES, SUMMARY]), max_size=1)):
        del found[name]
    return found


def check_export(files: dict[str, bytes]) -> None:
    """The manifests are read, and every file by its keys and by its slots, which agree on the places."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        export = open_export(Storage(folder))
        for file in export.files:
            keys = _places(read_keys, export, file)
            slots = _places(read_slots, export, file)
            assert keys is None or slots is None or keys == slots


def _places(read: Any, *file: Any) -> list[Any] | None:
    try:
        rows = [row for batch in read(*file, KeyNames()) for row in batch.to_pylist()]
    except StreamSortError:
        return None
    return [(row["queue"], row["seq"]) for row in rows]


PLAIN = st.sampled_from(
    [
        *({"S": text} for text in ('a "b"', "é", "a\n")),
        *({"N": number} for number in ("1", "1.50")),
        *({"BOOL": True}, {"BOOL": False}, {"NULL": True}),
    ]
)
PLAIN_ITEMS = st.fixed_dictionaries(
    {"queue": st.fixed_dictionaries({"S": TEXTS}), "seq": st.fixed_dictionaries({"N": WHOLE.map(str)})},
    optional={"x": PLAIN, "y": PLAIN, "_ss_at": st.just({"N": "1700000000000"}), "_ss_seen": st.just({"N": "-1"})},
)
MIXED_ITEMS = PLAIN_ITEMS | PLAIN_ITEMS | PLAIN_ITEMS | ITEMS


@st.composite
def blocks(draw: DrawFn) -> dict[str, Any]:
    """What was read of an export so far, and the next lines."""
    known = draw(st.lists(PLAIN_ITEMS, min_size=1, max_size=3))
    documents = [{"Item": one} for one in draw(st.lists(MIXED_ITEMS, max_size=3))]
    odd = draw(mangled(st.just(documents), PLAIN | VALUES, most=1)) if draw(st.booleans()) else documents
    lines = [json.dumps(one, ensure_ascii=draw(st.booleans())) for one in odd] if isinstance(odd, list) else [""]
    text = ("\n".join(lines) + draw(st.sampled_from(["", "\n"]))).encode(errors="surrogatepass")
    return {"known": known, "block": draw(bitten(st.just(text), most=1)) if draw(st.booleans()) else text}


def check_block(example: dict[str, Any]) -> None:
    """Read column by column, a block gives what it gives line by line, or is left to the decoder."""
    keys, block = KeyNames(), example["block"]
    plain = PlainLines(keys)
    plain.learn(example["known"])
    slots = plain.slots(block)
    if slots is not None:
        items = items_of([line for line in block.split(b"\n") if line and not line.isspace()], 1)
        assert slots.equals(slots_of(items, keys, SlotDecoder(keys), 1))


TARGETS = (Target("export", exports(), check_export), Target("export_block", blocks(), check_block))
