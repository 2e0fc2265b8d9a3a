"""What a message is: its queue and seq, the values it may hold, its size. Knows no store."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.errors import InvalidInput, InvalidMessage, InvalidQueue, MessageTooLarge, SettingsError, shown
from stream_sort.model.item_size import item_size
from stream_sort.model.numbers import float_is_noted, int_fits_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESERVED_PREFIX = "_ss_"
MAX_SEQ = 2**63 - 1
MIN_SEQ = -(2**62)
MAX_QUEUE_BYTES = 1024
MAX_DEPTH = 31
# One item holds 400 KB; the rest is kept for what we add, so that a late message always fits
# into its slot beside the tombstone.
MAX_MESSAGE_BYTES = 400 * 1024 - 512
MAX_INT_BITS = 13_000
MAX_KEY_NAME_BYTES = 255
FLOAT_BYTES = 21
NOTE_BYTES = 10


@dataclass(frozen=True, slots=True)
class KeyNames:
    """The names under which a message carries its queue and its seq."""

    queue: str = "queue"
    seq: str = "seq"

    def __post_init__(self) -> None:
        for name in (self.queue, self.seq):
            if not isinstance(name, str) or not is_text(name) or not 0 < len(name.encode()) <= MAX_KEY_NAME_BYTES:
                raise SettingsError(f"key name {shown(name)}: must be text of 1 to {MAX_KEY_NAME_BYTES} bytes")
            if name.startswith(RESERVED_PREFIX):
                raise SettingsError(f"key name {name!r}: names starting with {RESERVED_PREFIX!r} are reserved")
        if self.queue == self.seq:
            raise SettingsError(f"queue_key and seq_key are both {self.queue!r}; they must differ")


@dataclass(frozen=True, slots=True)
class Message:
    """A checked message: where it belongs, what it says, how large it is at rest."""

    queue: str
    seq: int
    document: dict[str, Any]
    size: int


def take_message(document: object, keys: KeyNames) -> Message:
    """Return the message with a document of its own, which no change of the given one reaches; or raise."""
    message = check_message(document, keys)
    return Message(message.queue, message.seq, clone(message.document), message.size)


def check_message(document: object, keys: KeyNames) -> Message:
    """Return the message, or raise an InvalidMessage that names the field that is wrong."""
    if not isinstance(document, dict):
        raise InvalidMessage(f"a message is a dict (a JSON object), not {type(document).__name__}")
    if type(document) is not dict:
        # What a subclass holds counts, not what its methods make of it.
        document = dict.copy(document)
    queue, seq = document.get(keys.queue), document.get(keys.seq)
    for name in (keys.queue, keys.seq):
        if name not in document:
            raise InvalidMessage(f"no field {name!r}; it must name the message's place", queue=queue, seq=seq)
    try:
        check_queue(queue)
        _check_seq_of(document, keys)
        size = sum(1 + _field_size(name, value) for name, value in document.items())
    except InvalidQueue as bad:
        raise InvalidMessage(bad.problem, queue=queue, seq=seq, field=keys.queue) from None
    except _Unstorable as bad:
        raise InvalidMessage(bad.problem, queue=queue, seq=seq, field=bad.path()) from None
    if size > MAX_MESSAGE_BYTES:
        # An estimate, and a high one where many numbers have their types noted: what is refused is measured.
        size = item_size(document)
    if size > MAX_MESSAGE_BYTES:
        raise MessageTooLarge(size, MAX_MESSAGE_BYTES, queue=queue, seq=seq)
    return Message(queue, seq, document, size)  # type: ignore[arg-type]  # both were checked above


def check_queue(queue: object) -> str:
    """Return the queue name, or raise InvalidQueue."""
    if not isinstance(queue, str):
        raise InvalidQueue(queue, f"a queue name is text, not {type(queue).__name__}")
    if not queue:
        raise InvalidQueue(queue, "a queue name is at least one character long")
    for char in queue:
        if unicodedata.category(char) in {"Cc", "Cs"}:
            kind = "control character" if unicodedata.category(char) == "Cc" else "lone surrogate"
            raise InvalidQueue(queue, f"{kind} U+{ord(char):04X} is not allowed in a queue name")
    size = len(queue.encode())
    if size > MAX_QUEUE_BYTES:
        raise InvalidQueue(queue, f"{size:,} bytes, over the limit of {MAX_QUEUE_BYTES:,}")
    return queue


def check_seq(seq: object, name: str = "seq") -> int:
    """Return an int that can stand for a seq or a bound of a range, or raise InvalidInput."""
    if isinstance(seq, bool) or not isinstance(seq, int):
        raise InvalidInput(f"{name} is an int, not {type(seq).__name__} ({shown(seq)})")
    if not MIN_SEQ <= seq <= MAX_SEQ:
        raise InvalidInput(f"{name} {shown(seq)} is outside {MIN_SEQ} to {MAX_SEQ}")
    return seq


def check_seqs(seqs: object) -> Sequence[int]:
    """Return one seq, or an iterable of them, as seqs that were all checked; or raise InvalidInput."""
    if isinstance(seqs, range):
        # By its ends: it may be far too long to go through.
        for seq in {*seqs[:1], *seqs[-1:]}:
            check_seq(seq)
        return seqs
    if isinstance(seqs, str | bytes | bytearray | memoryview):
        raise InvalidInput(f"seqs are ints, not {type(seqs).__name__} ({shown(seqs)})")
    return [check_seq(seq) for seq in (seqs if isinstance(seqs, Iterable) else [seqs])]


def is_text(value: str) -> bool:
    """Return True if a str can be written as UTF-8: it has no lone surrogates."""
    return not any(unicodedata.category(char) == "Cs" for char in value)


def same_value(one: Any, other: Any) -> bool:
    """Return True if two values are the same for a reader: equal, and of the same JSON type all the way down."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == dict.keys(other)
            and all(same_value(value, dict.__getitem__(other, name)) for name, value in one.items())
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, float):
        return isinstance(other, float) and one.hex() == other.hex()
    return (
        isinstance(one, bool) is isinstance(other, bool)
        and isinstance(other, str | bytes | int | None)
        and bool(one == other)
    )


