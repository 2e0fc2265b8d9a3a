"""A redrive that somebody asks of the deployed function: no code is needed to get a queue going again."""

from __future__ import annotations

from typing import Any

import pytest

from stream_sort import InvalidInput, NotParked
from stream_sort.aws_lambda.redrives import RedriveRequest, redrive, wanted_by
from tests.consumers import Clerk, Office, wake


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ({"redrive": "parked"}, RedriveRequest()),
        ({"redrive": {"queue": "out"}}, RedriveRequest("out")),
        ({"redrive": {"queue": "out", "seq": None}}, RedriveRequest("out")),
        ({"redrive": {"queue": "out", "seq": 7}}, RedriveRequest("out", 7)),
        ({"Records": []}, None),
        ([{"redrive": "parked"}], None),
        (None, None),
    ],
)
def test_a_redrive_is_known_by_its_own_mark(event: Any, wanted: RedriveRequest | None) -> None:
    assert wanted_by(event) == wanted


@pytest.mark.parametrize(
    "event",
    [
        {"redrive": None},
        {"redrive": "all"},
        {"redrive": "out"},
        {"redrive": {}},
        {"redrive": {"seq": 7}},
        {"redrive": {"queue": "out", "seqs": [7]}},
        {"redrive": ["out"]},
        {"redrive": "parked", "Records": []},
        {"redrive": {"queue": 7}},
        {"redrive": {"queue": ""}},
        {"redrive": {"queue": "out", "seq": "7"}},
        {"redrive": {"queue": "out", "seq": True}},
        {"redrive": {"queue": "out", "seq": 2**70}},
    ],
)
def test_i9_a_redrive_of_another_shape_is_named(office: Office, event: Any) -> None:
    consumer = office.hire(Clerk())
    with pytest.raises(InvalidInput, match=r"redrive|queue|seq"):
        consumer.lambda_handler(event, None)


def test_an_event_that_is_nothing_at_all_is_told_of_the_redrive(office: Office) -> None:
    with pytest.raises(InvalidInput, match='"redrive": "parked"'):
        office.hire(Clerk()).lambda_handler({"queue": "q"}, None)


def test_one_queue_goes_on_from_the_message_that_failed(office: Office) -> None:
    office.put(*range(4))
    clerk = Clerk({2})
    consumer = office.hire(clerk, max_attempts=1)
    wake(consumer)
    clerk.poison.clear()
    answer = consumer.lambda_handler({"redrive": {"queue": "q"}}, None)
    assert answer == {"queues": 1, "delivered": 2, "failed": 0, "errors": [], "left": 0}
    assert clerk.seqs() == [0, 1, 2, 3]


def test_what_fails_again_is_told(office: Office) -> None:
    office.put(*range(4))
    consumer = office.hire(Clerk({2}), max_attempts=1)
    wake(consumer)
    answer = consumer.lambda_handler({"redrive": {"queue": "q"}}, None)
    (error,) = answer["errors"]
    assert (answer["queues"], answer["delivered"], answer["failed"]) == (1, 0, 1)
    assert error == {"queue": "q", "seq": 2, "error": "ValueError: poison 2", "attempts": 1, "next_try": None}


def test_a_queue_that_needs_no_redrive_is_said_so(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk())
    wake(consumer)
    with pytest.raises(NotParked):
        consumer.lambda_handler({"redrive": {"queue": "q"}}, None)
    assert consumer.lambda_handler({"redrive": "parked"}, None)["queues"] == 0


def test_all_parked_queues_are_redriven_and_one_that_fails_stops_no_other(office: Office) -> None:
    clerk = Clerk({1})
    consumer = office.hire(clerk, max_attempts=1)
    for queue in "abc":
        office.put(0, 1, 2, queue=queue)
        wake(consumer, queue)
    office.lose_cursor("a")
    clerk.poison.clear()
    answer = consumer.lambda_handler({"redrive": "parked"}, None)
    assert (answer["queues"], answer["delivered"], answer["failed"], answer["left"]) == (3, 4, 1, 0)
    assert (answer["errors"][0]["queue"], answer["errors"][0]["error"][:10]) == ("a", "CursorLost")
    assert clerk.seqs("b") == clerk.seqs("c") == [0, 1, 2]


def test_dead_letters_of_a_queue_are_redriven_with_it_but_not_with_all_parked(office: Office) -> None:
    office.put(0, 1)
    clerk = Clerk({0})
    consumer = office.hire(clerk, max_attempts=1, on_poison="dead_letter")
    wake(consumer)
    clerk.poison.clear()
    assert consumer.lambda_handler({"redrive": "parked"}, None)["delivered"] == 0
    assert consumer.lambda_handler({"redrive": {"queue": "q", "seq": 0}}, None)["delivered"] == 1
    assert consumer.dead_letters() == []


def test_when_time_is_short_the_rest_is_left_and_counted(office: Office) -> None:
    clerk = Clerk({0})
    consumer = office.hire(clerk, max_attempts=1)
    for queue in "abcd":
        office.put(0, queue=queue)
        wake(consumer, queue)
    clerk.poison.clear()
    # Each queue asks twice or more while it is at work.
    left = [100.0, *[90.0] * 4, *[1.0] * 99]
    done = redrive(consumer, RedriveRequest(), lambda: left.pop(0))
    assert done.left > 0
    assert done.queues + done.left == 4
    assert len(consumer.parked()) == done.left


def test_a_long_queue_is_handed_to_a_wake_when_time_is_short(office: Office) -> None:
    office.put(*range(6))
    clerk = Clerk({0})
    consumer = office.hire(clerk, max_attempts=1, batch_size=1)
    wake(consumer)
    clerk.poison.clear()
    office.waker.sent.clear()
    left = [100.0, 90.0, 90.0, *[1.0] * 99]
    done = redrive(consumer, RedriveRequest("q"), lambda: left.pop(0))
    assert 0 < done.delivered < 6
    assert (office.waker.sent, consumer.parked()) == ([("q", 0.0)], [])
