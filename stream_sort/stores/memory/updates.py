"""Update expressions, applied to an item: SET of values, sums and if_not_exists; ADD; REMOVE."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from stream_sort.stores.memory.expressions import Unreadable, expression_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_sort.stores.memory.expressions import Expression
    from stream_sort.stores.wire import Value

CLAUSES = ("SET", "ADD", "REMOVE", "DELETE")


def updated(request: Mapping[str, Any], item: Mapping[str, Value] | None) -> dict[str, Value]:
    """Return the item after the update of a request; an item that is absent begins with its key."""
    expression = expression_of(request, "UpdateExpression", item)
    new = dict(item or request["Key"])
    while clause := expression.peek():
        if not expression.take("SET", "ADD", "REMOVE"):
            if clause == "DELETE":
                expression.unsupported(clause)
            raise Unreadable(f"{expression.text!r}: {', '.join(CLAUSES)} expected, not {clause!r}")
        _change(expression, clause, new)
        while expression.take(","):
            _change(expression, clause, new)
    if not expression.tokens:
        raise Unreadable("an UpdateExpression is not empty")
    changed = [name for name in request["Key"] if new.get(name) != request["Key"][name]]
    if changed:
        raise Unreadable(f"{expression.text!r} would change the key: {', '.join(changed)}")
    return new


def _change(expression: Expression, clause: str, new: dict[str, Value]) -> None:
    name = expression.name()
    if clause == "REMOVE":
        new.pop(name, None)
    elif clause == "ADD":
        new[name] = _added(expression, new.get(name))
    else:
        expression.expect("=")
        new[name] = _sum(expression)


def _added(expression: Expression, there: Value | None) -> Value:
    given = _present(expression)
    ((kind, more),) = given.items()
    if kind in {"SS", "NS", "BS"} and there is not None and kind in there:
        return {kind: list(dict.fromkeys([*there[kind], *more]))}
    return given if there is None else _plus(expression, there, given, 1)


def _sum(expression: Expression) -> Value:
    one = _term(expression)
    sign = {"+": 1, "-": -1}.get(expression.peek())
    if sign is None:
        return one
    expression.take("+", "-")
    return _plus(expression, one, _term(expression), sign)


def _term(expression: Expression) -> Value:
    if not expression.take("IF_NOT_EXISTS"):
        return _present(expression)
    expression.expect("(")
    there = (expression.item or {}).get(expression.name())
    expression.expect(",")
    instead = _present(expression)
    expression.expect(")")
    return instead if there is None else there


def _present(expression: Expression) -> Value:
    value = expression.operand()
    if value is None:
        raise Unreadable(f"{expression.text!r} refers to an attribute that is not in the item")
    return value


def _plus(expression: Expression, one: Value, other: Value, sign: int) -> Value:
    if "N" not in one or "N" not in other:
        raise Unreadable(f"{expression.text!r}: only numbers can be added")
    return {"N": str(Decimal(one["N"]) + sign * Decimal(other["N"]))}
