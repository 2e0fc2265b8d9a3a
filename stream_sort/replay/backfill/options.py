"""The options of a backfill: source, range, sink; as values, and as a command line."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.aws.clients import make_client
from stream_sort.errors import SettingsError
from stream_sort.replay.backfill.targets.senders import SinkSender, TableSender
from stream_sort.replay.engine.options import (
    JobParser,
    Source,
    add_range,
    add_running,
    add_source,
    place_name,
    positive,
    selection_of,
    source_of,
)
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.ranges import ROWS_PER_PART
from stream_sort.replay.selection import Selection
from stream_sort.settings import Settings

if TYPE_CHECKING:
    import argparse

    from stream_sort.replay.backfill.targets.senders import Sender

FILE_SINKS = ("parquet", "jsonl")
DELIVERING_SINKS = ("table", "sqs-fifo", "kinesis", "lambda")
ON_GAP = ("fail", "report", "skip")
LEDGER_FOLDER = "_stream_sort"
BATCH_SIZE = 100
A_DAY = 86_400.0
# Small, because the record of a part is written anew with every commit.
QUEUES_TOGETHER = 10_000


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Where messages go: `out` of files, `target` of a sink, or another pair of tables."""

    sink: str
    out: str = ""
    gzip: bool = False
    target: str = ""
    to_items_table: str = ""
    to_cursor_table: str = ""
    to_endpoint_url: str | None = None
    to_region: str | None = None

    def __post_init__(self) -> None:
        if self.sink not in FILE_SINKS + DELIVERING_SINKS:
            raise SettingsError(f"--sink is {self.sink!r}; there are {', '.join(FILE_SINKS + DELIVERING_SINKS)}")
        needed = {"table": ("to_items_table", "to_cursor_table")}.get(self.sink, ("target",))
        for name in ("out",) if self.is_files else needed:
            if not getattr(self, name):
                raise SettingsError(f"--{name.replace('_', '-')} is missing; --sink {self.sink} needs it")
        for name in ("out", "target", "to_items_table", "to_cursor_table"):
            if getattr(self, name) and name not in (("out",) if self.is_files else needed):
                raise SettingsError(f"--{name.replace('_', '-')} does not go with --sink {self.sink}")
        if self.gzip and self.sink != "jsonl":
            raise SettingsError("--gzip is for --sink jsonl; Parquet files are compressed as they are")
        if self.out and "://" not in self.out:
            object.__setattr__(self, "out", os.path.abspath(self.out))  # noqa: PTH100  # text in, text out

    @property
    def is_files(self) -> bool:
        """Whether it writes files, in any order, or delivers."""
        return self.sink in FILE_SINKS

    @property
    def form(self) -> str:
        """How the files' names end."""
        return f"{self.sink}.gz" if self.gzip else self.sink

    def __str__(self) -> str:
        tables = f"tables {self.to_items_table} and {self.to_cursor_table}"
        return f"{self.sink} to {self.out or self.target or tables}"


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """A backfill. `consumer` joins the live stream at the end; without `checkpoint`, files keep it beside them."""

    source: Source
    sink: SinkOptions
    selection: Selection = field(default_factory=Selection)
    checkpoint: str = ""
    on_gap: str = "fail"
    until_position: bool = False
    consumer: str = ""
    rows_per_part: int = ROWS_PER_PART
    batch_size: int = BATCH_SIZE
    max_read_units: float | None = None
    consistent: bool = True
    quiet: bool = True

    def __post_init__(self) -> None:
        if self.on_gap not in ON_GAP:
            raise SettingsError(f"--on-gap is {self.on_gap!r}; there are {', '.join(ON_GAP)}")
        if not self.sink.is_files and not self.checkpoint:
            raise SettingsError(f"--checkpoint is missing: where a job to {self.sink.sink} notes what is delivered")
        if self.sink.sink == "table":
            self._check_tables()
        if self.selection.since is not None and self.selection.since > time.time() + A_DAY:
            raise SettingsError("--since is in the future: nothing can have arrived then")
        self._check_reading()
        self._check_join()

    def _check_reading(self) -> None:
        if self.source.kind == "table":
            return
        if self.max_read_units is not None:
            raise SettingsError("--max-read-units is for tables; an export or an archive costs no read units")
        if not self.consistent:
            raise SettingsError("--eventual is for tables; an export or an archive is what it is")

    def _check_tables(self) -> None:
        sink, source = self.sink, self.source
        shared = {sink.to_items_table, sink.to_cursor_table} & {source.items_table, source.cursor_table}
        if shared and self._is_one_place():
            raise SettingsError("the target tables are those of the source; name another pair")
        if self.selection.by_time:
            raise SettingsError("--since and --until leave gaps, and a table releases nothing behind a gap")

    def _is_one_place(self) -> bool:
        """Return whether source and target are in one region, at one endpoint, whichever way they were named."""
        sink, source = self.sink, self.source
        if sink.to_region is None and sink.to_endpoint_url is None:
            return True
        there, here = (
            make_client(Settings(), region=region, endpoint_url=endpoint).meta
            for region, endpoint in (
                (sink.to_region or source.region, sink.to_endpoint_url or source.endpoint_url),
                (source.region, source.endpoint_url),
            )
        )
        return bool((there.region_name, there.endpoint_url) == (here.region_name, here.endpoint_url))

    def _check_join(self) -> None:
        if self.until_position is not bool(self.consumer):
            raise SettingsError("--until-position and --consumer belong together: who goes on at the position?")
        if not self.until_position:
            return
        if self.source.kind != "table" or not self.source.control_table:
            raise SettingsError("--until-position needs --items-table, --cursor-table and --control-table")
        if (self.selection.from_seq, self.selection.to_seq) != (None, None) or self.selection.by_time:
            raise SettingsError(
                "--until-position replays everything up to the position: leave out --from-seq, --to-seq, --since and "
                "--until"
            )

    @property
    def ledger(self) -> Storage:
        """Where progress is kept."""
        where = self.checkpoint or f"{self.sink.out.rstrip('/')}/{LEDGER_FOLDER}"
        return Storage(where, endpoint_url=self.source.endpoint_url, region=self.source.region)

    @property
    def out(self) -> Storage:
        """Where files go."""
        return Storage(self.sink.out, endpoint_url=self.source.endpoint_url, region=self.source.region)

    def sender(self) -> Sender:
        """Return what delivers; by default where the source is."""
        sink, source = self.sink, self.source
        region, endpoint = sink.to_region or source.region, sink.to_endpoint_url or source.endpoint_url
        if sink.sink != "table":
            return SinkSender(sink.sink, sink.target, region, endpoint)
        tables = sink.to_items_table, sink.to_cursor_table
        return TableSender(TableAccess(*tables, source.queue_key, source.seq_key, region, endpoint))

    def identity(self) -> dict[str, Any]:
        """Return what makes it this job: whoever resumes must ask for the same."""
        wanted = asdict(self.selection)
        return {
            **asdict(self.source),
            **asdict(self.sink),
            "queue": wanted.pop("queues"),
            **wanted,
            "rows_per_part": self.rows_per_part,
            "until_position": self.until_position,
            "consumer": self.consumer,
        }


