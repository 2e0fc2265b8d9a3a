from __future__ import annotations

import pytest

from stream_sort.errors import FileMissing
from stream_sort.replay.origins.archive.folder_state import Finished, FolderState, settled, with_data
from stream_sort.replay.origins.archive.folders import Folder, FolderReader, folders, unfinished_notes
from stream_sort.replay.origins.archive.manifest import folder_of, segment_name
from stream_sort.replay.origins.archive.plan import SegmentPlan

FIRST = SegmentPlan("q", -11, (-1, 9))
SECOND = SegmentPlan("q", 9, (29,))
THIRD = SegmentPlan("q", 29, (49, 59))
PLANS = {plan.name: plan.text() for plan in (FIRST, SECOND, THIRD)}


def names(*plans: SegmentPlan) -> list[str]:
    held = [segment_name(one) for plan in plans for one in plan.segments]
    return [
        *(name + ending for name in held for ending in (".json", ".parquet")),
        *(name for plan in plans for name in (plan.name, plan.mark)),
    ]


WHOLE = names(FIRST, SECOND, THIRD)


def left_without(*gone: str) -> list[str]:
    assert set(gone) <= set(WHOLE)
    return [name for name in WHOLE if name not in gone]


def without(*gone: str) -> FolderState:
    return FolderState.of(left_without(*gone))


def unread(name: str) -> bytes:
    raise AssertionError(f"{name} was read")


def read(name: str) -> bytes:
    if name not in PLANS:
        raise FileMissing(name)
    return PLANS[name]


def looked(held: list[str]) -> FolderState:
    return FolderReader(read).look(folder_of("q"), held)


def of_names(found: list[str]) -> Folder:
    (folder,) = folders(found, lambda _: found, read)
    return folder


def test_what_is_whole_ends_where_its_last_plan_does() -> None:
    state = FolderState.of(WHOLE)
    assert (state.damage(), state.end) == (None, 59)
    assert (FolderState.of([]).damage(), FolderState.of([]).end) == (None, None)


def test_the_newest_plan_may_be_unfinished() -> None:
    state = without(THIRD.mark, segment_name(THIRD.segments[0]) + ".json")
    assert (state.damage(), state.end) == (None, 29)
    assert FolderState.of([FIRST.name]).end == -11


@pytest.mark.parametrize("plan", [FIRST, SECOND, THIRD])
def test_a_lost_manifest_is_told_from_the_names_alone(plan: SegmentPlan) -> None:
    damage = without(segment_name(plan.segments[-1]) + ".json").damage()
    assert damage is not None
    assert (damage.after, damage.planned) == (plan.after, True)
    assert f"1 of the {len(plan.ends)} segments up to seq {plan.through} are missing" in damage.problem


@pytest.mark.parametrize("plan", [FIRST, SECOND, THIRD])
def test_lost_segments_are_named_where_their_plan_can_be_read(plan: SegmentPlan) -> None:
    lost = [segment_name(held) + ".json" for held in plan.segments]
    damage = of_names(left_without(*lost)).damage
    assert damage is not None
    told = ", ".join(name.rpartition("/")[2] for name in lost)
    assert f"{len(lost)} of the {len(lost)} segments up to seq {plan.through} are missing ({told})" in damage.problem


def test_a_lost_segment_is_told_where_data_is_asked_for() -> None:
    left = [name for name in WHOLE if name != segment_name(SECOND.segments[0]) + ".parquet"]
    assert FolderState.of(left).damage() is None
    damage = FolderState.of(with_data(left)).damage()
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
    looks = iter([torn_later, FolderState.of(WHOLE)])
    assert settled(torn, lambda: next(looks)).damage() is None
    assert settled(torn, lambda: torn).damage() is not None


def test_a_lost_beginning_is_damage_where_it_is_known_where_the_archive_began() -> None:
    left = names(SECOND, THIRD)
    assert FolderState.of(left).damage() is None
    assert FolderState.of(left).damage(SECOND.after) is None
    for held, planned in (
        (left, True),
        ([THIRD.name, THIRD.mark], True),
        # What is left of the old beginning might overlap what is planned anew; whether it is all, names do not tell.
        ([segment_name(FIRST.segments[1]) + ".json", *left], False),
        ([name for name in WHOLE if name not in {FIRST.name, FIRST.mark}], False),
        # A plan made anew from here on would go over what follows.
        ([name for name in left if name != THIRD.name], False),
    ):
        damage = FolderState.of(held).damage(FIRST.after)
        assert damage is not None
        assert (damage.after, damage.planned) == (-11, planned)
        assert "it began at seq -10, and its first plan that is there begins at seq" in damage.problem
    assert FolderState.of(WHOLE).damage(FIRST.after) is None
    assert FolderState.of([]).damage(FIRST.after) is None


