"""Condition expressions on an item: AND, OR, NOT, comparisons, BETWEEN, IN, and the functions listed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.stores.memory.expressions import Unreadable, compare, expression_of
from stream_sort.stores.wire import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_sort.stores.memory.expressions import Expression
    from stream_sort.stores.wire import Value

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def holds(request: Mapping[str, Any], item: Mapping[str, Value] | None) -> bool:
    """Return True if the condition of a request holds for an item, None where there is none."""
    if "ConditionExpression" not in request:
        return True
    expression = expression_of(request, "ConditionExpression", item)
    answer = _any(expression)
    expression.end()
    return answer


def _any(expression: Expression) -> bool:
    answer = _all(expression)
    while expression.take("OR"):
        answer = _all(expression) or answer
    return answer


def _all(expression: Expression) -> bool:
    answer = _one(expression)
    while expression.take("AND"):
        answer = _one(expression) and answer
    return answer


def _one(expression: Expression) -> bool:
    if expression.take("NOT"):
        return not _one(expression)
    if expression.take("("):
        answer = _any(expression)
        expression.expect(")")
        return answer
    for name, function in FUNCTIONS.items():
        if expression.take(name):
            expression.expect("(")
            answer = function(expression)
            expression.expect(")")
            return answer
    return _compared(expression)


def _compared(expression: Expression) -> bool:
    one = expression.operand()
    how = expression.peek()
    if expression.take(*COMPARISONS):
        return compare(one, how, expression.operand())
    if expression.take("BETWEEN"):
        low = compare(one, ">=", expression.operand())
        expression.expect("AND")
        return compare(one, "<=", expression.operand()) and low
    if not expression.take("IN"):
        raise Unreadable(f"{expression.text!r}: a comparison expected before {how or 'its end'!r}")
    expression.expect("(")
    found = compare(one, "=", expression.operand())
    while expression.take(","):
        found = compare(one, "=", expression.operand()) or found
    expression.expect(")")
    return found


def _exists(expression: Expression) -> bool:
    return expression.name() in (expression.item or {})


def _begins_with(expression: Expression) -> bool:
    (kind, one), (prefix_kind, prefix) = _two(expression)
    return kind == prefix_kind and kind in {"S", "B"} and bool(one.startswith(prefix))


def _contains(expression: Expression) -> bool:
    (kind, one), (wanted_kind, wanted) = _two(expression)
    if kind in {"S", "B"}:
        return kind == wanted_kind and wanted in one
    if kind in {"SS", "NS", "BS"}:
        return kind[0] == wanted_kind and wanted in one
    return kind == "L" and (wanted_kind, wanted) in one


def _two(expression: Expression) -> tuple[tuple[str, Any], tuple[str, Any]]:
    one = expression.operand()
    expression.expect(",")
    other = expression.operand()
    nothing = ("", None)
    return nothing if one is None else canonical(one), nothing if other is None else canonical(other)


FUNCTIONS = {
    "ATTRIBUTE_EXISTS": _exists,
    "ATTRIBUTE_NOT_EXISTS": lambda expression: not _exists(expression),
    "BEGINS_WITH": _begins_with,
    "CONTAINS": _contains,
}
