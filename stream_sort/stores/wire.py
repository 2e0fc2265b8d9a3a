"""Python values as DynamoDB's attribute values, by its rules of what can be one. Knows no SDK."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Clamped, Context, Decimal, DecimalException, Inexact, Overflow, Rounded, Underflow
from typing import Any

from stream_sort.errors import kind_of, shown

Value = dict[str, Any]
# What a number at rest holds: 38 digits, and exponents that are not cut.
NUMBERS = Context(prec=38, Emin=-128, Emax=126, traps=[Clamped, Overflow, Inexact, Rounded, Underflow])
SETS = {"S": "SS", "N": "NS", "B": "BS"}
MAX_DEPTH = 32
# Each map and each list takes so much, and each of its entries one byte.
HOLDER_BYTES = 3


class Unstorable(ValueError):
    """A value that no attribute can have; says where it stands."""


def wire_of(value: Any, path: str, depth: int = 0) -> Value:
    """Return a value as requests carry it; Unstorable for what no DynamoDB type holds. `path` names it in the error."""
    if value is None:
        return {"NULL": True}
    if value is True or value is False:
        return {"BOOL": value}
    if isinstance(value, str):
        return {"S": _text(value, path)}
    if isinstance(value, int | float | Decimal):
        return {"N": _number(value, path)}
    if kind_of(value) == "Binary":
        # boto3's own type for bytes, as its Table resource reads them.
        value = getattr(value, "value", value)
    if isinstance(value, bytes | bytearray):
        return {"B": bytes(value)}
    return _holder(value, path, depth)


def _holder(value: Any, path: str, depth: int) -> Value:
    if depth >= MAX_DEPTH:
        raise Unstorable(f"{path[:80]}: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {"M": entries_of(value, f"{path}.", depth + 1)}
    if isinstance(value, list | tuple):
        return {"L": [wire_of(inner, f"{path}[{index}]", depth + 1) for index, inner in enumerate(value)]}
    if isinstance(value, set | frozenset):
        return _set(value, path)
    raise Unstorable(f"{path}: a value of type {kind_of(value)} cannot be stored")


def entries_of(entries: Mapping[Any, Any], prefix: str = "", depth: int = 0) -> dict[str, Value]:
    """Return the entries of an item or a map as requests carry them."""
    for name in entries:
        if not isinstance(name, str):
            raise Unstorable(f"{prefix}{shown(name)}: the name of an attribute is text")
    return {_text(name, prefix + repr(name)): wire_of(inner, prefix + name, depth) for name, inner in entries.items()}


def canonical(value: Value) -> tuple[str, Any]:
    """Return a value that is equal, and hashes alike, for what DynamoDB takes for the same: 1 and 1.0."""
    ((kind, inner),) = value.items()
    match kind:
        case "N":
            return kind, Decimal(inner)
        case "NS":
            return kind, frozenset(map(Decimal, inner))
        case "SS" | "BS":
            return kind, frozenset(inner)
        case "L":
            return kind, tuple(map(canonical, inner))
        case "M":
            return kind, canonical_entries(inner)
        case _:
            return kind, inner


def canonical_entries(entries: Mapping[str, Value]) -> tuple[Any, ...]:
    """Return the same for an item or a key."""
    return tuple((name, canonical(entries[name])) for name in sorted(entries))


def size_of(entries: Mapping[str, Value]) -> int:
    """Return the bytes that DynamoDB counts for an item, at the least."""
    return sum(len(name.encode()) + _size(value) for name, value in entries.items())


def _size(value: Value) -> int:
    ((kind, inner),) = value.items()
    match kind:
        case "S" | "B" | "N":
            return _scalar_size(kind, inner)
        case "SS" | "BS" | "NS":
            return sum(_scalar_size(kind[0], one) for one in inner)
        case "M":
            return HOLDER_BYTES + len(inner) + size_of(inner)
        case "L":
            return HOLDER_BYTES + len(inner) + sum(map(_size, inner))
        case _:
            return 1


def _scalar_size(kind: str, inner: Any) -> int:
    if kind == "N":
        # Two digits a byte; zeros at either end take none.
        return len(Decimal(inner).normalize().as_tuple().digits) // 2 + 1
    return len(inner.encode() if kind == "S" else inner)


def _text(value: str, path: str) -> str:
    """Return the text as a plain one: nobody who reads it again can fail."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Unstorable(f"{shown(path)}: not valid text: {error.reason}") from None
    return str.__str__(value)


def _number(value: float | Decimal, path: str) -> str:
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise Unstorable(f"{path}: {shown(value)} is no number that can be stored")
    try:
        return str(NUMBERS.create_decimal(exact))
    except DecimalException:
        raise Unstorable(f"{path}: {shown(value)} does not fit into the 38 digits of a number") from None


def _set(value: set[Any] | frozenset[Any], path: str) -> Value:
    wires = [wire_of(inner, path) for inner in value]
    kinds = {kind for wire in wires for kind in wire}
    if len(kinds) != 1 or not kinds <= SETS.keys():
        what = "an empty set" if not kinds else f"a set of {' and '.join(sorted(kinds))}"
        raise Unstorable(f"{path}: {what} cannot be stored; a set holds texts, or numbers, or bytes")
    (kind,) = kinds
    return {SETS[kind]: [wire[kind] for wire in wires]}
