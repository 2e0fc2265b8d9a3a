"""What a watch keeps between two looks."""

from __future__ import annotations

import json
from dataclasses import replace

from stream_sort.model.watch import MOST_BYTES, MOST_LAGS, Dropped, Lag, WatchState


def lag(queue: str, messages: int = 1) -> Lag:
    return Lag("billing", queue, 7, messages, 1_700_000_000.0, 60.0)


def test_a_watch_reads_as_it_was_kept() -> None:
    dropped = {"billing": Dropped(4.0, 20, 7)}
    watch = WatchState(
        5.0, ("billing",), (lag("a", 0), lag("b", 0)), 3, dropped, began=2.0, place={"queue": {"S": "x"}}
    )
    watch = replace(watch, failing={"broken": "a"})
    assert WatchState.parse(json.loads(json.dumps(watch.kept()))) == watch


def test_the_worst_lags_are_remembered() -> None:
    watch = WatchState().remembering(lag(f"q{number}", number) for number in range(MOST_LAGS + 10))
    assert {one.queue for one in watch.lags} == {f"q{number}" for number in range(10, MOST_LAGS + 10)}
    assert (watch.forgotten, watch.dropped) == (10, {"billing": Dropped(0.0, 9, 9)})


def test_names_of_any_length_fit_into_one_row() -> None:
    names = [f"{number:03}" + "\N{PILE OF POO}" * 255 for number in range(500)]
    watch = WatchState().remembering(map(lag, names))
    assert 0 < len(watch.lags) < 500
    assert len(json.dumps(watch.kept())) < MOST_BYTES + 1_000
    assert watch.dropped
    again = watch.remembering(watch.lags)
    assert (again.forgotten, again.dropped) == (0, watch.dropped), "others were forgotten before"


def test_few_lags_are_not_all_there_is_room_for() -> None:
    watch = WatchState().remembering([lag("a"), lag("b")])
    assert (watch.forgotten, watch.dropped) == (0, {})


def test_each_consumer_has_its_share_of_the_room_and_may_use_what_others_do_not_need() -> None:
    small = [Lag("small", f"q{number}", 7, 1) for number in range(40)]
    large = [Lag("large", f"q{number}", 7, 1_000) for number in range(MOST_LAGS)]
    watch = WatchState().remembering([*large, *small])
    assert {lag for lag in watch.lags if lag.consumer == "small"} == {*small}
    assert (len(watch.lags), watch.forgotten, [*watch.dropped]) == (MOST_LAGS, 40, ["large"])


def test_what_was_dropped_is_told_until_a_whole_pass_dropped_nothing() -> None:
    many = [lag(f"q{number}", 20) for number in range(MOST_LAGS + 1)]
    watch = WatchState().remembering(many, 5.0)
    assert watch.remembering([], 6.0).dropped == {"billing": Dropped(5.0, 20, 20)}
    watch = watch.after_pass()
    assert watch.dropped == {"billing": Dropped(5.0, 20, 0)}
    assert watch.after_pass().dropped == {}
    smaller = watch.remembering([lag(f"q{number}", 3) for number in range(MOST_LAGS + 1)], 7.0).after_pass()
    assert smaller.dropped == {"billing": Dropped(5.0, 3, 0)}


def test_pauses_grow_up_to_an_hour_and_start_anew_when_the_checkpoint_moves() -> None:
    one, now, pauses = Lag("billing", "q", 7, 1), 0.0, []
    for _ in range(6):
        one = one.nudged(now)
        pauses.append(one.wait)
        assert not one.may_nudge(now + one.wait - 1)
        now += one.wait
        assert one.may_nudge(now)
    assert pauses == [60.0, 240.0, 960.0, 3_600.0, 3_600.0, 3_600.0]
    assert one.seen(8, 1).may_nudge(now - 1)
    assert not one.seen(7, 5).may_nudge(now - 1)
    assert one.may_nudge(now - 1, due_since=one.nudged_at or 0.0) is False
    assert one.may_nudge(now - 1, due_since=now - 2)
