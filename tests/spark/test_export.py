"""A point-in-time export is read whole and in order, and every fault in it is named before anything comes out."""

from __future__ import annotations

import gzip
import json
import random
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.errors import ExportDamaged, InvalidInput, ReplayFailed, SettingsError
from stream_sort.model.message import KeyNames
from stream_sort.replay import read_export
from stream_sort.replay.backfill.job import backfill
from stream_sort.replay.backfill.options import BackfillOptions
from stream_sort.replay.completeness import Completeness, by_range
from stream_sort.replay.engine.options import JobParser
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.export.origin import ExportOrigin
from stream_sort.replay.ranges import Part, Range, Selection, cut_parts
from tests.spark.backfills import rows
from tests.spark.exports import item, make_export

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from stream_sort.local.ministack import MiniStack
    from tests.spark.exports import MadeExport

NAMES = ["a", "b/é", "{x,y}", "007"]


def scattered(count: int, files: int, seed: int = 1) -> list[list[dict[str, Any]]]:
    """`count` messages of each queue, shuffled over files; the last file is empty, as some are."""
    items = [item(queue, seq, body=f"{queue} {seq}") for queue in NAMES for seq in range(3, 3 + count)]
    random.Random(seed).shuffle(items)
    return [*(items[number::files] for number in range(files)), []]


def collected(spark: SparkSession, origin: ExportOrigin, rows_per_part: int = 70) -> list[tuple[str, int]]:
    """What comes out of each part, parts in their order; holes raise."""
    parts = cut_parts(origin.ranges(spark), rows_per_part)

    def work(part: Part, slots: Iterator[pa.RecordBatch]) -> tuple[int, list[tuple[str, int]]]:
        found = []
        for wanted, own in by_range(part, slots):
            for batch in Completeness(wanted).watched(own):
                found += list(zip(batch["queue"].to_pylist(), batch["seq"].to_pylist(), strict=True))
        return part.number, found

    answers = sorted(origin.run(spark, parts, work))
    assert [number for number, _ in answers] == list(range(len(parts)))
    return [place for _, found in answers for place in found]


def test_every_message_comes_out_once_and_in_order(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path, scattered(100, 3))
    origin = ExportOrigin(Storage(str(made.folder)))
    assert origin.ranges(spark) == [Range(queue, 2, 102) for queue in sorted(NAMES)]
    assert collected(spark, origin) == [(queue, seq) for queue in sorted(NAMES) for seq in range(3, 103)]
    assert (origin.doubles.duplicates, origin.doubles.conflicts) == (0, 0)


def test_the_messages_are_a_frame_in_order_with_the_text_that_a_table_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    tombstone = item("a", 104) | {"_ss_skipped": {"S": "given up"}}
    made = make_export(tmp_path, [*scattered(100, 2), [item("a", 103, z=1, b=[1.5, None]), tombstone]])
    frame = read_export(spark, str(made.folder), rows_per_part=60)
    assert frame.columns == ["queue", "seq", "item"]
    rows = [tuple(row) for row in frame.collect()]
    expected = [("a", seq) for seq in range(3, 104)]
    expected += [(queue, seq) for queue in sorted(NAMES) if queue != "a" for seq in range(3, 103)]
    assert [row[:2] for row in rows] == sorted(expected)
    assert rows[sorted(expected).index(("a", 103))][2] == '{"b":[1.5,null],"queue":"a","seq":103,"z":1}'


@pytest.mark.parametrize("prefix", ["", "nightly/full"])
def test_an_export_is_found_by_its_folder_its_summary_and_its_bucket(tmp_path: Path, prefix: str) -> None:
    made = make_export(tmp_path, [[item("a", 0)]], prefix)
    for location in (made.folder, made.folder / "manifest-summary.json", tmp_path / prefix):
        assert ExportOrigin(Storage(str(location))).export.items == 1


