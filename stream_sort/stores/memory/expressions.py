"""DynamoDB's expressions, as far as they are evaluated here: words, names and values. Knows no store.

Only top-level attributes are known. What DynamoDB can do and this cannot is a SettingsError that names it; what
DynamoDB could not read either is Unreadable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never

from stream_sort.errors import SettingsError
from stream_sort.stores.wire import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_sort.stores.wire import Value

TOKEN = re.compile(r"\s*([#:]?\w+(?:\.[#\w]+|\[\d+\])*|<>|<=|>=|[=<>+\-(),]|\S)")
NAME = re.compile(r"[A-Za-z_]\w*")
NESTED = re.compile(r"[.\[]")
EXPRESSIONS = ("ConditionExpression", "UpdateExpression")


class Unreadable(ValueError):
    """An expression that no table can read."""


@dataclass(slots=True)
class Expression:
    """An expression under way, token by token, against an item; None where there is none."""

    text: str
    tokens: list[str]
    item: Mapping[str, Value] | None
    names: Mapping[str, str]
    values: Mapping[str, Value]
    at: int = 0

    def peek(self) -> str:
        """Return the next token, empty at the end; words in capitals."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        return token.upper() if NAME.fullmatch(token) else token

    def take(self, *wanted: str) -> bool:
        """Return True if the next token is one of these, and go past it."""
        found = self.peek() in wanted
        self.at += found
        return found

    def expect(self, token: str) -> None:
        """Go past a token that must come now."""
        if not self.take(token):
            raise Unreadable(f"{self.text!r}: {token!r} expected before {self.peek() or 'its end'!r}")

    def name(self) -> str:
        """Read the attribute that is named next."""
        token = self._next()
        if NESTED.search(token):
            self.unsupported(token)
        if token.startswith("#"):
            if token not in self.names:
                raise Unreadable(f"{self.text!r}: {token} is not in ExpressionAttributeNames")
            return self.names[token]
        if not NAME.fullmatch(token):
            raise Unreadable(f"{self.text!r}: {token!r} is no name of an attribute")
        return token

    def operand(self) -> Value | None:
        """Read the value that comes next: one that was given, or that of an attribute; None if the item has none."""
        if self.peek().startswith(":"):
            token = self._next()
            if token not in self.values:
                raise Unreadable(f"{self.text!r}: {token} is not in ExpressionAttributeValues")
            return self.values[token]
        name = self.name()
        if self.peek() == "(":
            self.unsupported(name)
        return (self.item or {}).get(name)

    def end(self) -> None:
        """Raise Unreadable if anything comes any more."""
        if self.peek():
            raise Unreadable(f"{self.text!r}: {self.peek()!r} is not expected")

    def unsupported(self, what: str) -> Never:
        """DynamoDB might know this; here nobody does."""
        raise SettingsError(
            f"{what!r} in the expression {self.text!r} cannot be evaluated in memory, so nothing was committed; "
            "test it on tables, as `stream-sort local up` makes them"
        )

    def _next(self) -> str:
        if self.at >= len(self.tokens):
            raise Unreadable(f"{self.text!r}: it ends too early")
        self.at += 1
        return self.tokens[self.at - 1]


def expression_of(request: Mapping[str, Any], which: str, item: Mapping[str, Value] | None) -> Expression:
    """Return an expression of a request, to be read against an item."""
    text = str(request[which])
    names, values = request.get("ExpressionAttributeNames") or {}, request.get("ExpressionAttributeValues") or {}
    return Expression(text, TOKEN.findall(text), item, names, values)


def check_placeholders(request: Mapping[str, Any]) -> None:
    """Unreadable if a name or a value was given that no expression uses: DynamoDB refuses that."""
    used = {token for which in EXPRESSIONS for token in re.findall(r"[#:]\w+", str(request.get(which, "")))}
    for which in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        unused = sorted((request.get(which) or {}).keys() - used)
        if unused:
            raise Unreadable(f"{', '.join(unused)} in {which}, but in no expression")


def compare(one: Value | None, how: str, other: Value | None) -> bool:
    """Return True if two values compare in this way; an absent one is only ever different."""
    if one is None or other is None:
        return how == "<>"
    (kind, left), (other_kind, right) = canonical(one), canonical(other)
    if how in {"=", "<>"}:
        return ((kind, left) == (other_kind, right)) is (how == "=")
    if kind != other_kind or kind not in {"S", "N", "B"}:
        return False
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[how])
