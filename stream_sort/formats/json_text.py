"""JSON text in and out, strictly: what one reader would take and another would not is refused."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections import Counter
from decimal import Decimal
from typing import Any

from stream_sort.errors import InvalidInput, shown

STRING_OR_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s",:\[\]{}]+')


def loads(text: str | bytes, *, exact: bool = False) -> Any:
    """Return the value of a JSON text; raises InvalidInput that says what is wrong with it and where.

    Refused besides broken text: a field given twice, NaN and infinities, numbers too large for a float, ints of
    more digits than Python converts, nesting deeper than Python goes, bytes that are not UTF-8.
    `exact` makes decimals of what would be floats: others write more digits than a float has.
    """
    try:
        return (_EXACT if exact else _DECODER).decode(text if isinstance(text, str) else text.decode())
    except _Refused as refused:
        raise InvalidInput(f"not usable JSON: {refused.problem}{_place(text, refused.word)}") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not JSON: not UTF-8 text at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"not JSON: {error}") from None
    except RecursionError:
        raise InvalidInput("not usable JSON: nested too deeply") from None


def dumps(value: Any) -> str:
    """Compact JSON text: bytes as base64 text, sets as sorted lists, decimals as numbers.

    Raises InvalidInput for what JSON does not know, NaN and infinities among it.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except RecursionError:
        raise InvalidInput("no JSON text: nested too deeply, or a value holds itself") from None
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"no JSON text: {error}") from error


class _Refused(Exception):
    """Sound JSON that is refused; `word` is what it is refused for, where the text has it outside of strings."""

    def __init__(self, problem: str, word: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.word = word


def _no_constant(word: str) -> Any:
    raise _Refused(f"{word} is not a JSON number; use null or text", word)


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise _Refused(f"{shown(word)} is too large for a number; use text", word)
    if number == 0 and any(digit in "123456789" for digit in word.lower().partition("e")[0]):
        raise _Refused(f"{shown(word)} is too small for a number; use text", word)
    return number


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise _Refused(f"an int of {len(word.lstrip('-')):,} digits; use text", word) from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise _Refused(f"the field {shown(twice)} is given twice in one object")
    return fields


_DECODER = json.JSONDecoder(
    object_pairs_hook=_each_once, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
)
_EXACT = json.JSONDecoder(
    object_pairs_hook=_each_once, parse_constant=_no_constant, parse_float=Decimal, parse_int=_whole
)


def _place(text: str | bytes, word: str) -> str:
    """Say where a word stands outside of strings; found only now, because sound texts are not to pay for it."""
    whole = text if isinstance(text, str) else text.decode()
    for match in STRING_OR_WORD.finditer(whole) if word else ():
        if match[0] == word:
            before = whole[: match.start()]
            line, column = before.count("\n") + 1, match.start() - before.rfind("\n")
            return f": line {line} column {column} (char {match.start()})"
    return ""


def _plain(value: object) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Decimal):
        is_whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if is_whole else float(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
