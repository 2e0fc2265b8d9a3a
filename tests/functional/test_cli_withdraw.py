"""`stream-sort withdraw` and `stream-sort withdrawn` on moto's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.functional.operator_desk import OperatorDesk

if TYPE_CHECKING:
    from stream_sort import StreamSorter

TIME = 1_700_000_000_000


@pytest.fixture
def desk(sorter: StreamSorter) -> OperatorDesk:
    desk = OperatorDesk(sorter)
    desk.put("ada", 0, 1)
    for seq in (TIME, TIME + 1, TIME + 2, TIME + 900):
        desk.put("ada", seq, body=f"{seq} \x1b[2J")
    return desk


def test_a_stray_message_is_withdrawn_listed_and_shown(desk: OperatorDesk) -> None:
    done = desk.run("withdraw", "ada", str(TIME), "--reason", "a time", "--yes")
    assert (done.exit_code, done.stdout) == (0, f"ada: seq {TIME} withdrawn, kept as number 1\n")
    (listed,) = desk.told("withdrawn", "list")
    assert listed["message"] == {"queue": "ada", "seq": TIME, "body": f"{TIME} \x1b[2J"}
    assert (listed["number"], listed["seq"], listed["reason"]) == (1, TIME, "a time")
    assert desk.told("withdrawn", "show", "ada", "1") == listed
    for words in (("withdrawn", "list", "ada"), ("withdrawn", "show", "ada", "1")):
        shown = desk.run(*words).stdout
        assert "a time" in shown
        assert "\x1b" not in shown
    assert "Withdrawn before: 1 message." in desk.told("explain", "ada")["sentences"]


def test_a_withdrawn_message_is_shown_by_its_seq_too(desk: OperatorDesk) -> None:
    desk.sorter.withdraw("ada", TIME)
    desk.sorter.withdraw("ada", TIME + 1)
    assert desk.told("withdrawn", "show", "ada", str(TIME + 1))["number"] == 2
    assert desk.told("withdrawn", "show", "ada", "2")["seq"] == TIME + 1


def test_a_seq_that_was_withdrawn_twice_is_shown_by_its_numbers(desk: OperatorDesk) -> None:
    for _ in range(2):
        desk.sorter.withdraw("ada", TIME)
        desk.put("ada", TIME)
    done = desk.run("withdrawn", "show", "ada", str(TIME))
    assert done.exit_code == 2
    assert (
        f"seq {TIME} of queue 'ada' was withdrawn more than once: as number 1 and 2; give one of these" in done.stderr
    )


def test_a_number_comes_before_a_seq(desk: OperatorDesk) -> None:
    desk.put("eve", 2, 9)
    desk.sorter.withdraw("eve", 2)
    desk.sorter.withdraw("eve", 9)
    assert desk.told("withdrawn", "show", "eve", "2")["seq"] == 9


def test_a_range_takes_all_that_is_stored_in_it_the_lowest_first(desk: OperatorDesk) -> None:
    done = desk.told("withdraw", "ada", f"{TIME}-{TIME + 10_000_000}", "--yes")
    assert [one["seq"] for one in done["withdrawn"]] == [TIME, TIME + 1, TIME + 2, TIME + 900]
    assert done["error"] is None
    assert desk.sorter.gaps("ada") == []


def test_the_first_refusal_ends_it_and_says_what_to_do(desk: OperatorDesk) -> None:
    desk.sorter.skip("ada", TIME - 1)
    done = desk.run("withdraw", "ada", f"{TIME}", str(TIME + 900), "--yes")
    assert (done.exit_code, done.stdout) == (1, "")
    assert (
        f"seq {TIME - 1} was skipped, and what follows a skipped seq without a gap cannot be taken out" in done.stderr
    )
    done = desk.run("withdraw", "ada", f"{TIME + 2}-{TIME + 900}", "--yes")
    assert done.exit_code == 1
    assert len(desk.sorter.withdrawn("ada")) == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["withdraw", "ada", "1", "--yes"], 1, "it is released; the queue is at position 1"),
        (["withdraw", "ada", "77", "--yes"], 1, "nothing is stored there"),
        (["withdraw", "ada", "x", "--yes"], 2, "'x' is not a seq"),
        (["withdraw", "typo", "5", "--yes"], 1, "there is no queue 'typo'"),
        (["withdraw", "ada", str(TIME), "--reason", "x" * 300, "--yes"], 2, "a reason is text"),
        (["withdrawn", "list", "typo"], 1, "there is no queue 'typo'"),
        (["withdrawn", "show", "ada", "5"], 2, "queue 'ada' has no withdrawal 5; see stream-sort withdrawn list"),
        (["skip", "ada", f"2-{TIME - 1}", "--yes"], 2, "take that message out: stream-sort withdraw ada SEQ"),
        (["skip", "ada", "--all-gaps", "--yes"], 2, "take that message out: stream-sort withdraw ada SEQ"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(desk: OperatorDesk, words: list[str], code: int, said: str) -> None:
    done = desk.run(*words)
    # What is about to be done may be told before.
    *before, error = done.stderr.splitlines()
    assert (done.exit_code, len(before) <= 1) == (code, True), done.stderr
    assert said in error
    assert desk.sorter.withdrawn("ada") == []


def test_it_asks_first_and_shows_the_message(desk: OperatorDesk) -> None:
    done = desk.run("withdraw", "ada", str(TIME), answer="n\n")
    assert done.exit_code == 1
    assert f"withdraw seq {TIME}; the queue is released through 1" in done.stderr
    assert '"body"' in done.stderr
    assert desk.sorter.withdrawn("ada") == []
    assert "nothing was withdrawn" in desk.run("withdrawn", "list").stdout


def test_a_list_of_all_reads_only_the_queues_from_which_something_was_withdrawn(
    desk: OperatorDesk, dynamo: Any
) -> None:
    for number in range(20):
        desk.put(f"bob-{number}", 0)
    desk.sorter.withdraw("ada", TIME)
    before = len(dynamo.calls)
    assert [one["queue"] for one in desk.told("withdrawn", "list")] == ["ada"]
    assert len(dynamo.calls) - before < 6
    assert desk.told("withdrawn", "list", "--match", "b*") == []


def test_a_stray_behind_skipped_seqs_is_explained_without_a_command_that_fails(desk: OperatorDesk) -> None:
    desk.sorter.put_many({"queue": "eve", "seq": seq} for seq in (0, TIME))
    desk.sorter.set_policy("eve", skip_after=0)
    desk.sorter.skip("eve", [2])
    said = desk.run("explain", "eve").stdout
    assert "no policy skips a gap of over 10,000 seqs" in said
    assert f"withdraw eve {TIME}" in said
    desk.sorter.skip("eve", [TIME - 1])
    assert "withdraw eve" not in desk.run("explain", "eve").stdout