def test_each_queue_is_judged_by_itself() -> None:
    other = SegmentPlan("r", -1, (9,))
    found = [*WHOLE, other.name, other.mark]
    listed, plans = {folder_of("r"): [other.name, other.mark]}, {other.name: other.text()}
    damaged = {
        folder.name: folder.damage is not None for folder in folders(found, listed.__getitem__, plans.__getitem__)
    }
    assert damaged == {folder_of("q"): False, folder_of("r"): True}


def test_what_a_run_still_writes_is_not_read() -> None:
    writing = [name for name in WHOLE if name not in {THIRD.mark, segment_name(THIRD.segments[0]) + ".json"}]
    folder = of_names(writing)
    finished = [segment_name(one) + ".json" for plan in (FIRST, SECOND) for one in plan.segments]
    assert (list(folder.manifests), folder.damage) == (finished, None)
    assert len(of_names(WHOLE).manifests) == 5


def test_what_is_read_is_what_the_last_look_saw() -> None:
    torn = [name for name in WHOLE if name != segment_name(SECOND.segments[0]) + ".json"]
    (folder,) = folders(torn, lambda _: WHOLE, read)
    assert (len(folder.manifests), folder.damage) == (5, None)


def test_a_queue_with_an_unfinished_run_says_so() -> None:
    assert [(one.queue, one.unfinished) for one in folders(WHOLE, lambda _: WHOLE, unread)] == [("q", False)]
    left = left_without(THIRD.mark, segment_name(THIRD.segments[1]) + ".parquet")
    assert (of_names(left).queue, of_names(left).unfinished) == ("q", True)
    assert (of_names([FIRST.name]).unfinished, of_names([FIRST.name]).manifests) == (True, ())


def test_a_queue_with_a_long_name_is_named_by_its_plan() -> None:
    plan = SegmentPlan("x" * 500, -1, (9,))
    (folder,) = folders([plan.name], list, lambda _: plan.text())
    assert (folder.queue, folder.unfinished) == (plan.queue, True)


@pytest.mark.parametrize("plan", [FIRST, SECOND, THIRD])
def test_a_plan_whose_segments_are_all_there_is_finished_without_its_mark(plan: SegmentPlan) -> None:
    held = left_without(plan.mark)
    state = looked(held)
    assert (state.damage(), state.end, state.unfinished, state.unmarked) == (None, 59, None, (plan,))
    folder = of_names(held)
    assert (len(folder.manifests), folder.damage, folder.unfinished) == (5, None, False)


def test_a_plan_is_not_finished_where_its_segments_are_not_as_planned() -> None:
    held = left_without(THIRD.mark)
    state = FolderReader(read, is_written=lambda one: one.through != 59).look(folder_of("q"), held)
    assert (state.end, state.unfinished, state.unmarked) == (29, 30, ())


@pytest.mark.parametrize(("plan", "after"), [(FIRST, -11), (SECOND, 9), (THIRD, 29)])
@pytest.mark.parametrize("content", [b"{", b"", SegmentPlan("r", 9, (29,)).text()])
def test_a_plan_without_a_mark_that_cannot_be_read_is_damage(plan: SegmentPlan, after: int, content: bytes) -> None:
    held = left_without(plan.mark)
    (folder,) = folders(held, lambda _: held, lambda name: content if name == plan.name else read(name))
    assert folder.damage is not None
    assert (folder.damage.after, folder.damage.planned, folder.unfinished) == (after, False, False)
    assert f"the plan from seq {after + 1} on cannot be followed" in folder.damage.problem
    assert plan.name in folder.damage.problem


@pytest.mark.parametrize("lie", [Finished(30, 59, 3), Finished(30, 79, 4)])
def test_a_mark_that_says_more_than_its_plan_is_damage(lie: Finished) -> None:
    held = [name if name != THIRD.mark else name.rpartition("/")[0] + "/" + lie.file_name for name in WHOLE]
    for found in (held, [*held, THIRD.mark]):
        state = looked(found)
        damage = state.damage()
        assert damage is not None
        assert (damage.after, damage.planned, state.end) == (29, False, 29)
        assert lie.file_name in damage.problem


def test_a_mark_beyond_what_is_released_is_compared_with_its_plan() -> None:
    lie = Finished(30, 99, 2)
    held = [name if name != THIRD.mark else name.rpartition("/")[0] + "/" + lie.file_name for name in WHOLE]
    state = FolderReader(read, released=59).look(folder_of("q"), held)
    assert state.damage() is not None
    assert state.end == 29


