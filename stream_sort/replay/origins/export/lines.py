"""What a line of an export must be, and what of it is a slot: others may have written to the table, too.

An item whose seq is no whole number, or none that a queue can have, is in no slot: it is passed over, as in a table.
So is a withdrawal, which is in no queue.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from stream_sort.errors import StoreError, shown
from stream_sort.model.message import MAX_SEQ, MIN_SEQ
from stream_sort.model.withdrawal import PARTITION
from stream_sort.replay.files.json_content import value_of
from stream_sort.stores.dynamodb import tables

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from stream_sort.model.message import KeyNames
    from stream_sort.replay.slots import SlotDecoder, WireItem

NO_ITEM = "is not {'Item': ...}; is this an export in DynamoDB JSON?"
CHECK_KEYS = "check --queue-key and --seq-key, and who wrote it"
# What we add to an item, and the type that it has then.
MARKS = {tables.SKIPPED: "S", tables.LATE: "M", tables.ARRIVED_AT: "N"}
KEYS = pa.schema(
    [
        pa.field("queue", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("tombstone", pa.bool_(), nullable=False),
        pa.field("late", pa.bool_(), nullable=False),
        pa.field("arrived_at", pa.int64()),
    ]
)


class Unfit(ValueError):
    """A line that was exported as it is and still is not what we need: copying it again does not help."""


def seq_of(number: str) -> int | None:
    """Return the seq that a number is, however it is written (10, 10.0, 1E+1); None for what is in no slot."""
    value = Decimal(number)
    is_seq = value == value.to_integral_value() and MIN_SEQ <= value <= MAX_SEQ
    return int(value) if is_seq else None


def line_schema(keys: KeyNames) -> pa.Schema:
    """Return what is needed of a line to know its place, and whether it is a tombstone."""
    fields = [
        (keys.queue, pa.struct([("S", pa.string())])),
        (keys.seq, pa.struct([("N", pa.string())])),
        (tables.SKIPPED, pa.struct([("S", pa.string())])),
        (tables.LATE, pa.struct([("M", pa.struct([]))])),
        (tables.ARRIVED_AT, pa.struct([("N", pa.string())])),
    ]
    return pa.schema([("Item", pa.struct(fields))])


def parsed(block: bytes, schema: pa.Schema, unexpected: str) -> pa.StructArray:
    """Return the items of a block's lines."""
    lines = pj.read_json(
        pa.BufferReader(block),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
    )
    return lines.column("Item").combine_chunks()


def lines_of(block: bytes, start: bytes = b"{") -> int | None:
    """Return how many lines there are, if each of them begins in this way; None if it takes a closer look."""
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    return lines if block.count(b"\n" + start) + block.startswith(start) == lines else None


def check_lines(block: bytes, first_line: int) -> None:
    """Raise for what Arrow would let pass: bytes that are no text, and a null line, which ends the process."""
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError as error:
            before = block[: error.start].split(b"\n")[:-1]
            raise _no_text(first_line + sum(1 for line in before if line.strip())) from None
    if lines_of(block) is not None:
        return
    held = [line.strip() for line in block.split(b"\n") if line.strip()]
    for number, line in enumerate(held, first_line):
        if not line.startswith(b"{"):
            raise Unfit(f"line {number} {NO_ITEM}: {shown(line, 120)}")


def places(items: pa.StructArray, keys: KeyNames, first_line: int, no_slot: Counter[str] | None) -> pa.RecordBatch:
    """Return the places of some lines, in a batch of KEYS; counts by queue what is in no slot."""
    queue, seq, *marks = items.flatten()
    queues, numbers = queue.flatten()[0], seq.flatten()[0]
    for array, problem in (
        (items, NO_ITEM),
        (queues, f"has no {keys.queue!r} of type S; {CHECK_KEYS}"),
        (numbers, f"has no {keys.seq!r} of type N; {CHECK_KEYS}"),
    ):
        if array.null_count:
            raise Unfit(f"line {first_line + _first(array.is_null())} {problem}")
    for (name, kind), mark in zip(MARKS.items(), marks, strict=True):
        value = mark.flatten()[0]
        if value.null_count != mark.null_count:
            raise _other_type(first_line + _first(pc.and_(mark.is_valid(), value.is_null())), name, kind)
    skipped, late, arrived_at = marks
    columns = queues, _seqs(numbers), skipped.is_valid(), late.is_valid(), _times(arrived_at.flatten()[0], first_line)
    return _in_queues(_in_slots(columns, no_slot))


