from __future__ import annotations

import pytest

from stream_sort.replay.archive.manifest import folder_of, segment_name
from stream_sort.replay.archive.plan import SegmentPlan
from stream_sort.replay.archive.shelf import Shelf, folders, settled, unfinished_notes, with_data

FIRST = SegmentPlan("q", -11, (-1, 9))
SECOND = SegmentPlan("q", 9, (29,))
THIRD = SegmentPlan("q", 29, (49, 59))


def names(*plans: SegmentPlan) -> list[str]:
    held = [segment_name(one) for plan in plans for one in plan.segments]
    return [
        *(name + ending for name in held for ending in (".json", ".parquet")),
        *(name for plan in plans for name in (plan.name, plan.mark)),
    ]


WHOLE = names(FIRST, SECOND, THIRD)


def without(*gone: str) -> Shelf:
    assert set(gone) <= set(WHOLE)
    return Shelf.of([name for name in WHOLE if name not in gone])


def test_what_is_whole_ends_where_its_last_plan_does() -> None:
    shelf = Shelf.of(WHOLE)
    assert (shelf.damage(), shelf.end) == (None, 59)
    assert (Shelf.of([]).damage(), Shelf.of([]).end) == (None, None)


def test_the_newest_plan_may_be_unfinished() -> None:
    shelf = without(THIRD.mark, segment_name(THIRD.segments[0]) + ".json")
    assert (shelf.damage(), shelf.end) == (None, 29)
    assert Shelf.of([FIRST.name]).end == -11


@pytest.mark.parametrize("plan", [FIRST, SECOND, THIRD])
def test_a_lost_manifest_is_told_from_the_names_alone(plan: SegmentPlan) -> None:
    damage = without(segment_name(plan.segments[-1]) + ".json").damage()
    assert damage is not None
    assert (damage.after, damage.planned) == (plan.after, True)
    assert f"1 of the {len(plan.ends)} segments up to seq {plan.through} are missing" in damage.problem


def test_a_lost_segment_is_told_where_data_is_asked_for() -> None:
    left = [name for name in WHOLE if name != segment_name(SECOND.segments[0]) + ".parquet"]
    assert Shelf.of(left).damage() is None
    damage = Shelf.of(with_data(left)).damage()
    assert damage is not None
    assert damage.after == 9


def test_a_plan_without_its_mark_below_another_is_damage() -> None:
    damage = without(SECOND.mark).damage()
    assert damage is not None
    assert (damage.after, damage.planned) == (9, True)


def test_what_is_lost_without_its_plan_cannot_be_written_again() -> None:
    for gone in ((SECOND.mark, SECOND.name), (SECOND.name, segment_name(SECOND.segments[0]) + ".json")):
        damage = without(*gone).damage()
        assert damage is not None
        assert (damage.after, damage.planned) == (9, False)


def test_what_a_run_writes_while_names_are_listed_is_no_damage() -> None:
    torn = without(segment_name(SECOND.segments[0]) + ".json")
    torn_later = without(segment_name(THIRD.segments[0]) + ".json")
    looks = iter([torn_later, Shelf.of(WHOLE)])
    assert settled(torn, lambda: next(looks)).damage() is None
    assert settled(torn, lambda: torn).damage() is not None


def test_each_queue_is_judged_by_itself() -> None:
    other = SegmentPlan("r", -1, (9,))
    found = [*WHOLE, other.name, other.mark]
    listed = {folder_of("r"): [other.name, other.mark]}
    damaged = {folder.name: folder.damage is not None for folder in folders(found, listed.__getitem__)}
    assert damaged == {folder_of("q"): False, folder_of("r"): True}


def test_what_a_run_still_writes_is_not_read() -> None:
    writing = [name for name in WHOLE if name not in {THIRD.mark, segment_name(THIRD.segments[0]) + ".json"}]
    (folder,) = folders(writing, lambda _: writing)
    finished = [segment_name(one) + ".json" for plan in (FIRST, SECOND) for one in plan.segments]
    assert (list(folder.manifests), folder.damage) == (finished, None)
    (whole,) = folders(WHOLE, lambda _: WHOLE)
    assert len(whole.manifests) == 5


def test_what_is_read_is_what_the_last_look_saw() -> None:
    torn = [name for name in WHOLE if name != segment_name(SECOND.segments[0]) + ".json"]
    (folder,) = folders(torn, lambda _: WHOLE)
    assert (len(folder.manifests), folder.damage) == (5, None)


def test_a_queue_with_an_unfinished_run_says_so() -> None:
    assert [(one.queue, one.unfinished) for one in folders(WHOLE, lambda _: WHOLE)] == [("q", False)]
    left = [name for name in WHOLE if name != THIRD.mark]
    assert [(one.queue, one.unfinished) for one in folders(left, lambda _: left)] == [("q", True)]
    assert [(one.unfinished, one.manifests) for one in folders([FIRST.name], list)] == [(True, ())]


def test_unfinished_runs_are_told_of_queue_by_queue_but_not_of_thousands() -> None:
    assert unfinished_notes([]) == ()
    (told,) = unfinished_notes(["a"])
    assert told.startswith("queue 'a': a run of archive is not finished")
    assert "run archive again" in told
    many = unfinished_notes(map(str, range(1_000)))
    assert (len(many), many[-1]) == (6, "and 995 more queues with a run of archive that is not finished")
