"""What a call of AWS answers, or a named error where a proxy answered, or an answer was cut. Knows no service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from stream_sort.errors import shown

if TYPE_CHECKING:
    from collections.abc import Callable

# What botocore raises for an answer that it cannot read. Where it holds another shape than it looks for, it just fails.
UNREADABLE = (ResponseParserError, AttributeError, LookupError, TypeError, ValueError)


class UnreadableAnswer(BotoCoreError):  # type: ignore[misc]  # botocore has no types
    """An answer that AWS does not give: nobody knows what was done, as after a timeout."""

    fmt = "the answer cannot be read, a proxy may have given it: {problem}"


def answered(call: Callable[..., Any], /, *parts: str, **request: Any) -> dict[str, Any]:
    """Make a call; UnreadableAnswer unless its answer can be read and has these parts."""
    try:
        answer: dict[str, Any] = call(**request)
    except (BotoCoreError, ClientError):
        raise
    except UNREADABLE as error:
        raise UnreadableAnswer(problem=shown(error, 200)) from error
    for part in parts:
        if part not in answer:
            raise UnreadableAnswer(problem=f"it has no {part}")
    return answer
