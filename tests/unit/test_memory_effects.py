"""What no table would take is not committed in memory either; what memory cannot tell, it says."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import Batch, SettingsError, Transaction
from tests.consumers import Office, ends, wake

if TYPE_CHECKING:
    from collections.abc import Callable

Effects = "Callable[[Transaction], object]"


@pytest.fixture
def office() -> Office:
    office = Office()
    office.put(0)
    return office


def outcome(office: Office, *adds: Callable[[Transaction], object]) -> str:
    """What becomes of one message whose handler writes these effects."""

    def handle(batch: Batch) -> None:
        for add in adds:
            add(batch.transaction)

    consumer = office.hire(handle, f"c{len(office.sorter.stores.control('Control').subscriptions.consumers())}")
    if ends(wake(consumer)) == ["done"]:
        return "done"
    return consumer.parked()[0].error


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (lambda it: it.put("T", {"id": "x", "v": float("nan")}), "Put on table 'T': Item: v: nan"),
        (lambda it: it.put("T", {"id": "x", "v": [float("inf")]}), "inf"),
        (lambda it: it.put("T", {"id": "x", "v": object()}), "a value of type object"),
        (lambda it: it.put("T", {"id": "x", "v": 10**40 + 1}), "38 digits"),
        (lambda it: it.put("T", {"id": "x", "v": "\ud800"}), "text"),
        (lambda it: it.put("T", {"id": "x", "v": set()}), "an empty set"),
        (lambda it: it.put("T", {"id": "x", "v": {1, "a"}}), "a set of"),
        (lambda it: it.put("T", {"id": "x", "v": {1: "a"}}), "name"),
        (lambda it: it.put("T", {}), "no item is empty"),
        (lambda it: it.put("T", {"id": "x", "v": "y" * 500_000}), "500,004 bytes; an item may have 409,600"),
        (lambda it: it.delete("T", {"id": True}), "a key is text, a number or bytes"),
        (lambda it: it.delete("T", {"id": ""}), "a key is not empty"),
        (lambda it: it.delete("T", {}), "a key has one or two attributes"),
        (lambda it: it.delete("T", {"a": 1, "b": 2, "c": 3}), "a key has one or two attributes"),
        (
            lambda it: it.update("T", {"id": "x"}, "SET a = :v", ExpressionAttributeValues={":v": float("nan")}),
            "Update on table 'T': ExpressionAttributeValues: :v: nan",
        ),
    ],
)
def test_what_no_table_holds_is_refused(office: Office, add: Callable[[Transaction], object], said: str) -> None:
    told = outcome(office, add)
    assert told.startswith("EffectRefused")
    assert said in told


@pytest.mark.parametrize(
    "value",
    ["", b"", 0, -1.5, 1e-100, 1.0, Decimal("1.10"), None, True, [], {}, {"a": {"b": [1]}}, {1, 2}, {"a"}, (1, 2)],
    ids=repr,
)
def test_what_a_table_holds_is_taken(office: Office, value: Any) -> None:
    assert outcome(office, lambda it: it.put("T", {"id": "x", "v": value})) == "done"


@pytest.mark.parametrize(
    "adds",
    [
        [lambda it: it.put("T", {"id": "x"}), lambda it: it.put("T", {"id": "x"})],
        [lambda it: it.put("T", {"id": 1}), lambda it: it.put("T", {"id": 1.0})],
        [lambda it: it.put("T", {"id": "x", "v": 1}), lambda it: it.delete("T", {"id": "x"})],
        [
            lambda it: it.put("T", {"id": "x", "v": 1}),
            lambda it: it.put("T", {"id": "x", "v": 2}),
            lambda it: it.delete("T", {"id": "y"}),
        ],
        [
            lambda it: it.put("T", {"id": "x", "v": 1}, ConditionExpression="attribute_not_exists(id)"),
            lambda it: it.put("T", {"id": "x", "v": 2}, ConditionExpression="attribute_not_exists(id)"),
        ],
    ],
)
def test_one_item_twice_in_a_transaction_is_refused(office: Office, adds: Any) -> None:
    told = outcome(office, *adds)
    assert told.startswith("TransactionTooLarge")
    assert "two effects on the item" in told


def test_more_than_4_mb_in_a_transaction_are_too_much(office: Office) -> None:
    def fill(it: Transaction) -> None:
        for number in range(12):
            it.put("T", {"id": str(number), "v": "y" * 400_000})

    assert "there may be 4,194,304" in outcome(office, fill)


def names_item(it: Transaction) -> None:
    it.put("T", {"id": "x", "n": 5, "s": "abc"})


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("attribute_exists(id)", True),
        ("attribute_not_exists(id)", False),
        ("attribute_not_exists(other)", True),
        ("attribute_exists(other)", False),
        ("n = :five", True),
        ("n <> :five", False),
        ("#n = :five AND s = :abc", True),
        ("n > :five OR attribute_exists(id)", True),
        ("NOT n > :five", True),
        ("NOT (n >= :five AND n <= :five)", False),
        ("n < :five", False),
        ("n < :abc", False),
        ("other = :five", False),
        ("other <> :five", True),
        ("begins_with(s, :ab)", True),
        ("n BETWEEN :one AND :five", True),
        ("n IN (:one, :abc, :five)", True),
        ("n in (:one)", False),
    ],
)
def test_a_condition_is_held_against_what_effects_made_before(office: Office, condition: str, holds: bool) -> None:  # noqa: FBT001  # as data
    assert outcome(office, names_item) == "done"
    values = {":five": 5, ":abc": "abc", ":ab": "ab", ":one": 1}
    used = {
        name: value
        for name, value in values.items()
        if f"{name} " in f"{condition} ".replace(")", " ").replace(",", " ")
    }
    names = {"ExpressionAttributeNames": {"#n": "n"}} if "#n" in condition else {}
    given = ({"ExpressionAttributeValues": used} if used else {}) | names
    told = outcome(office, lambda it: it.condition("T", {"id": "x"}, condition, **given))
    assert (told == "done") is holds
    if not holds:
        assert "EffectRefused" in told
        assert "ConditionCheck on table 'T' (ConditionalCheckFailed" in told


def test_a_refused_transaction_changes_nothing(office: Office) -> None:
    told = outcome(office, names_item, lambda it: it.condition("T", {"id": "nobody"}, "attribute_exists(id)"))
    assert "EffectRefused" in told
    assert outcome(office, lambda it: it.condition("T", {"id": "x"}, "attribute_not_exists(id)")) == "done"


def test_put_if_absent_is_refused_the_second_time(office: Office) -> None:
    def once(it: Transaction) -> None:
        it.put("T", {"id": "x", "at": len(office.waker.sent)}, ConditionExpression="attribute_not_exists(id)")

    assert outcome(office, once) == "done"
    assert "EffectRefused" in outcome(office, once)


@pytest.mark.parametrize(
    ("expression", "condition"),
    [
        ("SET n = :one", "n = :one"),
        ("SET n = n + :one", "n = :six"),
        ("SET n = n - :one, s = :one", "n = :four AND s = :one"),
        ("SET m = if_not_exists(m, :one) + :one", "m = :two"),
        ("ADD n :one", "n = :six"),
        ("ADD m :one SET s = :two", "m = :one AND s = :two"),
        ("REMOVE n", "attribute_not_exists(n) AND attribute_exists(s)"),
    ],
)
def test_updates_count_for_later_conditions(office: Office, expression: str, condition: str) -> None:
    values = {":one": 1, ":two": 2, ":four": 4, ":six": 6}

    def used(text: str) -> dict[str, Any]:
        found = {name: value for name, value in values.items() if name in text}
        return {"ExpressionAttributeValues": found} if found else {}

    outcome(office, names_item)
    assert outcome(office, lambda it: it.update("T", {"id": "x"}, expression, **used(expression))) == "done"
    assert outcome(office, lambda it: it.condition("T", {"id": "x"}, condition, **used(condition))) == "done"


def test_an_update_makes_the_item_and_a_delete_unmakes_it(office: Office) -> None:
    def is_there(it: Transaction) -> None:
        it.condition("T", {"id": "x"}, "attribute_exists(id)")

    outcome(office, lambda it: it.update("T", {"id": "x"}, "ADD n :n", ExpressionAttributeValues={":n": 1}))
    assert outcome(office, is_there) == "done"
    outcome(office, lambda it: it.delete("T", {"id": "x"}))
    assert "EffectRefused" in outcome(office, is_there)


@pytest.mark.parametrize("expression", ["n = :missing", "#missing = :one", "n =", "n = :one extra", "GARBAGE !!"])
def test_a_condition_that_no_table_reads_is_refused(office: Office, expression: str) -> None:
    told = outcome(office, lambda it: it.condition("T", {"id": "x"}, expression, ExpressionAttributeValues={":one": 1}))
    assert told.startswith("EffectRefused")


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (lambda it: it.condition("T", {"id": "x"}, "size(v) > :n", ExpressionAttributeValues={":n": 1}), r"size"),
        (lambda it: it.condition("T", {"id": "x"}, "a.b = :n", ExpressionAttributeValues={":n": 1}), r"a\.b"),
        (lambda it: it.condition("T", {"id": "x"}, "a[0] = :n", ExpressionAttributeValues={":n": 1}), r"a\[0\]"),
        (
            lambda it: it.update("T", {"id": "x"}, "SET a = list_append(a, :n)", ExpressionAttributeValues={":n": []}),
            "list_append",
        ),
    ],
)
def test_what_memory_cannot_evaluate_is_named_and_not_committed(
    office: Office, add: Callable[[Transaction], object], said: str
) -> None:
    consumer = office.hire(lambda batch: add(batch.transaction))
    with pytest.raises(SettingsError, match=said):
        consumer.catch_up("q")
    assert consumer.checkpoint("q") == -1
