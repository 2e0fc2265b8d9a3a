"""Whatever a handler does to what it is given: its own queue is parked, the others are served, no checkpoint lies."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

import pytest

from stream_sort import Batch, HandlerProblem, OrderedConsumer, PartlyDone, SettingsError
from stream_sort.model.batch import Effect
from stream_sort.stores.effects import actions_of
from tests.consumers import Office, ends, wake

if TYPE_CHECKING:
    from collections.abc import Callable


def nested(depth: int) -> str:
    return "(" * depth + "attribute_exists(id)" + ")" * depth


class Silent(int):
    """An int that cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("no")


class Unshown:
    """A thing that cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("no")


class NoWord(PartlyDone):
    """Says nothing of how far it got."""

    def __init__(self) -> None:
        Exception.__init__(self)


class Unclassed:
    """An answer of which not even the class can be read."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("not connected")


class UnclassedError(ValueError):
    """An error of which not even the class can be read."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("not connected")


class LazyPartlyDone(PartlyDone):
    """Cannot say how far it got."""

    def __init__(self) -> None:
        Exception.__init__(self)

    @property
    def last_done(self) -> int:  # type: ignore[override]
        raise RuntimeError("not connected")


class UncausedError(ValueError):
    """An error that cannot say what caused it."""

    @property
    def __cause__(self) -> BaseException | None:  # type: ignore[override]
        raise RuntimeError("not connected")


class UncausedPartlyDone(PartlyDone):
    """Gets nowhere, and cannot say why."""

    __cause__ = UncausedError.__cause__  # type: ignore[assignment]


class FalseError(ValueError):
    """An error that cannot say whether it is true."""

    def __bool__(self) -> bool:
        raise RuntimeError("not connected")


class Nameless(type):
    """The class of a class that does not tell its name."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("not connected")


class NamelessError(ValueError, metaclass=Nameless):
    """An error whose class does not tell its name."""


class NamelessSilent(int, metaclass=Nameless):
    """An answer of such a class that cannot be shown."""

    __repr__ = Silent.__repr__


class NamelessMute(NamelessError):
    """Such an error that cannot be told, either."""

    def __str__(self) -> str:
        raise NamelessError("no words")

    __repr__ = __str__


class Unencoded(str):
    """A text that cannot be encoded, at the first or at a later time."""

    __slots__ = ("_times",)

    def __new__(cls, text: str, times: int = 0) -> Self:
        made = super().__new__(cls, text)
        made._times = times
        return made

    def encode(self, *_: Any) -> bytes:
        self._times -= 1
        if self._times < 0:
            raise RuntimeError("not connected")
        return str.__str__(self).encode()


class Unread(dict[str, Any]):
    """A map whose entries cannot be read."""

    def items(self) -> Any:
        raise RuntimeError("not connected")


class Untold(float):
    """A number that does not say which."""

    def __repr__(self) -> str:
        return "about one"