def clone(value: Any) -> Any:
    """Return an independent copy of a checked value, in plain dicts and lists."""
    if isinstance(value, dict):
        return {name: clone(inner) for name, inner in dict.items(value)}
    if isinstance(value, list):
        return [clone(inner) for inner in list.__iter__(value)]
    return value


class _Unstorable(Exception):
    """A value that cannot be stored; the path to it is gathered on the way up."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.steps: list[str] = []

    def path(self) -> str:
        return "".join(reversed(self.steps)).removeprefix(".")


def _check_seq_of(document: Mapping[str, Any], keys: KeyNames) -> None:
    seq = document[keys.seq]
    problem = None
    if isinstance(seq, bool) or not isinstance(seq, int):
        problem = f"a seq is an int, not {type(seq).__name__} ({shown(seq)})"
    elif not MIN_SEQ <= seq <= MAX_SEQ:
        problem = f"seq {shown(seq)} is outside {MIN_SEQ} to {MAX_SEQ}"
    if problem:
        raise InvalidMessage(problem, queue=document[keys.queue], seq=seq, field=keys.seq)


def _field_size(name: object, value: Any) -> int:
    if isinstance(name, str) and name.startswith(RESERVED_PREFIX):
        error = _Unstorable(f"names starting with {RESERVED_PREFIX!r} are reserved; rename the field")
        error.steps.append(name)
        raise error
    return _entry_size(name, value, 0, 0)


def _entry_size(name: object, value: Any, depth: int, above: int) -> int:
    if not isinstance(name, str) or not name:
        what = "an empty name" if name == "" else f"{type(name).__name__} {shown(name)}"
        error = _Unstorable(f"a field name is text of at least one character, not {what}")
        error.steps.append(f".{shown(name)}")
        raise error
    try:
        size = _text_size(name)
        return size + _size(value, depth, above + _step_bytes(name, size))
    except _Unstorable as error:
        error.steps.append(f".{name}")
        raise


def _size(value: Any, depth: int, above: int) -> int:  # noqa: PLR0911  # one for each type
    """Estimate the size at rest, never too low; `above` is the length of the path that leads here."""
    if isinstance(value, str):
        return _text_size(value)
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return _int_size(value, above)
    if isinstance(value, float):
        return _float_size(value, above)
    if isinstance(value, bytes):
        return len(value)
    if not isinstance(value, dict | list):
        raise _Unstorable(_advice(value))
    if depth >= MAX_DEPTH:
        raise _Unstorable(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return 3 + sum(1 + _entry_size(name, inner, depth + 1, above) for name, inner in dict.items(value))
    elements = enumerate(list.__iter__(value))
    return 3 + sum(1 + _element_size(index, inner, depth + 1, above) for index, inner in elements)


def _step_bytes(name: str, size: int) -> int:
    """Return the size of a name in the note that leads to a value: as JSON, with its comma."""
    return 3 + (size if name.isidentifier() else len(json.dumps(name, ensure_ascii=False).encode()))


def _element_size(index: int, value: Any, depth: int, above: int) -> int:
    try:
        return _size(value, depth, above + 7)
    except _Unstorable as error:
        error.steps.append(f"[{index}]")
        raise


def _text_size(text: str) -> int:
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise _Unstorable(f"lone surrogate U+{ord(text[error.start]):04X} is not valid text") from None


def _int_size(value: int, above: int) -> int:
    if value.bit_length() > MAX_INT_BITS:
        raise _Unstorable(f"an int of {value.bit_length():,} bits; the limit is {MAX_INT_BITS:,}")
    digits = len(str(value))
    return digits // 2 + 2 if int_fits_number(value) else digits + above + NOTE_BYTES


def _float_size(value: float, above: int) -> int:
    if not math.isfinite(value):
        raise _Unstorable(f"{value} is not a JSON number; use null or text")
    return FLOAT_BYTES + (above + NOTE_BYTES if float_is_noted(value) else 0)


def _advice(value: object) -> str:
    kind = type(value).__name__
    remedy = {
        "Decimal": "use int, float or text",
        "tuple": "use a list",
        "set": "use a list",
        "frozenset": "use a list",
        "bytearray": "use bytes",
        "datetime": "use isoformat()",
        "date": "use isoformat()",
        "UUID": "use str()",
    }.get(kind, "use text, int, float, bool, None, bytes, list or dict")
    return f"a value of type {kind} cannot be stored; {remedy}"
