"""A user's own handler in the simulator: a right one passes, one that can never work does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import TryLater
from stream_sort.testing import SimulationFailure, simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import Batch

SEEDS = 30


def totals(batch: Batch) -> None:
    for _ in batch:
        batch.transaction.update("Totals", {"id": batch.queue}, "ADD n :one", ExpressionAttributeValues={":one": 1})


def many(batch: Batch) -> None:
    for message in batch:
        for number in range(60):
            batch.transaction.put("Rows", {"id": f"{batch.queue}/{message['seq']}/{number}"})


def once(batch: Batch) -> None:
    for message in batch:
        item = {"id": f"{batch.queue}/{message['seq']}", "attempt": batch.attempt}
        batch.transaction.put("Paid", item, ConditionExpression="attribute_not_exists(id)")


@pytest.mark.parametrize("handler", [totals, many, once])
def test_a_handler_whose_effects_are_cut_to_what_fits_passes(handler: Callable[[Batch], None]) -> None:
    done = simulate(handler, seeds=SEEDS)
    assert done.met["effects"] > 50
    assert done.met["messages done"] > 50


def test_one_refused_effect_is_met_as_it_is_on_tables() -> None:
    def refuses_seq_1(batch: Batch) -> None:
        for message in batch:
            if message["seq"] == 1:
                batch.transaction.condition("Paid", {"id": "nobody"}, "attribute_exists(id)")
            else:
                batch.transaction.put("Paid", {"id": f"{batch.queue}/{message['seq']}"})

    done = simulate(refuses_seq_1, seeds=SEEDS)
    assert done.met["effects refused"] > 10


def test_what_is_no_effect_is_told_in_words() -> None:
    def junk(batch: Batch) -> None:
        batch.transaction.effects.append("junk")  # type: ignore[arg-type]  # as it happens

    with pytest.raises(SimulationFailure, match=r"only put, update, delete and condition add effects, not \['junk'\]"):
        simulate(junk, seeds=SEEDS)


def misspelled(batch: Batch) -> None:
    print(bacth)  # type: ignore[name-defined]  # noqa: F821  # as it happens
    del batch


def wants_a_field(batch: Batch) -> int:
    return sum(message["amount"] for message in batch)


def overclaims(batch: Batch) -> int:
    del batch
    return 10**9


def says_ok(batch: Batch) -> str:
    del batch
    return "ok"


def writes_nan(batch: Batch) -> None:
    batch.transaction.put("Paid", {"id": batch.queue, "amount": float("nan")})


def claims_too_much_of_a_part(batch: Batch) -> bool:
    return len(batch) > 0


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (misspelled, "NameError: name 'bacth' is not defined"),
        (wants_a_field, "KeyError: 'amount'"),
        (overclaims, "HandlerProblem: the handler says it did everything up to 1000000000"),
        (says_ok, "HandlerProblem: the handler returned 'ok'"),
        (claims_too_much_of_a_part, "HandlerProblem: the handler returned True"),
        (writes_nan, "EffectRefused: .*Put on table 'Paid of \\w+': Item: amount: nan"),
    ],
)
def test_a_handler_that_gets_no_message_through_fails_with_its_first_error(handler: Any, said: str) -> None:
    with pytest.raises(SimulationFailure, match=said) as caught:
        simulate(handler, seeds=SEEDS)
    assert "no message got through" in caught.value.problem
    assert caught.value.command.startswith("simulate(handler, start=")
    assert caught.value.lines


def test_a_field_that_is_missing_is_said_to_come_from_fields() -> None:
    with pytest.raises(SimulationFailure, match=r"simulate\(handler, fields=lambda queue, seq: \{'amount': \.\.\.\}\)"):
        simulate(wants_a_field, seeds=SEEDS)
    with pytest.raises(SimulationFailure) as caught:
        simulate(overclaims, seeds=SEEDS)
    assert "fields=" not in str(caught.value)

    def sums_up(batch: Batch) -> None:
        assert wants_a_field(batch) >= 0

    assert simulate(sums_up, seeds=SEEDS, fields=lambda _, seq: {"amount": abs(seq)}).met["messages done"] > 50


def test_a_handler_that_is_in_trouble_now_and_then_passes() -> None:
    calls = [0]

    def shaky(batch: Batch) -> None:
        calls[0] += 1
        if calls[0] % 3 == 0:
            raise TryLater(f"no answer for {batch.queue}")
        if calls[0] % 5 == 0:
            raise ValueError("no")

    assert simulate(shaky, seeds=SEEDS).met["handler failures"] > 20


@pytest.mark.parametrize("error", [ZeroDivisionError("division by zero"), KeyError("x")], ids=repr)
def test_a_check_that_breaks_names_the_seed(error: Exception) -> None:
    def check(given: Any) -> None:
        del given
        raise error

    with pytest.raises(SimulationFailure, match=f"seed 7: your check: {type(error).__name__}: ") as caught:
        simulate(lambda _: None, start=7, seeds=2, check=check)
    assert caught.value.command == "simulate(handler, start=7, seeds=1)"
    assert caught.value.__cause__ is error