def test_an_export_is_read_from_a_bucket(spark: SparkSession, ministack: MiniStack, tmp_path: Path) -> None:
    made = make_export(tmp_path, [[item("a", seq) for seq in range(start, 20, 2)] for start in (0, 1)], "nightly")
    bucket = f"export-{uuid.uuid4().hex[:12]}"
    client: Any = ministack.client("s3")
    client.create_bucket(Bucket=bucket)
    for file in sorted(tmp_path.rglob("*")):
        if file.is_file():
            client.put_object(Bucket=bucket, Key=file.relative_to(tmp_path).as_posix(), Body=file.read_bytes())
    client.close()
    for location in ("nightly", made.folder.relative_to(tmp_path).as_posix()):
        storage = Storage(f"s3://{bucket}/{location}/", ministack.url, "us-east-1")
        assert collected(spark, ExportOrigin(storage)) == [("a", seq) for seq in range(20)]


def test_keys_in_the_manifest_may_lack_the_prefix(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path, [[item("a", 0)]], "nightly/full")
    made.set_rows(row | {"dataFileS3Key": row["dataFileS3Key"].removeprefix("nightly/full/")} for row in made.rows())
    assert collected(spark, ExportOrigin(Storage(str(made.folder)))) == [("a", 0)]


def test_of_two_messages_in_one_place_the_first_to_arrive_counts(spark: SparkSession, tmp_path: Path) -> None:
    first, second = item("a", 1, 1_000, body="first"), item("a", 1, 2_000, body="second")
    made = make_export(tmp_path, [[item("a", 0), second], [first, item("a", 0), item("a", 2)]])
    origin = ExportOrigin(Storage(str(made.folder)))

    def work(_: Part, slots: Iterator[pa.RecordBatch]) -> list[str]:
        return [text for batch in slots for text in batch["item"].to_pylist()]

    ((_, kept, _),) = origin.run(spark, cut_parts(origin.ranges(spark), 10), work)
    assert json.loads(kept)["body"] == "first"
    assert (origin.doubles.duplicates, origin.doubles.conflicts) == (1, 1)
    assert origin.doubles.examples == [("a", 1)]
    with pytest.raises(Exception, match="a different message is already stored there"):
        read_export(spark, str(made.folder)).collect()


def test_a_selection_is_read_alone(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path, scattered(50, 2))
    storage = Storage(str(made.folder))
    picked = Selection(queues=("a", "007"), from_seq=10, to_seq=12)
    assert collected(spark, ExportOrigin(storage, picked)) == [
        (queue, seq) for queue in ("007", "a") for seq in (10, 11, 12)
    ]
    with pytest.raises(InvalidInput, match="queue 'nobody' has no item in the export"):
        ExportOrigin(storage, Selection(queues=("nobody",))).ranges(spark)
    assert ExportOrigin(storage, Selection(from_seq=10_000)).ranges(spark) == []
    assert read_export(spark, storage, selection=Selection(from_seq=10_000)).collect() == []


def test_times_narrow_the_ranges(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path, [[item("a", seq, at=1_000_000 + seq * 1_000) for seq in range(20)]])
    picked = Selection(since=1_005.0, until=1_008.0)
    origin = ExportOrigin(Storage(str(made.folder)), picked)
    assert origin.ranges(spark) == [Range("a", 4, 7)]
    assert [row["seq"] for row in origin.frame(spark).collect()] == [5, 6, 7]


def test_a_hole_is_in_the_range_and_found_where_it_is(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path, [[item("a", seq) for seq in range(300) if not 40 <= seq < 200]])
    origin = ExportOrigin(Storage(str(made.folder)))

    def work(part: Part, slots: Iterator[pa.RecordBatch]) -> list[Range]:
        holes = []
        for wanted, own in by_range(part, slots):
            watch = Completeness(wanted, may_have_holes=True)
            for _ in watch.watched(own):
                pass
            holes += watch.holes
        return holes

    answers = [hole for holes in origin.run(spark, cut_parts(origin.ranges(spark), 50), work) for hole in holes]
    assert sorted(answers) == [Range("a", 39, 49), Range("a", 49, 99), Range("a", 99, 149), Range("a", 149, 199)]


def test_parts_of_which_nothing_is_there_are_worked_on_too(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path, [[item("a", 0)]])
    parts = [Part(0, (Range("gone", -1, 5),)), Part(1, (Range("a", 10, 20),))]
    answers = ExportOrigin(Storage(str(made.folder))).run(spark, parts, lambda part, slots: (part.number, list(slots)))
    assert sorted(answers) == [(0, []), (1, [])]


