"""What a handler's answer means: all done, how far it got, or what cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import Batch, HandlerProblem, PartlyDone
from stream_sort.consume.handler import HandlerAnswer, call_handler
from tests.consumers import Office, ends, wake

if TYPE_CHECKING:
    from collections.abc import Callable

# It covers (9, 15]; 10, 13 and 15 were skipped.
BATCH = Batch("q", 9, 15, ({"seq": 11}, {"seq": 12}, {"seq": 14}), (11, 12, 14))


@pytest.fixture
def office() -> Office:
    return Office()


def raising(error: Exception) -> Callable[[Batch], Any]:
    def handle(_: Batch) -> None:
        raise error

    return handle


def test_no_answer_means_that_all_is_done() -> None:
    assert call_handler(lambda _: None, BATCH) == HandlerAnswer(15)


@pytest.mark.parametrize(
    "answer", [True, False, "14", 14.0, {"last_done": 12}, [], pytest.param(object(), id="object")], ids=repr
)
def test_an_answer_that_is_neither_nothing_nor_a_seq_is_no_success(answer: Any) -> None:
    verdict = call_handler(lambda _: answer, BATCH)
    assert verdict.done == 9
    assert isinstance(verdict.error, HandlerProblem)
    assert "a handler returns None, when all is done, or the last seq it did, as an int" in str(verdict.error)


def test_a_handler_that_answers_with_the_wrong_type_parks_its_queue(office: Office) -> None:
    office.put(0, 1)
    consumer = office.hire(lambda _: {"last_done": 1})
    assert ends(wake(consumer)) == ["parked"]
    assert consumer.checkpoint("q") == -1
    assert "the handler returned {'last_done': 1}" in consumer.parked()[0].error


@pytest.mark.parametrize(("answer", "done"), [(11, 11), (12, 12), (13, 13), (14, 15), (15, 15)])
def test_an_int_is_the_last_seq_done(answer: int, done: int) -> None:
    assert call_handler(lambda _: answer, BATCH) == HandlerAnswer(done)
    error = PartlyDone(answer)
    assert call_handler(raising(error), BATCH) == HandlerAnswer(done, None if done == 15 else error)


@pytest.mark.parametrize("answer", [9, 10])
def test_a_handler_that_did_nothing_failed(answer: int) -> None:
    verdict = call_handler(lambda _: answer, BATCH)
    assert (verdict.done, str(verdict.error)) == (9, "the handler says it did nothing of seqs 11 to 14")
    error = PartlyDone(answer)
    assert call_handler(raising(error), BATCH) == HandlerAnswer(9, error)


@pytest.mark.parametrize("answer", [-1, 0, 3, 8, 16, 10**30])
def test_a_handler_that_did_what_it_was_not_given_failed(answer: int) -> None:
    for handler in (lambda _: answer, raising(PartlyDone(answer))):
        verdict = call_handler(handler, BATCH)
        assert verdict.done == 9
        assert isinstance(verdict.error, HandlerProblem)
        assert f"up to {answer}, but was given seqs 11 to 14" in str(verdict.error)


@pytest.mark.parametrize("last_done", [None, "12", True, 12.0])
def test_partly_done_with_no_seq_failed(last_done: Any) -> None:
    verdict = call_handler(raising(PartlyDone(last_done)), BATCH)
    assert (verdict.done, type(verdict.error)) == (9, HandlerProblem)


@pytest.mark.parametrize("error", [ValueError("no"), KeyError(), RecursionError(), StopIteration()], ids=repr)
def test_any_error_means_that_nothing_is_done(error: Exception) -> None:
    assert call_handler(raising(error), BATCH) == HandlerAnswer(9, error)


def test_the_finished_part_of_a_batch_does_not_come_again(office: Office) -> None:
    given = []

    def half(batch: Batch) -> int:
        given.append(batch.seqs)
        return batch.seqs[len(batch) // 2]

    office.put(*range(8))
    (served,) = wake(office.hire(half))
    assert given == [tuple(range(8)), (5, 6, 7), (7,)]
    assert (served.delivered, served.handler_failures, served.ended) == (8, 0, "done")


def test_partly_done_commits_the_finished_part_and_tries_the_rest(office: Office) -> None:
    given = []

    def stops_at_5(batch: Batch) -> None:
        given.append(batch.seqs)
        if 5 in batch.seqs:
            raise PartlyDone(4) from TimeoutError("slow sink")

    office.put(*range(8))
    consumer = office.hire(stops_at_5)
    (served,) = wake(consumer)
    assert given == [tuple(range(8)), (5,), (5,)]
    assert (served.ended, served.delivered, consumer.checkpoint("q")) == ("parked", 5, 4)
    (parked,) = consumer.parked()
    assert (parked.seq, parked.error) == (5, "PartlyDone: the handler got as far as seq 4 (TimeoutError: slow sink)")


def test_a_handler_that_says_it_did_nothing_parks_its_queue(office: Office) -> None:
    office.put(0, 1)
    consumer = office.hire(lambda batch: batch.after)
    assert ends(wake(consumer)) == ["parked"]
    assert consumer.parked()[0].error == "HandlerProblem: the handler says it did nothing of seqs 0 to 0"


def test_a_handler_may_do_with_its_messages_what_it_likes(office: Office) -> None:
    def spoils(batch: Batch) -> None:
        for message in batch:
            message.clear()
        if batch.attempt == 1:
            raise ValueError("after that")

    seen = []
    office.put(0)
    wake(office.hire(spoils))
    wake(office.hire(seen.extend, "audit"))
    assert seen == [{"queue": "q", "seq": 0}]
