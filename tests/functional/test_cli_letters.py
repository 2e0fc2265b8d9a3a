"""`stream-sort parked | dead | late` on moto's tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.functional.operator_desk import OperatorDesk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort import StreamSorter

FUNCTION = ("--function", "process-fn")


@pytest.fixture
def desk(sorter: StreamSorter) -> OperatorDesk:
    return OperatorDesk(sorter)


@pytest.fixture
def stuck(desk: OperatorDesk) -> Iterator[OperatorDesk]:
    """Two queues that are parked, and a function to redrive them."""
    desk.put("ada", 0, 1, 2)
    desk.put("bob", 0, 1)
    desk.clerk.poison = {1}
    desk.deliver("ada", "bob")
    with desk.function():
        yield desk


@pytest.fixture
def buried(desk: OperatorDesk) -> Iterator[OperatorDesk]:
    """Two dead letters in one queue, and a function to redrive them."""
    desk.put("ada", 0, 1, 2, 3, text="\x1b[31mred")
    desk.bury("ada", 1, 2)
    with desk.function():
        yield desk


def parked_queues(desk: OperatorDesk) -> list[str]:
    return sorted(one.queue for one in desk.consumer.parked())


def test_parked_queues_are_listed_with_their_error(stuck: OperatorDesk) -> None:
    shown = stuck.run("parked", "list").stdout
    assert "ada" in shown
    assert "bob" in shown
    assert "ValueError: poison 1" in shown
    (one,) = stuck.told("parked", "list", "--match", "a*")
    assert (one["consumer"], one["queue"], one["seq"], one["attempts"]) == ("billing", "ada", 1, 1)
    assert [one["queue"] for one in stuck.told("parked", "list", "bob")] == ["bob"]


def test_nothing_parked_is_said_and_a_consumer_nobody_knows_is_an_error(desk: OperatorDesk) -> None:
    desk.put("ada", 0)
    desk.deliver("ada")
    assert desk.run("parked", "list").stdout == "consumer billing: no parked queue found\n"
    assert desk.told("dead", "list") == []
    done = desk.run("parked", "list", "--consumer", "biling")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("stream-sort: no consumer 'biling' is registered; there are 'billing'")


def test_a_redrive_frees_the_queue_it_names_and_no_other(stuck: OperatorDesk) -> None:
    stuck.clerk.poison.clear()
    done = stuck.run("parked", "redrive", "ada", *FUNCTION, "--yes")
    assert done.exit_code == 0, done.output
    assert "Redrive 1 parked queue of consumer billing (ada at seq 1), by invoking process-fn." in done.stderr
    assert "delivered" in done.stdout
    assert stuck.clerk.seqs("ada") == [0, 1, 2]
    assert parked_queues(stuck) == ["bob"]


def test_a_redrive_of_many_tells_of_each_and_one_that_fails_again_stops_no_other(stuck: OperatorDesk) -> None:
    stuck.sorter.open("zed", first_seq=5)
    stuck.put("zed", 5)
    stuck.clerk.poison = {5}
    stuck.deliver("zed")
    done = stuck.run("parked", "redrive", "--all", *FUNCTION, "--yes", "--json")
    assert done.exit_code == 1
    told = {one["queue"]: (one["outcome"], one["delivered"]) for one in json.loads(done.stdout)}
    assert told == {"ada": ("delivered", 2), "bob": ("delivered", 1), "zed": ("failed again", 0)}
    assert parked_queues(stuck) == ["zed"]


def test_a_redrive_by_pattern_leaves_the_others(stuck: OperatorDesk) -> None:
    stuck.clerk.poison.clear()
    assert stuck.run("parked", "redrive", "--match", "b*", *FUNCTION, "--yes").exit_code == 0
    assert parked_queues(stuck) == ["ada"]


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_without_a_yes_nothing_is_redriven(stuck: OperatorDesk, answer: str) -> None:
    stuck.clerk.poison.clear()
    done = stuck.run("parked", "redrive", "--all", *FUNCTION, answer=answer)
    assert done.exit_code == 1
    assert "nothing was changed" in done.stderr
    assert parked_queues(stuck) == ["ada", "bob"]


def test_a_yes_at_the_prompt_is_enough(stuck: OperatorDesk) -> None:
    stuck.clerk.poison.clear()
    assert stuck.run("parked", "redrive", "--all", *FUNCTION, answer="y\n").exit_code == 0
    assert parked_queues(stuck) == []


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["parked", "redrive", "--yes"], 2, "which queues? Give names, --match PATTERN or --all: one of the three"),
        (["parked", "redrive", "ada", "--all", "--yes"], 2, "one of the three"),
        (["parked", "redrive", "eve", *FUNCTION, "--yes"], 1, "nothing is parked or dead at queue 'eve'"),
        (["parked", "redrive", "ada", "--yes"], 2, "the name of ProcessFunction is not known; give --stack NAME"),
        (["parked", "discard", "ada", "0", "--reason", "x", "--yes"], 1, "nothing is parked or dead at queue 'ada'"),
        (["parked", "discard", "ada", "1", "--reason", " ", "--yes"], 2, "--reason is empty"),
        (["dead", "show", "ada", "7"], 1, "nothing is parked or dead at queue 'ada', seq 7"),
        (["dead", "show", "ada", "7"], 1, "stream-sort parked list and dead list"),
        (["dead", "redrive", "ada", "1", *FUNCTION, "--yes"], 1, "nothing is parked or dead"),
        (["late", "show", "ada", "1"], 2, "there is a message that is not late"),
        (["late", "show", "ada", "99"], 2, "there is nothing"),
        (["dead", "list", ""], 2, "queue ''"),
        (["parked", "list", "beaa"], 1, "there is no queue 'beaa'"),
        (["parked", "list", "ada", "beaa"], 1, "there is no queue 'beaa'"),
        (["dead", "list", "beaa"], 1, "there is no queue 'beaa'"),
        (["late", "list", "beaa"], 1, "there is no queue 'beaa'"),
    ],
)
def test_what_cannot_be_is_one_clear_line(stuck: OperatorDesk, arguments: list[str], code: int, told: str) -> None:
    done = stuck.run(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("stream-sort: ")
    assert told in line


def test_the_function_of_another_consumer_says_so(stuck: OperatorDesk) -> None:
    stuck.consumer = stuck.hire("park", "shipping")
    done = stuck.run("parked", "redrive", "ada", *FUNCTION, "--yes")
    assert done.exit_code == 1
    assert "consumer 'shipping': nothing is parked or dead" in done.stdout


def test_a_function_that_fails_is_told_of_each_queue(stuck: OperatorDesk) -> None:
    del stuck.consumer
    done = stuck.run("parked", "redrive", "--all", *FUNCTION, "--yes", "--json")
    assert done.exit_code == 1
    errors = [one["error"] for one in json.loads(done.stdout)]
    assert [error[:46] for error in errors] == ["function 'process-fn' failed: AttributeError: "] * 2


def test_a_function_that_cannot_be_reached_is_one_line(stuck: OperatorDesk) -> None:
    stuck.env["AWS_ENDPOINT_URL_LAMBDA"] = "http://127.0.0.1:1"
    done = stuck.run("parked", "redrive", "ada", *FUNCTION, "--yes")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("stream-sort: AWS: Could not connect to the endpoint URL")


def test_what_somebody_else_discards_meanwhile_is_named_and_the_rest_is_done(
    buried: OperatorDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object, **__: object) -> bool:
        buried.consumer.discard("ada", 1, "faster")
        return True

    monkeypatch.setattr("typer.confirm", ask)
    done = buried.run("dead", "discard", "ada", "--reason", "old")
    assert (done.exit_code, done.stdout) == (1, "discarded: queue ada, seq 2\n")
    assert "not discarded: consumer 'billing': nothing is parked or dead at queue 'ada', seq 1" in done.stderr


def test_a_discarded_message_is_passed_over_and_its_queue_goes_on(stuck: OperatorDesk) -> None:
    done = stuck.run("parked", "discard", "ada", "1", "--reason", "no such account", "--yes")
    assert done.exit_code == 0, done.output
    assert done.stdout == "discarded: queue ada, seq 1\n"
    stuck.deliver("ada")
    assert stuck.clerk.seqs("ada") == [0, 2]


def test_dead_letters_are_listed_and_shown_with_their_message(buried: OperatorDesk) -> None:
    assert [one["seq"] for one in buried.told("dead", "list")] == [1, 2]
    assert "never" in buried.run("dead", "list", "ada").stdout
    told = buried.told("dead", "show", "ada", "1")
    assert (told["seq"], told["error"], told["message"]["text"]) == (1, "ValueError: poison 1", "\x1b[31mred")
    shown = buried.run("dead", "show", "ada", "1").stdout
    assert "\x1b" not in shown
    assert "\\u001b[31mred" in shown
    assert "1 attempt; the last error: ValueError: poison 1" in shown


def test_one_dead_letter_is_redriven_at_its_own_place(buried: OperatorDesk) -> None:
    buried.clerk.poison.clear()
    assert buried.run("dead", "redrive", "ada", "2", *FUNCTION, "--yes").exit_code == 0
    assert buried.clerk.seqs("ada") == [0, 3, 2]
    assert [one["seq"] for one in buried.told("dead", "list")] == [1]


def test_behind_a_dead_letter_that_fails_again_nothing_of_its_queue_is_tried(buried: OperatorDesk) -> None:
    buried.clerk.poison = {1}
    done = buried.run("dead", "redrive", "--all", *FUNCTION, "--yes", "--json")
    assert done.exit_code == 1
    assert [(one["seq"], one["outcome"]) for one in json.loads(done.stdout)] == [(1, "failed again"), (2, "left")]
    assert buried.clerk.seqs("ada") == [0, 3]


def test_dead_letters_are_discarded_one_by_one_or_all(buried: OperatorDesk) -> None:
    assert buried.run("dead", "discard", "ada", "1", "--reason", "old", "--yes").exit_code == 0
    assert [one["seq"] for one in buried.told("dead", "list")] == [2]
    (told,) = buried.told("dead", "discard", "--match", "a*", "--reason", "old", "--yes")
    assert (told["seq"], told["discarded"]) == (2, "old")
    assert buried.told("dead", "list") == []
    assert buried.run("dead", "discard", "--all", "--reason", "old", "--yes").exit_code == 0


def test_what_was_discarded_is_listed_and_shown_with_the_reason(buried: OperatorDesk) -> None:
    buried.put("bob", 0, 1)
    buried.clerk.poison = {0}
    buried.consumer = buried.hire("park")
    buried.deliver("bob")
    buried.run("dead", "discard", "ada", "2", "--reason", "no such account", "--yes")
    buried.run("parked", "discard", "bob", "0", "--reason", "a test", "--yes")
    told = buried.told("dead", "list", "--discarded")
    found = [(one["consumer"], one["queue"], one["seq"], one["discarded"]) for one in told]
    assert found == [("billing", "ada", 2, "no such account"), ("billing", "bob", 0, "a test")]
    assert [one["queue"] for one in buried.told("dead", "list", "--discarded", "--match", "b*")] == ["bob"]
    listed = buried.run("dead", "list", "ada", "--discarded").stdout
    assert "discarded because" in listed
    assert "no such account" in listed
    assert "a test" not in listed
    shown = buried.run("dead", "show", "ada", "2").stdout
    assert shown.startswith("queue ada, seq 2: discarded by consumer billing: no such account\n")
    assert "1 attempt; the last error: ValueError: poison 2" in shown
    assert buried.told("dead", "show", "bob", "0")["discarded"] == "a test"
    assert buried.consumer.discarded("ada")[0].discarded == "no such account"


def test_nothing_discarded_is_said_and_a_mistyped_name_is_an_error(buried: OperatorDesk) -> None:
    assert buried.run("dead", "list", "ada", "--discarded").stdout == "consumer billing: no discarded message found\n"
    assert buried.run("dead", "list", "adda", "--discarded").exit_code == 1
    assert buried.run("dead", "list", "--discarded", "--consumer", "biling").exit_code == 1


def test_late_messages_are_listed_and_shown(desk: OperatorDesk) -> None:
    desk.put("ada", 0, 3)
    desk.put("bob", 0)
    desk.sorter.skip("ada", [1, 2], "lost\x07")
    assert "no late messages" in desk.run("late", "list").stdout
    desk.put("ada", 2, text="here\x1b[2J")
    late = {
        "queue": "ada",
        "seq": 2,
        "reason": "lost\x07",
        "message": {"queue": "ada", "seq": 2, "text": "here\x1b[2J"},
    }
    assert desk.told("late", "list") == [late]
    assert desk.told("late", "list", "--match", "b*") == []
    assert desk.told("late", "list", "ada", "--search", "1") == []
    assert desk.told("late", "show", "ada", "2") == late
    for shown in (desk.run("late", "list").stdout, desk.run("late", "show", "ada", "2").stdout):
        assert "lost\\x07" in shown
        assert not {"\x1b", "\x07"} & set(shown)
    told = desk.run("late", "show", "ada", "1", "--region", "eu-west-1").stderr
    assert "there is a tombstone only; see stream-sort late list --region eu-west-1" in told
