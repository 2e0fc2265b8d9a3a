"""Messages to DynamoDB's attribute values and back, exactly.

Fields are stored as they are. A DynamoDB number does not distinguish 1 from 1.0 and does not hold every int and float,
so the paths of the few values that would come back as something else are noted beside the message, as JSON:
`{"float": [["price"], ["points", 0]], "int": [["serial"]]}`.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from stream_sort.errors import RowDamaged, shown
from stream_sort.model.numbers import float_fits_number, float_is_noted, int_fits_number

Wire = dict[str, dict[str, Any]]
Path = tuple[str | int, ...]
# The end of the year 9999, in milliseconds.
LATEST = 253_402_300_799_999


def number(value: int) -> dict[str, str]:
    """Return a number as requests carry it."""
    return {"N": str(value)}


def millis(seconds: float) -> dict[str, str]:
    """Return a time as requests carry it: in whole milliseconds."""
    return number(round(seconds * 1000))


def encode(document: dict[str, Any]) -> tuple[Wire, str | None]:
    """Return the attributes of a message, and the note on its types if it needs one."""
    noted: dict[str, list[Path]] = {}
    wire = {name: _encode(value, (name,), noted) for name, value in document.items()}
    return wire, json.dumps(noted, separators=(",", ":"), ensure_ascii=False) if noted else None


def decode(wire: Wire, types: str | None) -> dict[str, Any]:
    """Return the message that `encode` was given; also reads what others wrote."""
    document = {name: _decode(value) for name, value in wire.items()}
    try:
        _set_types(document, json.loads(types) if types else {})
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # Of this one row, as in _at.
        raise RowDamaged(
            f"the table holds a message that somebody changed: its note on types, {shown(types, 100)}, does not fit "
            f"{_describe(wire)} ({error!r}); put the fields back that it names, or delete the attribute with the note"
        ) from error
    return document


def _set_types(document: dict[str, Any], noted: dict[str, list[list[str | int]]]) -> None:
    for kind, paths in noted.items():
        for *steps, last in paths:
            holder: Any = document
            for step in steps:
                holder = holder[step]
            holder[last] = float(holder[last]) if kind == "float" else int(holder[last])


def text_at(wire: Wire, name: str) -> str:
    """Return a text attribute that must be there."""
    return str(_at(wire, name, "S"))


def int_at(wire: Wire, name: str) -> int:
    """Return a whole number that must be there."""
    text = _at(wire, name, "N")
    number = _decode_number(text)
    if not isinstance(number, int):
        raise RowDamaged(f"the table holds {name!r} = {text}, which is no whole number; its row is {_describe(wire)}")
    return number


def number_at(wire: Wire, name: str) -> float:
    """Return a number that must be there, with a fraction or without."""
    return _decode_number(_at(wire, name, "N"))


def time_at(wire: Wire, name: str) -> float:
    """Return a time that must be there in milliseconds, as seconds."""
    millis = number_at(wire, name)
    if abs(millis) > LATEST:
        raise RowDamaged(f"the table holds {name!r} = {millis}, which is no time; its row is {_describe(wire)}")
    return millis / 1000


def mark_at(wire: Wire, name: str) -> float:
    """Return a time as `time_at`, but in whole milliseconds: a condition compares it exactly."""
    int_at(wire, name)
    return time_at(wire, name)


def is_number(wire: Wire, name: str) -> bool:
    """Return True if a whole number is there."""
    return "N" in wire.get(name, {}) and is_whole(wire, name)


def is_whole(wire: Wire, name: str) -> bool:
    """Return True if a number that must be there is a whole one."""
    return isinstance(_decode_number(_at(wire, name, "N")), int)


def _at(wire: Wire, name: str, kind: str) -> Any:
    if kind not in wire.get(name, {}):
        # Of this one row: it must not keep anybody from the others.
        raise RowDamaged(
            f"the table holds a row without {name!r} of type {kind}: {_describe(wire)}; "
            "check who wrote it, and the table names, queue_key and seq_key"
        )
    return wire[name][kind]


def _describe(wire: Wire) -> str:
    return shown({name: value for name, value in wire.items() if "S" in value or "N" in value}, 200)


def _encode(value: Any, path: Path, noted: dict[str, list[Path]]) -> dict[str, Any]:  # noqa: PLR0911  # one for each type
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return _encode_int(value, path, noted)
    if isinstance(value, float):
        return _encode_float(value, path, noted)
    if value is None:
        return {"NULL": True}
    if isinstance(value, bytes):
        return {"B": value}
    if isinstance(value, dict):
        return {"M": {name: _encode(inner, (*path, name), noted) for name, inner in value.items()}}
    return {"L": [_encode(inner, (*path, index), noted) for index, inner in enumerate(value)]}


def _encode_int(value: int, path: Path, noted: dict[str, list[Path]]) -> dict[str, Any]:
    fits = int_fits_number(value)
    if not fits:
        noted.setdefault("int", []).append(path)
    return {"N" if fits else "S": int.__repr__(value)}


def _encode_float(value: float, path: Path, noted: dict[str, list[Path]]) -> dict[str, Any]:
    if float_is_noted(value):
        noted.setdefault("float", []).append(path)
    return {"N" if float_fits_number(value) else "S": float.__repr__(value)}


def _decode(value: dict[str, Any]) -> Any:  # noqa: PLR0911  # one for each type
    ((kind, inner),) = value.items()
    match kind:
        case "S" | "BOOL":
            return inner
        case "N":
            return _decode_number(inner)
        case "NULL":
            return None
        case "M":
            return {name: _decode(entry) for name, entry in inner.items()}
        case "L":
            return [_decode(entry) for entry in inner]
        case "NS":
            return {_decode_number(text) for text in inner}
        case "SS" | "BS":
            return set(inner)
        case _:
            return bytes(inner)


def _decode_number(text: str) -> float:
    if text.lstrip("-").isdecimal():
        return int(text)
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else float(text)
