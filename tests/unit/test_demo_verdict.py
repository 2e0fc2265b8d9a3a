"""The demo's verdict says PASS only for what came out whole and in order."""

import pytest

from stream_sort.cli.demo.traffic import judge, make_message, make_traffic


def came_out(seqs: list[int], length: int = 4) -> tuple[str | None, int]:
    (verdict,) = judge({"orders": [make_message("orders", seq) for seq in seqs]}, {"orders": length})
    return verdict.problem, verdict.repeats


def test_a_whole_queue_in_order_is_right() -> None:
    assert came_out([0, 1, 2, 3]) == (None, 0)


def test_a_repeat_from_an_earlier_place_is_right_and_counted() -> None:
    assert came_out([0, 1, 2, 1, 2, 3]) == (None, 2)


@pytest.mark.parametrize(
    ("seqs", "problem"),
    [
        ([0, 1, 2], "3 of 4 messages came out"),
        ([], "0 of 4 messages came out"),
        ([0, 2, 1, 3], "seq 2 came when 1 was next"),
        ([0, 1, 2, 0, 2, 3], "seq 2 came when 3 was next"),
    ],
)
def test_what_is_missing_or_out_of_order_is_named(seqs: list[int], problem: str) -> None:
    assert came_out(seqs)[0] == problem


def test_a_changed_message_is_named() -> None:
    messages = [make_message("orders", 0) | {"text": "other"}]
    (verdict,) = judge({"orders": messages}, {"orders": 1})
    assert str(verdict.problem).startswith("seq 0 came out changed")


def test_a_queue_that_nobody_sent_is_named() -> None:
    verdicts = judge({"orders": [], "ghost": [make_message("ghost", 0)]}, {"orders": 0})
    assert [verdict.problem for verdict in verdicts] == [None, "nobody sent this"]


def test_the_same_seed_makes_the_same_traffic_with_one_message_held_back() -> None:
    traffic = make_traffic(500, 5, seed=3)
    assert traffic == make_traffic(500, 5, seed=3)
    sent = {(message["queue"], message["seq"]) for parcel in traffic.parcels for message in parcel.messages}
    assert len(sent) == traffic.total - 1 == 499
    assert (traffic.held_back["queue"], traffic.held_back["seq"]) not in sent
    assert {parcel.by_invoke for parcel in traffic.parcels} == {True, False}
