"""`stream-sort parked | dead redrive` beside others who are at work: what they delivered is delivered."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer
from tests.functional.operator_desk import OperatorDesk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort import Batch, StreamSorter

FUNCTION = ("--function", "process-fn")


@pytest.fixture
def desk(sorter: StreamSorter) -> Iterator[OperatorDesk]:
    """Two queues that are parked at seq 1, by a cause that is mended, and a function to redrive them."""
    desk = OperatorDesk(sorter)
    desk.put("ada", 0, 1, 2)
    desk.put("bob", 0, 1)
    desk.clerk.poison = {1}
    desk.deliver("ada", "bob")
    desk.clerk.poison.clear()
    with desk.function():
        yield desk


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Do something after a command has looked at the tables, and before it acts: while it asks."""

    def set_up(act: Callable[[], Any]) -> None:
        def ask(*_: object, **__: object) -> bool:
            act()
            return True

        monkeypatch.setattr("typer.confirm", ask)

    return set_up


def outcomes(text: str) -> dict[str, tuple[str, int, str]]:
    return {one["queue"]: (one["outcome"], one["delivered"], one["by"]) for one in json.loads(text)}


def test_a_redrive_that_the_retry_overtook_is_no_failure(
    desk: OperatorDesk, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    meanwhile(lambda: desk.consumer.catch_up("ada", force=True))
    done = desk.run("parked", "redrive", "--all", *FUNCTION, "--json")
    assert done.exit_code == 0, done.output
    assert outcomes(done.stdout) == {"ada": ("delivered", 0, "another run"), "bob": ("delivered", 1, "this redrive")}


def test_the_screen_says_who_delivered(desk: OperatorDesk, meanwhile: Callable[[Callable[[], Any]], None]) -> None:
    meanwhile(lambda: desk.consumer.catch_up("ada", force=True))
    done = desk.run("parked", "redrive", "--all", *FUNCTION)
    assert done.exit_code == 0, done.output
    assert "delivered by another run" in done.stdout
    assert "nothing is parked" not in done.output


def test_a_queue_that_the_retry_freed_before_the_redrive_looked_keeps_no_other_one_back(desk: OperatorDesk) -> None:
    desk.consumer.catch_up("ada", force=True)
    done = desk.run("parked", "redrive", "ada", "bob", *FUNCTION, "--yes", "--json")
    assert done.exit_code == 0, done.output
    assert outcomes(done.stdout) == {"bob": ("delivered", 1, "this redrive")}
    assert "ada: not parked: consumer billing has done all through seq 2" in done.stderr
    again = desk.run("parked", "redrive", "ada", *FUNCTION, "--yes")
    assert (again.exit_code, again.stdout) == (0, "consumer billing: no parked queue found\n")


def test_what_was_discarded_meanwhile_is_not_delivered(
    desk: OperatorDesk, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    meanwhile(lambda: desk.consumer.discard("ada", 1, "no such account"))
    done = desk.run("parked", "redrive", "ada", *FUNCTION, "--json")
    assert done.exit_code == 1
    (told,) = json.loads(done.stdout)
    assert (told["outcome"], told["error"]) == ("discarded", "discarded meanwhile: no such account")


@pytest.mark.parametrize("to", ["latest", "earliest"])
def test_what_a_reset_passed_over_or_will_bring_again_is_not_delivered(
    desk: OperatorDesk, meanwhile: Callable[[Callable[[], Any]], None], to: str
) -> None:
    meanwhile(lambda: desk.consumer.reset(to, queues=["ada"], force=True))
    done = desk.run("parked", "redrive", "ada", *FUNCTION, "--json")
    assert done.exit_code == 1
    (told,) = json.loads(done.stdout)
    assert told["outcome"] == "not parked"
    assert desk.clerk.seqs("ada") == [0]


def test_a_dead_letter_that_somebody_else_redrove_is_delivered(
    desk: OperatorDesk, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    desk.put("eve", 0, 1, 2, 3)
    desk.bury("eve", 1, 2)
    desk.clerk.poison.clear()
    meanwhile(lambda: desk.consumer.redrive("eve", 1))
    done = desk.run("dead", "redrive", "eve", *FUNCTION, "--json")
    assert done.exit_code == 0, done.output
    told = [(one["seq"], one["outcome"], one["by"]) for one in json.loads(done.stdout)]
    assert told == [(1, "delivered", "another run"), (2, "delivered", "this redrive")]


def as_the_version_before_wrote_it(desk: OperatorDesk, queue: str, seq: int | None = None) -> None:
    """Take from a checkpoint what says which messages the consumer has had; set it elsewhere, if a seq is given."""
    control = desk.sorter.stores.control("Control")
    row = control.checkpoints.standing("billing", queue).checkpoint
    assert row is not None
    at = row.seq if seq is None else seq
    assert control.checkpoints.commit(row, replace(row, version=row.version + 1, seq=at, parked=None, began=None)).won


def test_a_dead_letter_that_somebody_else_redrove_is_delivered_though_the_checkpoint_does_not_tell(
    desk: OperatorDesk, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    desk.put("eve", 0, 1, 2)
    desk.bury("eve", 1)
    desk.clerk.poison.clear()
    as_the_version_before_wrote_it(desk, "eve")
    meanwhile(lambda: desk.consumer.redrive("eve", 1))
    done = desk.run("dead", "redrive", "eve", *FUNCTION, "--json")
    assert done.exit_code == 0, done.output
    assert outcomes(done.stdout) == {"eve": ("delivered", 0, "another run")}


def test_of_a_checkpoint_that_does_not_tell_what_was_delivered_no_reset_is_claimed(
    desk: OperatorDesk, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    meanwhile(lambda: as_the_version_before_wrote_it(desk, "ada", seq=2))
    done = desk.run("parked", "redrive", "ada", *FUNCTION, "--json")
    assert done.exit_code == 1
    (told,) = json.loads(done.stdout)
    known = "not parked any more: consumer billing stands at seq 2; whether it was delivered is not known"
    assert (told["outcome"], told["error"]) == ("not parked", known)


def test_a_redrive_that_loses_its_commit_to_another_one_is_delivered(desk: OperatorDesk) -> None:
    """The other one redrives the same dead letter while this one's handler has it."""
    desk.put("eve", 0, 1, 2)
    desk.bury("eve", 1)
    desk.clerk.poison.clear()
    other = desk.hire("dead_letter")

    def handle(batch: Batch) -> None:
        other.redrive(batch.queue, 1)

    desk.consumer = OrderedConsumer("billing", handle, sorter=desk.sorter)
    done = desk.run("dead", "redrive", "eve", *FUNCTION, "--yes", "--json")
    assert done.exit_code == 0, done.output
    assert outcomes(done.stdout) == {"eve": ("delivered", 0, "another run")}
    assert desk.clerk.seqs("eve") == [0, 2, 1]


def test_what_fails_again_is_a_failure_though_a_retry_tried_it_meanwhile(
    desk: OperatorDesk, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    desk.clerk.poison = {1}
    meanwhile(lambda: desk.consumer.catch_up("ada", force=True))
    done = desk.run("parked", "redrive", "ada", *FUNCTION, "--json")
    assert done.exit_code == 1
    assert outcomes(done.stdout) == {"ada": ("failed again", 0, "")}
