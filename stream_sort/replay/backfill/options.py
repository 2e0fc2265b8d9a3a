"""The options of a backfill as values: source, range, sink; and which of them go together."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.aws.clients import make_client
from stream_sort.errors import SettingsError
from stream_sort.replay.backfill.targets.senders import SinkSender, TableSender
from stream_sort.replay.engine.options import BATCH_SIZE, DELIVERING_SINKS, FILE_SINKS, ON_GAP, option_name
from stream_sort.replay.engine.source import Source, check_unused, selection_of
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.ranges import ROWS_PER_PART, Selection
from stream_sort.settings import Settings

if TYPE_CHECKING:
    import argparse

    from stream_sort.replay.backfill.targets.senders import Sender
    from stream_sort.replay.files.storage import Storage

LEDGER_FOLDER = "_stream_sort"
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
                raise SettingsError(f"{option_name(name)} is missing; --sink {self.sink} needs it")
        for name in ("out", "target", "to_items_table", "to_cursor_table"):
            if getattr(self, name) and name not in (("out",) if self.is_files else needed):
                raise SettingsError(f"{option_name(name)} does not go with --sink {self.sink}")
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
        self.source.check_reading(max_read_units=self.max_read_units, consistent=self.consistent)
        self._check_join()

    @classmethod
    def of(cls, given: argparse.Namespace) -> BackfillOptions:
        """Return the backfill that a command line asks for."""
        source = Source.of(given)
        sink = SinkOptions(**{name: getattr(given, name) for name in SinkOptions.__dataclass_fields__})
        check_unused(given)
        if given.batch_size is not None and sink.is_files:
            raise SettingsError("--batch-size is for sinks that deliver; the size of files is --rows-per-part")
        return cls(
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

    def _check_tables(self) -> None:
        sink, source = self.sink, self.source
        shared = {sink.to_items_table, sink.to_cursor_table} & {source.items_table, source.cursor_table}
        if shared and self._is_one_place():
            raise SettingsError("the target tables are those of the source; name another pair")
        if self.selection.by_time:
            raise SettingsError("--since and --until leave gaps, and a table releases nothing behind a gap")

    def _is_one_place(self) -> bool:
        """Return True if source and target are in one region, at one endpoint, whichever way they were named."""
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
        return self.source.place(self.checkpoint or f"{self.sink.out.rstrip('/')}/{LEDGER_FOLDER}")

    @property
    def out(self) -> Storage:
        """Where files go."""
        return self.source.place(self.sink.out)

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
