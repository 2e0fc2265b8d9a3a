"""Where a handler failed, as its log line says it: of exceptions that cannot be read, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stream_sort.aws_lambda.failures import MOST, facts_of

HERE = Path(__file__).name


class Mischief(Exception):
    """Nothing of it can be read in the usual way."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError


def raised(error: Exception) -> Exception:
    try:
        raise error  # noqa: TRY301  # it is to have a traceback
    except Exception as caught:  # noqa: BLE001  # whatever was given
        return caught


def test_an_exception_of_a_strangers_class_has_a_place() -> None:
    facts = facts_of(raised(Mischief()), "Mischief: <RuntimeError>")
    assert facts["at"].startswith(f"{HERE}:")
    assert facts["at"].endswith(" in raised")
    assert facts["traceback"].endswith("Mischief: <RuntimeError>")


def test_exceptions_that_are_each_others_cause_are_told_within_bounds() -> None:
    one, other = raised(ValueError("secret")), raised(KeyError("secret"))
    one.__cause__, other.__cause__ = other, one
    facts = facts_of(one, "ValueError: as logged")
    assert len(facts["traceback"]) <= MOST
    assert "secret" not in facts["traceback"]


def test_an_error_that_nobody_raised_has_no_place() -> None:
    assert facts_of(ValueError("x"), "ValueError: x") == {}
    assert facts_of(None, "ProcessEnded") == {}
