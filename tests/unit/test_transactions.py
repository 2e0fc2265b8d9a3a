"""Effects in a batch's transaction: with the checkpoint or not at all, cut to what fits, each exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import Batch, EffectRefused, InvalidInput, PartlyDone, Transaction, TransactionTooLarge
from stream_sort.model.batch import Effect
from stream_sort.stores.effects import MAX_EFFECTS, actions_of
from tests.consumers import Office, control_of, ends, fail, fail_twice, give_control, wake

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def office() -> Office:
    return Office()


def happened(office: Office) -> list[str]:
    effects = office.sorter.stores.control("Control").checkpoints._control.effects  # type: ignore[attr-defined]
    return [effect.request["Item"]["id"] for effect in effects]


def writes(batch: Batch) -> None:
    for seq in batch.seqs:
        batch.transaction.put("Effects", {"id": str(seq)})


def test_a_transaction_collects_writes_as_dynamodb_names_them() -> None:
    transaction = Transaction()
    transaction.put("T", {"id": "a"}, ConditionExpression="attribute_not_exists(id)")
    transaction.update("T", {"id": "b"}, "ADD n :n", ExpressionAttributeValues={":n": 5})
    transaction.delete("T", {"id": "c"}, ExpressionAttributeNames={"#n": "n"})
    transaction.condition("T", {"id": "d"}, "attribute_exists(id)")
    assert len(transaction) == 4
    assert transaction.effects == [
        Effect("Put", "T", {"Item": {"id": "a"}, "ConditionExpression": "attribute_not_exists(id)"}),
        Effect(
            "Update",
            "T",
            {"Key": {"id": "b"}, "UpdateExpression": "ADD n :n", "ExpressionAttributeValues": {":n": 5}},
        ),
        Effect("Delete", "T", {"Key": {"id": "c"}, "ExpressionAttributeNames": {"#n": "n"}}),
        Effect("ConditionCheck", "T", {"Key": {"id": "d"}, "ConditionExpression": "attribute_exists(id)"}),
    ]


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (lambda it: it.put("", {"id": "a"}), "named by text"),
        (lambda it: it.delete(None, {"id": "a"}), "named by text"),
        (lambda it: it.put("T", ["id", "a"]), "Item is a dict"),
        (lambda it: it.update("T", "a", "ADD n :n"), "Key is a dict"),
        (lambda it: it.delete("T", {1: "a"}), "Key is a dict"),
        (lambda it: it.delete("T", {"id": "a"}, ReturnValues="ALL_OLD"), "'ReturnValues'"),
    ],
    ids=["no table", "None", "a list", "a text", "an int", "an unknown keyword"],
)
def test_i9_what_can_be_no_effect_is_the_handlers_error_at_once(
    office: Office, add: Callable[[Transaction], None], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        add(Transaction())
    office.put(0)
    consumer = office.hire(lambda batch: add(batch.transaction))
    assert ends(wake(consumer)) == ["parked"]
    assert consumer.parked()[0].error.startswith("InvalidInput: transaction")


def test_i4_effects_of_a_failed_commit_do_not_happen_and_come_again(office: Office) -> None:
    office.put(0, 1)
    consumer = office.hire(writes)
    store = office.interrupt(consumer)
    store.before["commit"] = fail_twice(store)
    assert ends(wake(consumer)) == ["failed"]
    assert happened(office) == []
    wake(consumer)
    assert happened(office) == ["0", "1"]


def test_i4_a_run_that_dies_after_its_commit_repeats_nothing(office: Office) -> None:
    office.put(0, 1)
    consumer = office.hire(writes)
    store = office.interrupt(consumer)
    # Nor can it be looked at any more.
    store.after["commit"] = [lambda: store.before.update(standing=[fail]), *fail_twice(store)]
    assert ends(wake(consumer)) == ["failed"]
    wake(consumer)
    assert happened(office) == ["0", "1"]


def test_i4_a_commit_whose_reply_was_lost_is_known_to_be_done(office: Office) -> None:
    office.put(0, 1)
    consumer = office.hire(writes)
    office.interrupt(consumer).after["commit"] = [fail]
    assert ends(wake(consumer)) == ["done"]
    assert happened(office) == ["0", "1"]


class LateThenRefused:
    """A control table whose first transaction is not answered, and the next one refused; then the first one lands.

    Both may be tries within one call.
    """

    def __init__(self, store: Any, *, one_call: bool) -> None:
        self._store = store
        self._one_call = one_call
        self._late: tuple[Any, ...] = ()
        self._transactions = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, old: Any, new: Any, effects: Any = (), dead: Any = None) -> Any:
        self._transactions += bool(effects)
        if effects and self._transactions == 1:
            self._late = (old, new, effects, dead)
            if not self._one_call:
                fail()
        if effects and self._transactions == (1 if self._one_call else 2):
            raise EffectRefused("q", ["Put on table 'Effects'"])
        if self._late:
            late, self._late = self._late, ()
            assert self._store.commit(*late).won
        return self._store.commit(old, new, effects, dead)


@pytest.mark.parametrize("one_call", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2])
def test_i4_effects_happen_once_although_they_land_after_a_second_write_was_refused(
    office: Office, batch_size: int, *, one_call: bool
) -> None:
    office.put(*range(4))
    consumer = office.hire(writes, batch_size=batch_size)
    late = LateThenRefused(control_of(consumer), one_call=one_call)
    give_control(consumer, late)
    wake(consumer)
    assert (happened(office), consumer.parked()) == (["0", "1", "2", "3"], [])


def test_effects_of_a_failed_handler_do_not_happen(office: Office) -> None:
    def handle(batch: Batch) -> None:
        writes(batch)
        raise ValueError("after all")

    office.put(0)
    wake(office.hire(handle))
    assert happened(office) == []


def test_chunks_are_cut_until_their_effects_fit(office: Office) -> None:
    sizes = []

    def handle(batch: Batch) -> None:
        sizes.append(len(batch))
        for message in batch:
            for number in range(30):
                batch.transaction.put("Effects", {"id": f"{message['seq']}.{number}"})

    office.put(*range(12))
    (served,) = wake(office.hire(handle))
    assert sizes == [12, 6, 3, 3, 3, 3]
    assert (served.delivered, served.handler_failures, served.ended) == (12, 0, "done")
    assert happened(office) == [f"{seq}.{number}" for seq in range(12) for number in range(30)]


def test_two_messages_for_one_item_go_one_by_one(office: Office) -> None:
    batches = []

    def handle(batch: Batch) -> None:
        batches.append(batch.seqs)
        for seq in batch.seqs:
            batch.transaction.update(
                "Totals", {"id": batch.queue}, "ADD total :n", ExpressionAttributeValues={":n": seq}
            )

    office.put(*range(4))
    assert ends(wake(office.hire(handle))) == ["done"]
    assert batches == [(0, 1, 2, 3), (0, 1), (0,), (1,), (2,), (3,)]
    effects = office.sorter.stores.control("Control").checkpoints._control.effects  # type: ignore[attr-defined]
    assert [effect.request["ExpressionAttributeValues"][":n"] for effect in effects] == [0, 1, 2, 3]


def test_one_message_with_too_many_effects_parks_its_queue(office: Office) -> None:
    def handle(batch: Batch) -> None:
        for seq in batch.seqs:
            for number in range(MAX_EFFECTS + 1 if seq == 1 else 1):
                batch.transaction.put("Effects", {"id": f"{seq}.{number}"})

    office.put(0, 1, 2)
    consumer = office.hire(handle)
    assert ends(wake(consumer)) == ["parked"]
    assert "99 effects in one transaction; there may be 98" in consumer.parked()[0].error
    assert happened(office) == ["0.0"]


def test_a_refused_effect_parks_its_queue_at_its_own_message(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.put(0, 1, 2)
    consumer = office.hire(writes)
    store = office.interrupt(consumer)
    commit = store.store.commit

    def refuses_1(old: Any, new: Any, effects: Any = (), dead: Any = None) -> Any:
        if any(effect.request["Item"]["id"] == "1" for effect in effects):
            raise EffectRefused("q", ["Put on table 'Effects'"])
        return commit(old, new, effects, dead)

    monkeypatch.setattr(store, "commit", refuses_1, raising=False)
    (served,) = wake(consumer)
    assert (served.ended, served.delivered, happened(office)) == ("parked", 1, ["0"])
    assert consumer.parked()[0].error.startswith("EffectRefused")


def test_i4_the_finished_part_of_a_batch_with_effects_comes_again_by_itself(office: Office) -> None:
    given = []

    def handle(batch: Batch) -> int:
        given.append(batch.seqs)
        writes(batch)
        return min(batch.seqs[0] + 2, batch.seqs[-1])

    office.put(*range(5))
    (served,) = wake(office.hire(handle))
    assert given == [(0, 1, 2, 3, 4), (0, 1, 2), (3, 4)]
    assert (served.delivered, served.handler_failures) == (5, 0)
    assert happened(office) == ["0", "1", "2", "3", "4"]


def test_i4_partly_done_with_effects_applies_those_of_the_finished_part_once(office: Office) -> None:
    def handle(batch: Batch) -> None:
        for seq in batch.seqs:
            if seq == 2:
                raise PartlyDone(max(1, batch.after)) from ValueError("poison 2")
            batch.transaction.put("Effects", {"id": str(seq)})

    office.put(*range(5))
    consumer = office.hire(handle)
    assert ends(wake(consumer)) == ["parked"]
    assert (happened(office), consumer.checkpoint("q"), consumer.parked()[0].seq) == (["0", "1"], 1, 2)


def test_a_put_and_others_on_one_item_are_seen_where_their_keys_are_known() -> None:
    transaction = Transaction()
    transaction.update("T", {"a": 1, "b": 2}, "SET c = d")
    transaction.delete("T", {"a": 1, "b": 3})
    transaction.delete("Other", {"a": 1, "b": 2})
    actions_of("q", transaction.effects)
    transaction.condition("T", {"b": 2, "a": 1}, "attribute_exists(a)")
    with pytest.raises(TransactionTooLarge, match="two effects on the item"):
        actions_of("q", transaction.effects)