def test_unfinished_runs_are_told_of_queue_by_queue_but_not_of_thousands() -> None:
    assert unfinished_notes([]) == ()
    (told,) = unfinished_notes(["a"])
    assert told.startswith("queue 'a': a run of archive is not finished")
    assert "run archive again" in told
    many = unfinished_notes(map(str, range(1_000)))
    assert (len(many), many[-1]) == (6, "and 995 more queues with a run of archive that is not finished")


@pytest.mark.parametrize("ends", [(19, 29), (19, 29, 39)])
@pytest.mark.parametrize("kept", ["plan", "mark", "both"])
def test_plans_that_overlap_are_called_so_and_the_files_named_that_may_be_deleted(
    ends: tuple[int, ...], kept: str
) -> None:
    plan, inner = SegmentPlan("q", -1, (9, 19, 29)), SegmentPlan("q", 9, ends)
    files = {"plan": [inner.name], "mark": [inner.mark], "both": [inner.mark, inner.name]}[kept]
    held = [*names(plan), *names(inner)[: 2 * len(ends)]]
    # A segment has one name, whoever planned it.
    found = sorted({*held, *files})
    content = {plan.name: plan.text(), inner.name: inner.text()}
    (folder,) = folders(found, lambda _: found, content.__getitem__)
    assert folder.damage is not None
    assert (folder.damage.after, folder.damage.planned) == (29, False)
    told = "the plan from seq 10 on overlaps the one from seq 0 on, which goes to seq 29"
    assert told in folder.damage.problem
    named = " and ".join("plans/" + name.rpartition("/")[2] for name in files)
    assert f"{named} may be deleted" in folder.damage.problem
    # As it says.
    assert of_names_with(sorted(set(held)), content).damage is None


def of_names_with(found: list[str], content: dict[str, bytes]) -> Folder:
    (folder,) = folders(found, lambda _: found, content.__getitem__)
    return folder


def test_a_mark_of_nothing_is_none() -> None:
    assert (
        FolderState.of([*WHOLE, folder_of("q") + "plans/" + Finished(60, 59, 0).file_name]).finished[-1]
        == THIRD.finished
    )


def test_what_marks_say_of_the_ends_of_segments_goes_with_their_manifests() -> None:
    last = [segment_name(plan.segments[-1]) + ".json" for plan in (FIRST, SECOND, THIRD)]
    assert of_names(WHOLE).ends == dict(zip(last, (9, 29, 59), strict=True))
    # That of an unfinished plan is not read.
    assert of_names(left_without(THIRD.mark, segment_name(THIRD.segments[0]) + ".json")).ends.keys() == {*last[:2]}


def test_a_plan_that_a_mark_or_another_plan_contradicts_is_not_followed() -> None:
    state = without(SECOND.name)
    assert state.refusal(SECOND) == ""
    assert f"the mark {SECOND.finished.file_name}" in state.refusal(SegmentPlan("q", 9, (19, 29)))
    assert "overlaps" in state.refusal(SegmentPlan("q", -11, (19,)))
    assert state.refusal(SegmentPlan("q", 59, (99,))) == ""


LATER = SegmentPlan("q", 59, (79,))


@pytest.mark.parametrize("after", [-11, 9, 29, 59])
@pytest.mark.parametrize("gone", [(), (THIRD.mark,), (SECOND.mark,), (SECOND.name,), (FIRST.name, FIRST.mark)])
def test_what_is_kept_of_a_folder_state_answers_for_plans_to_come_as_all_of_it(
    after: int, gone: tuple[str, ...]
) -> None:
    state = without(*gone)
    kept = state.ahead(after)
    assert (kept.unfinished, kept.end, kept.begins[:1]) == (state.unfinished, state.end, state.begins[:1])
    for plan in (FIRST, SECOND, THIRD, LATER, SegmentPlan("q", 9, (19, 39)), SegmentPlan("q", -11, (99,))):
        if plan.after >= after:
            assert (kept.room(plan.after), kept.refusal(plan)) == (state.room(plan.after), state.refusal(plan))


def test_what_is_kept_of_a_folder_state_does_not_grow_with_the_runs_before() -> None:
    plans = [SegmentPlan("q", seq - 1, (seq,)) for seq in range(1_000)]
    kept = FolderState.of(sorted(names(*plans))).ahead(999)
    assert (len(kept.plans), len(kept.finished), kept.segments) == (2, 2, ())