def backfill_parser() -> JobParser:
    """Return the command line of a backfill."""
    parser = JobParser(
        "backfill",
        "Replay ordered ranges of queues into files, tables or a sink.",
        "stream-sort backfill --stack orders --queue ada --sink jsonl --out history",
    )
    add_source(parser)
    add_range(parser)
    sink = parser.add_argument_group("sink")
    sink.add_argument("--sink", required=True, choices=FILE_SINKS + DELIVERING_SINKS, help="where messages go")
    sink.add_argument("--out", default="", metavar="DIR", help="the folder or bucket prefix for parquet and jsonl")
    sink.add_argument("--gzip", action="store_true", help="compress JSON lines")
    sink.add_argument("--target", default="", metavar="NAME", help="a queue's URL, a stream's or a function's name")
    sink.add_argument("--to-items-table", default="", metavar="NAME", help="for --sink table")
    sink.add_argument("--to-cursor-table", default="", metavar="NAME", help="for --sink table")
    sink.add_argument("--to-endpoint-url", metavar="URL", help="that of the source when left out")
    sink.add_argument("--to-region", metavar="NAME", help="that of the source when left out")
    job = parser.add_argument_group("job")
    job.add_argument(
        "--checkpoint", type=place_name, metavar="DIR", help="where progress is kept; files: DIR/_stream_sort"
    )
    job.add_argument("--on-gap", default="fail", choices=ON_GAP, help="what a hole does (%(default)s)")
    job.add_argument("--batch-size", type=positive, metavar="N", help=f"messages a commit, delivering ({BATCH_SIZE})")
    job.add_argument("--until-position", action="store_true", help="then let --consumer go on live, with no seam")
    job.add_argument("--consumer", default="", metavar="NAME", help="who goes on live; needs --control-table")
    job.add_argument("--dry-run", action="store_true", help="print the plan and its cost, read no message")
    add_running(parser, ROWS_PER_PART)
    return parser


def options_of(given: argparse.Namespace) -> BackfillOptions:
    """Return the backfill that a command line asks for."""
    source = source_of(given)
    sink = SinkOptions(**{name: getattr(given, name) for name in SinkOptions.__dataclass_fields__})
    _check_beside(given, source.kind)
    if given.batch_size is not None and sink.is_files:
        raise SettingsError("--batch-size is for sinks that deliver; the size of files is --rows-per-part")
    return BackfillOptions(
        source=source,
        sink=sink,
        selection=selection_of(given),
        checkpoint=given.checkpoint or "",
        on_gap=given.on_gap,
        until_position=given.until_position,
        consumer=given.consumer,
        rows_per_part=given.rows_per_part,
        batch_size=given.batch_size or BATCH_SIZE,
        max_read_units=given.max_read_units,
        consistent=not given.eventual,
        quiet=given.quiet,
    )


def _check_beside(given: argparse.Namespace, kind: str) -> None:
    """Raise for tables that nothing is read from; what a stack has told was not asked for."""
    if kind == "table" or given.stack:
        return
    for name in ("items_table", "cursor_table", "control_table"):
        if getattr(given, name):
            raise SettingsError(f"--{name.replace('_', '-')} is of no use beside --{kind}; leave it out")