class FalseBool:
    """Says that it is a bool, and is none."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return bool


def raises(error: BaseException) -> None:
    raise error


def raises_from(error: BaseException, cause: BaseException) -> None:
    raise error from cause


@pytest.fixture
def office() -> Office:
    office = Office()
    office.put(0)
    office.put(0, queue="other")
    return office


def served_with(office: Office, act: Callable[[Batch], Any]) -> OrderedConsumer:
    """A consumer whose handler does something in queue q, after one event for both queues."""
    consumer = office.hire(lambda batch: act(batch) if batch.queue == "q" else None)
    assert ends(wake(consumer, "q", "other")) == ["parked", "done"]
    assert (consumer.checkpoint("q"), consumer.checkpoint("other")) == (-1, 0)
    return consumer


@pytest.mark.parametrize("names", [["#i"], {"#i": [1]}, {5: "a"}, None, {"#i": "\ud800"}], ids=ascii)
def test_names_that_are_none_park_the_queue_and_no_other(office: Office, names: Any) -> None:
    def act(batch: Batch) -> None:
        batch.transaction.put("T", {"id": "a"}, ConditionExpression="#i = id", ExpressionAttributeNames=names)

    assert "ExpressionAttributeNames" in served_with(office, act).parked()[0].error


@pytest.mark.parametrize("values", [[":i"], {5: "a"}, None], ids=ascii)
def test_values_that_are_none_park_the_queue_and_no_other(office: Office, values: Any) -> None:
    def act(batch: Batch) -> None:
        batch.transaction.put("T", {"id": "a"}, ConditionExpression="id = :i", ExpressionAttributeValues=values)

    assert "ExpressionAttributeValues" in served_with(office, act).parked()[0].error


@pytest.mark.parametrize(
    "act",
    [
        lambda batch: batch.transaction.put("T", {"id": "a"}, ConditionExpression=5),
        lambda batch: batch.transaction.update("T", {"id": "a"}, ["ADD n :n"]),
        lambda batch: batch.transaction.condition("T", {"id": "a"}, None),
        lambda batch: batch.transaction.delete("T\ud800", {"id": "a"}),
    ],
    ids=["condition", "update", "check", "table"],
)
def test_an_expression_that_is_no_text_parks_the_queue_and_no_other(
    office: Office, act: Callable[[Batch], None]
) -> None:
    assert served_with(office, act).parked()[0].error.startswith("InvalidInput: transaction")


@pytest.mark.parametrize(("depth", "said"), [(2_000, "nested too deep"), (5_000, "4,096 bytes of an expression")])
def test_a_condition_that_is_too_deep_or_too_long_is_refused(office: Office, depth: int, said: str) -> None:
    deep = nested(depth)
    consumer = served_with(office, lambda batch: batch.transaction.put("T", {"id": "a"}, ConditionExpression=deep))
    assert consumer.parked()[0].error.startswith("EffectRefused")
    assert said in consumer.parked()[0].error


@pytest.mark.parametrize(
    ("field", "value"),
    [("transaction", None), ("seqs", ()), ("through", 10**6), ("after", -1), ("messages", ()), ("queue", "other")],
)
def test_a_batch_cannot_be_changed(office: Office, field: str, value: Any) -> None:
    consumer = served_with(office, lambda batch: setattr(batch, field, value))
    assert field in consumer.parked()[0].error


def test_a_checkpoint_never_passes_the_position_whatever_becomes_of_the_batch(office: Office) -> None:
    def act(batch: Batch) -> None:
        for field, value in {"after": -5, "through": 10**6, "seqs": (), "transaction": None}.items():
            object.__setattr__(batch, field, value)

    consumer = office.hire(act)
    assert ends(wake(consumer, "q", "other")) == ["done", "done"]
    assert consumer.checkpoint("q") == 0


@pytest.mark.parametrize(
    "junk",
    [
        "junk",
        Effect("Put", "T", None),  # type: ignore[arg-type]
        Effect("Put", "T", {"Key": {"id": "a"}}),
        Effect("Burn", "T", {"Key": {"id": "a"}}),
        Effect("Put", 5, {"Item": {"id": "a"}}),  # type: ignore[arg-type]
    ],
    ids=["text", "no request", "no item", "no kind", "no table"],
)
def test_an_effect_that_is_none_parks_the_queue_and_no_other(office: Office, junk: Any) -> None:
    consumer = served_with(office, lambda batch: batch.transaction.effects.append(junk))
    assert consumer.parked()[0].error.startswith("HandlerProblem: transaction")


@pytest.mark.parametrize("effects", [None, 5, ["junk"]])
def test_effects_that_are_no_list_of_effects_park_the_queue_and_no_other(office: Office, effects: Any) -> None:
    served_with(office, lambda batch: object.__setattr__(batch.transaction, "effects", effects))


def test_a_dead_letter_with_junk_effects_stays_dead(office: Office) -> None:
    consumer = office.hire(
        lambda batch: batch.transaction.effects.append("junk"),  # type: ignore[arg-type]
        on_poison="dead_letter",
        max_attempts=1,
    )
    wake(consumer)
    assert [one.seq for one in consumer.dead_letters()] == [0]
    assert consumer.redrive("q") == 0
    assert [one.attempts for one in consumer.dead_letters()] == [2]


@pytest.mark.parametrize(
    "act",
    [
        lambda _: Silent(99),
        lambda _: raises(SystemExit(Unshown())),
        lambda _: raises(NoWord()),
        lambda _: raises(asyncio.CancelledError("enough")),
    ],
    ids=["an int", "an exit", "partly done", "cancelled"],
)
def test_an_answer_that_cannot_be_shown_parks_the_queue_and_no_other(
    office: Office, act: Callable[[Batch], Any]
) -> None:
    assert served_with(office, act).parked()[0].error.startswith(HandlerProblem.__name__)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda _: Unclassed(), "HandlerProblem: what the handler answered or raised cannot be read: RuntimeError"),
        (lambda _: raises(UnclassedError("no")), "HandlerProblem: what the handler answered or raised cannot be read"),
        (lambda _: raises(LazyPartlyDone()), "HandlerProblem: what the handler answered or raised cannot be read"),
        (lambda _: raises(UncausedError("no such account")), "UncausedError: no such account"),
        (lambda batch: raises(UncausedPartlyDone(batch.after)), "UncausedPartlyDone: the handler got as far as"),
        (lambda batch: raises_from(PartlyDone(batch.after), FalseError("no")), "PartlyDone: the handler got as far as"),
        (lambda batch: raises_from(PartlyDone(batch.after), UnclassedError("no")), "PartlyDone: the handler got as"),
        (lambda batch: batch.transaction.effects.append(Unclassed()), "HandlerProblem: what the handler answered"),
        (lambda _: raises(NamelessError("no such account")), "NamelessError: no such account"),
        (lambda _: raises(NamelessMute()), "NamelessMute: <NamelessError>"),
        (lambda _: raises_from(ValueError("no"), NamelessError("late")), "ValueError: no (NamelessError: late)"),
        (lambda _: raises(SystemExit(NamelessMute())), "HandlerProblem: the handler ended the process: SystemExit(<"),
        (lambda _: NamelessSilent(99), "HandlerProblem: the handler says it did everything up to <NamelessSilent: "),
    ],
    ids=[
        *("an answer", "an error", "partly done", "a cause", "partly, a cause", "a false cause", "its class"),
        *("effects", "its name", "its name and words", "the name of a cause", "the name of a code", "of an answer"),
    ],
)
def test_what_cannot_be_read_of_a_handler_is_an_attempt_at_its_message_and_no_bug_of_ours(
    office: Office, act: Callable[[Batch], Any], said: str
) -> None:
    office.put(1)
    consumer = office.hire(
        lambda batch: act(batch) if 0 in batch.seqs else None, max_attempts=2, on_poison="dead_letter"
    )
    for _ in range(3):
        wake(consumer)
        office.clock.move(1_000)
    assert ([(one.seq, one.attempts) for one in consumer.dead_letters()], consumer.checkpoint("q")) == ([(0, 2)], 1)
    assert consumer.dead_letters()[0].error.startswith(said)
    assert consumer.redrive("q") == 0
    assert [one.attempts for one in consumer.dead_letters()] == [3]


def put_of(value: Any) -> Effect:
    return Effect("Put", "T", {"Item": {"id": "a", "value": value}})


@pytest.mark.parametrize(
    "effect",
    [
        put_of(Unencoded("x")),
        put_of([{"deep": Unencoded("x")}]),
        put_of(Unclassed()),
        put_of(Unread(a=1)),
        put_of(Untold(1.0)),
        put_of(FalseBool()),
        put_of(NamelessError()),
        Effect("Put", "T", {"Item": Unread(id="a")}),
        Effect("Put", "T", {"Item": {"id": "a", Unencoded("name"): 1}}),
        Effect("Delete", "T", {"Key": {"id": Unencoded("a")}}),
        Effect("Delete", "T", {"Key": {"id": "a"}, "ConditionExpression": Unencoded("attribute_exists(id)")}),
    ],
    ids=["text", "deep", "class", "map", "number", "bool", "no name", "item", "name", "key", "expression"],
)
def test_an_effect_that_cannot_be_read_is_an_attempt_at_its_message_and_no_bug_of_ours(
    office: Office, effect: Effect
) -> None:
    consumer = office.hire(
        lambda batch: batch.transaction.effects.append(effect), max_attempts=2, on_poison="dead_letter"
    )
    for _ in range(3):
        wake(consumer)
        office.clock.move(1_000)
    assert [(one.seq, one.attempts) for one in consumer.dead_letters()] == [(0, 2)]
    assert consumer.dead_letters()[0].error.startswith("EffectRefused: ")
    assert f"{effect.kind} on table 'T'" in consumer.dead_letters()[0].error
    assert consumer.redrive("q") == 0
    assert [one.attempts for one in consumer.dead_letters()] == [3]


def test_an_effect_that_can_be_read_once_is_written_as_it_was_read() -> None:
    """Whoever reads it again, such as the client of AWS, must not be the one who fails."""
    words = {"#id": Unencoded("id"), "#other": "other"}
    condition = {"ConditionExpression": Unencoded("attribute_exists(#id)", times=1), "ExpressionAttributeNames": words}
    effects = [
        put_of(Unencoded("x", times=1)),
        Effect(Unencoded("Delete"), Unencoded("T"), {"Key": {"id": Unencoded("b", times=1)}, **condition}),
    ]
    put, delete = actions_of("q", effects)
    request = delete["Delete"]
    read = [*put["Put"]["Item"]["value"].values(), *request["Key"]["id"].values(), *delete, request["TableName"]]
    read += [request["ConditionExpression"], *request["ExpressionAttributeNames"].values()]
    assert read == ["x", "b", "Delete", "T", "attribute_exists(#id)", "id", "other"]
    assert {type(text) for text in read} == {str}


@pytest.mark.parametrize("handler", [lambda: None, lambda one, two: None, lambda *, batch: None])  # noqa: ARG005
def test_a_handler_that_does_not_take_one_batch_is_refused_at_once(office: Office, handler: Any) -> None:
    with pytest.raises(SettingsError, match="it must take one batch"):
        office.hire(handler)


def may_take_more(batch: Batch, context: Any = None) -> None:
    assert batch is not context


def takes_any(*parts: Any) -> None:
    assert parts


@pytest.mark.parametrize("handler", [may_take_more, takes_any, [].extend, dict])
def test_a_handler_that_takes_a_batch_and_may_take_more_is_one(office: Office, handler: Any) -> None:
    office.hire(handler)