def items_of(lines: list[bytes], first_line: int) -> list[WireItem]:
    """Return the items of some lines; parsed as one list, which is faster than line by line."""
    try:
        documents = value_of(b"[" + b",".join(lines) + b"]")
        if len(documents) == len(lines):
            return [document["Item"] for document in documents]
    except (KeyError, TypeError, ValueError):
        pass
    for number, line in enumerate(lines, first_line):
        try:
            value_of(line)["Item"]
        except UnicodeDecodeError:
            raise _no_text(number) from None
        except (KeyError, TypeError, ValueError):
            raise Unfit(f"line {number} {NO_ITEM}: {shown(line, 120)}") from None
    raise ValueError(f"lines {first_line} to {first_line + len(lines) - 1} do not hold one item each")


def slots_of(items: Sequence[WireItem], keys: KeyNames, decoder: SlotDecoder, first_line: int) -> pa.RecordBatch:
    """Return the slots among some items."""
    try:
        slots = decoder.batch(items)
    except (LookupError, StoreError, TypeError, ValueError):
        # Rare, so it may take its time: which one is it?
        _check_marks(items, first_line)
        slots = decoder.batch(_plain(items, keys.seq))
    lowest = pc.min(slots["seq"]).as_py()
    is_sound = lowest is None or lowest >= MIN_SEQ
    return _in_queues(slots if is_sound else slots.filter(pc.greater_equal(slots["seq"], MIN_SEQ)))


def _seqs(numbers: pa.Array) -> pa.Array:
    """Return the seqs, null for what is in no slot."""
    try:
        seqs = numbers.cast(pa.int64())
    except pa.ArrowInvalid:
        return pa.array([seq_of(number) for number in numbers.to_pylist()], pa.int64())
    lowest = pc.min(seqs).as_py()
    is_sound = lowest is None or lowest >= MIN_SEQ
    return seqs if is_sound else pc.if_else(pc.less(seqs, MIN_SEQ), None, seqs)


def _times(texts: pa.Array, first_line: int) -> pa.Array:
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:
        bad = [text is not None and not _is_time(text) for text in texts.to_pylist()]
        if any(bad):
            raise _other_type(first_line + bad.index(True), tables.ARRIVED_AT, "N") from None
        raise


def _in_slots(columns: Sequence[pa.Array], no_slot: Counter[str] | None) -> pa.RecordBatch:
    queues, seqs, *_ = columns
    if seqs.null_count:
        if no_slot is not None:
            no_slot.update(queues.filter(seqs.is_null()).to_pylist())
        taken = seqs.is_valid()
        columns = [column.filter(taken) for column in columns]
    return pa.RecordBatch.from_arrays(list(columns), schema=KEYS)


def _in_queues(batch: pa.RecordBatch) -> pa.RecordBatch:
    aside = pc.starts_with(batch["queue"], PARTITION)
    return batch.filter(pc.invert(aside)) if pc.any(aside).as_py() else batch


def _check_marks(items: Sequence[WireItem], first_line: int) -> None:
    for number, item in enumerate(items, first_line):
        for name, kind in MARKS.items():
            if name in item and (kind not in item[name] or (kind == "N" and not _is_time(item[name][kind]))):
                raise _other_type(number, name, kind)


def _plain(items: Sequence[WireItem], seq_key: str) -> list[WireItem]:
    """Return the items that are in slots, with their seqs as whole numbers are written."""
    found: list[WireItem] = []
    for item in items:
        number: Any = item.get(seq_key, {}).get("N")
        seq = None if number is None else seq_of(number)
        if number is None or seq is not None:
            found.append(item if seq is None else {**item, seq_key: {"N": str(seq)}})
    return found


def _is_time(text: str) -> bool:
    try:
        return abs(int(text)) <= MAX_SEQ
    except ValueError:
        return False


def _first(found: pa.Array) -> int:
    return int(pc.index(found, pa.scalar(value=True)).as_py())


def _no_text(line: int) -> ValueError:
    return ValueError(f"line {line} is no UTF-8")


def _other_type(line: int, name: str, kind: str) -> Unfit:
    number = "a whole number" if kind == "N" else f"of type {kind}"
    return Unfit(f"line {line} has a {name!r} that is not {number}; who wrote it?")
