from __future__ import annotations

import pytest

from stream_sort.errors import SettingsError, StoreError
from stream_sort.replay.engine.plan import JobPlan, whole_queues
from stream_sort.replay.ranges import Part, Range

OPTIONS = {"sink": "parquet", "queue": ("a", "b"), "to_seq": None}


def test_a_plan_comes_back_as_it_was() -> None:
    plan = JobPlan(OPTIONS, (Part(0, (Range("{x,y}", -1, 4), Range("🙂", 2, 3))), Part(1, (Range("🙂", 3, 9),))), 12.5)
    again = JobPlan.decode(plan.encode(), "here")
    assert (again.parts, again.made_at, again.id) == (plan.parts, plan.made_at, plan.id)
    assert again.ends() == {"{x,y}": 4, "🙂": 9}
    assert again.starts() == {"{x,y}": -1, "🙂": 2}
    again.check(OPTIONS, "here")


def test_other_options_are_refused_and_the_difference_is_named() -> None:
    plan = JobPlan.decode(JobPlan(OPTIONS, (), 1.0).encode(), "here")
    with pytest.raises(SettingsError, match=r"here belongs to another job: --to-seq was None and is now 5"):
        plan.check({**OPTIONS, "to_seq": 5}, "here")
    with pytest.raises(SettingsError, match=r"--queue was \['a', 'b'\] and is now \['a'\]"):
        plan.check({**OPTIONS, "queue": ("a",)}, "here")


def test_of_several_differences_each_is_named() -> None:
    plan = JobPlan.decode(JobPlan({**OPTIONS, "rows_per_part": 100}, (), 1.0).encode(), "here")
    with pytest.raises(SettingsError) as refused:
        plan.check({**OPTIONS, "rows_per_part": 100_000, "sink": "jsonl"}, "here")
    assert str(refused.value) == (
        "here belongs to another job: --rows-per-part was 100 and is now 100000, --sink was 'parquet' and is now "
        "'jsonl'; give the same options to resume it, or another --checkpoint"
    )


@pytest.mark.parametrize(
    ("where", "another"),
    [("history/_stream_sort", "--out"), ("history_7", "--out and --checkpoint")],
)
def test_whoever_writes_files_is_told_to_take_another_place_for_them(where: str, another: str) -> None:
    plan = JobPlan(OPTIONS, (), 1.0)
    with pytest.raises(SettingsError, match=rf"or another {another}$"):
        plan.check({**OPTIONS, "out": "history", "to_seq": 5}, where)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"version":1}', b'{"version":7,"options":{},"parts":[],"made_at":1}']
)
def test_what_is_no_plan_is_named_with_its_place(content: bytes) -> None:
    with pytest.raises(StoreError, match=r"^over/there/plan\.json") as refused:
        JobPlan.decode(content, "over/there/plan.json")
    assert "Error" not in str(refused.value)


def test_whole_queues_never_share_a_queue_and_come_largest_first() -> None:
    ranges = [Range("a", -1, 2), Range("a", 2, 5), Range("b", -1, 99), Range("c", -1, 3), Range("d", -1, 8)]
    parts = whole_queues(ranges, 10)
    assert [part.rows for part in parts] == [100, 9, 6, 4]
    assert sorted(one for part in parts for one in part.ranges) == sorted(ranges)
    homes = [{one.queue for one in part.ranges} for part in parts]
    assert sum(map(len, homes)) == len(set.union(*homes))
    assert [part.rows for part in parts] == sorted((part.rows for part in parts), reverse=True)
    assert [part.number for part in parts] == list(range(len(parts)))