def test_a_seq_gone_wrong_does_not_become_a_billion_parts(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path, [[item("a", 0), item("a", 10**15)]])
    storage = Storage(str(made.folder))
    with pytest.raises(SettingsError, match="2 items over 1,000,000,000,000,001 seqs, mostly holes"):
        ExportOrigin(storage).ranges(spark)
    assert collected(spark, ExportOrigin(storage, Selection(to_seq=0))) == [("a", 0)]


def test_other_key_names_are_used(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path, [[{"who": {"S": "a"}, "nr": {"N": "7"}}]])
    origin = ExportOrigin(Storage(str(made.folder)), keys=KeyNames("who", "nr"))
    assert collected(spark, origin) == [("a", 7)]


def test_a_seq_with_a_fraction_is_passed_over_as_in_a_table_and_noted(spark: SparkSession, tmp_path: Path) -> None:
    strange = [
        item(queue, 0) | {"seq": {"N": number}} for queue, number in (("a", "1.5"), ("b", "0.5"), ("b", "1E+30"))
    ]
    made = make_export(tmp_path, [[item("a", seq) for seq in (0, 1, 2)] + strange, [item("b", 3), item("b", 4)]])
    origin = ExportOrigin(Storage(str(made.folder)))
    assert collected(spark, origin) == [("a", 0), ("a", 1), ("a", 2), ("b", 3), ("b", 4)]
    assert origin.no_slot == {"a": 1, "b": 2}
    assert origin.notes[0].startswith("passed over: 3 items whose seq is none, such as 1.5, in 2 queues")
    some = ExportOrigin(Storage(str(made.folder)), Selection(queues=("a",)))
    some.ranges(spark)
    assert some.no_slot == {"a": 1}


def test_a_backfill_notes_what_it_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path / "bucket", [[item("a", 0), item("a", 0) | {"seq": {"N": "0.5"}}, item("a", 1)]])
    argv = ["--export", str(made.folder), "--sink", "parquet", "--out", str(tmp_path / "out")]
    report = backfill(BackfillOptions.of(JobParser("backfill").parse_args(argv)), spark)
    assert report.complete
    assert rows(tmp_path / "out") == [("a", 0), ("a", 1)]
    assert any(note.startswith("passed over: 1 items") for note in report.notes)
    again = backfill(BackfillOptions.of(JobParser("backfill").parse_args(argv)), spark)
    assert any(note.startswith("passed over: 1 items") for note in again.notes)


def damage_nothing_listed(made: MadeExport) -> None:
    (made.folder / "manifest-files.json").unlink()


def damage_truncated(made: MadeExport) -> None:
    file = made.data()[0]
    file.write_bytes(file.read_bytes()[:-20])


def damage_truncated_with_its_own_md5(made: MadeExport) -> None:
    made.replace(made.data()[0].name, made.data()[0].read_bytes()[:-20], 30)


def damage_other_content(made: MadeExport) -> None:
    made.data()[0].write_bytes(gzip.compress(b'{"Item":{"queue":{"S":"a"},"seq":{"N":"1"}}}\n' * 30))


def damage_count_of_a_file(made: MadeExport) -> None:
    made.set_rows(row | {"itemCount": row["itemCount"] + (1, -1)[number]} for number, row in enumerate(made.rows()))


def damage_line(made: MadeExport, line: str) -> None:
    made.replace(
        made.data()[0].name,
        gzip.compress(f'{{"Item":{{"queue":{{"S":"a"}},"seq":{{"N":"0"}}}}}}\n{line}\n'.encode()),
        2,
    )


FAULTS = {
    "summary gone": (
        lambda made: (made.folder / "manifest-summary.json").unlink(),
        r"manifest-summary.json: not there",
    ),
    "files gone": (damage_nothing_listed, r"manifest-files.json: not there"),
    "summary is no JSON": (
        lambda made: (made.folder / "manifest-summary.json").write_text("{"),
        r"manifest-summary.json: its md5 is",
    ),
    "files are no JSON": (
        lambda made: (
            (made.folder / "manifest-files.json").write_text("no\n"),
            (made.folder / "manifest-files.md5").unlink(),
        ),
        r"manifest-files.json, line 1: is no JSON",
    ),
    "a row without a key": (
        lambda made: made.set_rows([{"itemCount": 3}]),
        "line 1: has no dataFileS3Key and itemCount",
    ),
    "a bad checksum": (
        lambda made: made.set_rows(row | {"md5Checksum": "x"} for row in made.rows()),
        "md5Checksum 'x' is no checksum",
    ),
    "listed twice": (lambda made: made.set_rows([*made.rows(), made.rows()[0]]), "abcdefghijklmnop.json.gz 2 times"),
    "data file gone": (lambda made: made.data()[0].unlink(), r"0000abcdefghijklmnop.json.gz: not there, though"),
    "truncated": (damage_truncated, r"0000abc.*truncated or changed: its md5 is"),
    "truncated, as listed": (damage_truncated_with_its_own_md5, r"0000abc.*the gzip stream breaks off"),
    "changed": (damage_other_content, r"0000abc.*truncated or changed: its md5 is"),
    "no gzip": (lambda made: made.replace(made.data()[0].name, b"no gzip", 1), "0000abc.*incorrect header check"),
    "count of a file": (damage_count_of_a_file, r"000[01]abc.*items, but its manifest says"),
    "count of all": (lambda made: made.set_summary(itemCount=7), "its files have 60 items, but .* says 7"),
    "a line that is no item": (lambda made: damage_line(made, '{"Keys":{}}'), r"line 2 is not {'Item': ...}"),
    "a line that is null": (lambda made: damage_line(made, "null"), r"0000abc.*line 2 is not {'Item': ...}"),
    "a line that is no JSON": (lambda made: damage_line(made, "{x"), "0000abc.*JSON parse error"),
    "seq as text": (
        lambda made: damage_line(made, '{"Item":{"queue":{"S":"a"},"seq":{"S":"1"}}}'),
        "line 2 has no 'seq' of type N; check --queue-key and --seq-key",
    ),
    "a time that is text": (
        lambda made: damage_line(made, '{"Item":{"queue":{"S":"a"},"seq":{"N":"1"},"_ss_at":{"S":"noon"}}}'),
        "line 2 has a '_ss_at' that is not a whole number",
    ),
    "another format": (
        lambda made: made.set_summary(outputFormat="ION"),
        "the format is 'ION'; export the table again",
    ),
    "an incremental one": (lambda made: made.set_summary(exportType="INCREMENTAL_EXPORT"), "which holds changes only"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_i9_a_damaged_export_is_named_before_anything_comes_out(
    spark: SparkSession, tmp_path: Path, fault: str
) -> None:
    made = make_export(tmp_path, [[item("a", seq) for seq in range(start, 60, 2)] for start in (0, 1)])
    damage, told = FAULTS[fault]
    damage(made)
    with pytest.raises(ExportDamaged, match=told) as caught:
        ExportOrigin(Storage(str(made.folder))).ranges(spark)
    assert caught.value.file.startswith(str(made.folder))


def test_two_exports_in_one_bucket_are_not_guessed_at(tmp_path: Path) -> None:
    make_export(tmp_path, [[item("a", 0)]])
    (tmp_path / "AWSDynamoDB" / "other").mkdir()
    (tmp_path / "AWSDynamoDB" / "other" / "manifest-summary.json").write_text("{}")
    with pytest.raises(ExportDamaged, match="2 exports are there; name the folder of one of them"):
        _ = ExportOrigin(Storage(str(tmp_path))).export


def test_a_file_that_changes_after_the_plan_stops_the_job(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path, [[item("a", seq) for seq in range(60)]])
    origin = ExportOrigin(Storage(str(made.folder)))
    parts = cut_parts(origin.ranges(spark), 100)
    damage_truncated(made)
    with pytest.raises((ExportDamaged, ReplayFailed), match="truncated or changed"):
        list(origin.run(spark, parts, lambda _, slots: [batch.num_rows for batch in slots]))
