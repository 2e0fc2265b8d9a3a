"""Where a job reads: what its options name, whether that is there, and the origin that it makes. Loads no Spark."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput, SettingsError
from stream_sort.model.message import KeyNames
from stream_sort.replay.engine.options import TABLES, option_name
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.origins.archive.manifest import QUEUES
from stream_sort.replay.origins.archive.owner import NAME
from stream_sort.replay.origins.rate import Rate, RateKeeper
from stream_sort.replay.ranges import Selection, parse_time, seq_number
from stream_sort.settings import PREFIX

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

    from stream_sort.replay.origins.origin import Origin


@dataclass(frozen=True, slots=True)
class Source:
    """Where history is read from: a pair of tables, a point-in-time export or an archive.

    Tables may also be named beside an export or an archive, for what a job needs besides the messages.
    """

    items_table: str = ""
    cursor_table: str = ""
    control_table: str = ""
    queue_key: str = "queue"
    seq_key: str = "seq"
    endpoint_url: str | None = None
    region: str | None = None
    export: str = ""
    archive: str = ""

    def __post_init__(self) -> None:
        if self.export and self.archive:
            raise SettingsError("--export and --archive are both given; history is read from one place")
        for name in ("items_table", "cursor_table"):
            if self.kind == "table" and not getattr(self, name):
                raise missing_table(name, "; or read --export or --archive")

    @classmethod
    def of(cls, given: argparse.Namespace) -> Source:
        """Return the source that the options name."""
        named = {name: getattr(given, name) for name in cls.__dataclass_fields__}
        return cls(**{name: value for name, value in named.items() if value})

    @property
    def kind(self) -> str:
        """`table`, `export` or `archive`."""
        return "export" if self.export else "archive" if self.archive else "table"

    @property
    def keys(self) -> KeyNames:
        """The names under which messages carry queue and seq."""
        return KeyNames(self.queue_key, self.seq_key)

    @property
    def access(self) -> TableAccess:
        """The tables that it names."""
        keys = self.queue_key, self.seq_key
        return TableAccess(self.items_table, self.cursor_table, *keys, self.region, self.endpoint_url)

    @property
    def storage(self) -> Storage:
        """The files that it names."""
        return self.place(self.export or self.archive)

    def place(self, uri: str) -> Storage:
        """Return files at an address, reached as the source is."""
        return Storage(uri, endpoint_url=self.endpoint_url, region=self.region)

    def __str__(self) -> str:
        if self.kind == "table":
            return f"tables {self.items_table} and {self.cursor_table}"
        return f"{self.kind} {self.export or self.archive}"

    def check_reading(self, *, max_read_units: float | None, consistent: bool) -> None:
        """Raise SettingsError for options that only tables have a use for."""
        if self.kind != "table" and max_read_units is not None:
            raise SettingsError("--max-read-units is for tables; an export or an archive costs no read units")
        if self.kind != "table" and not consistent:
            raise SettingsError("--eventual is for tables; an export or an archive is what it is")

    def check_there(self) -> None:
        """Raise unless the export or the archive is there; tables are asked when they are read."""
        if self.kind == "export":
            # Loads what only exports need.
            from stream_sort.replay.origins.export.manifest import open_export  # noqa: PLC0415

            open_export(self.storage)
        # One small file first: to list an archive takes a while.
        elif self.kind == "archive" and not self.storage.exists(NAME) and not self.storage.list(QUEUES):
            raise InvalidInput(f"there is no archive at {self.archive}: check the address")

    def origin(self, selection: Selection, *, consistent: bool = True) -> Origin:
        """Return what a selection wants of the source."""
        if self.kind == "table":
            from stream_sort.replay.origins.table import TableOrigin  # noqa: PLC0415  # one of three is loaded

            return TableOrigin(self.access, selection, consistent)
        if self.kind == "archive":
            from stream_sort.replay.origins.archive.origin import ArchiveOrigin  # noqa: PLC0415  # as above

            return ArchiveOrigin(self.storage, selection)
        from stream_sort.replay.origins.export.origin import ExportOrigin  # noqa: PLC0415  # as above

        return ExportOrigin(self.storage, selection, self.keys)


def missing_table(name: str, otherwise: str = "") -> SettingsError:
    """Return the error where nothing names a table that is needed."""
    told = f"give it, or {PREFIX}{name.upper()}, or --stack NAME{otherwise}"
    return SettingsError(f"{option_name(name)} is missing; {told}")


def check_unused(given: argparse.Namespace, names: tuple[str, ...] = tuple(TABLES)) -> None:
    """Raise SettingsError for options that files have no use for; what a stack names was not asked for."""
    kind = "export" if given.export else "archive"
    for name in () if given.stack or not (given.export or given.archive) else names:
        if getattr(given, name):
            raise SettingsError(f"{option_name(name)} is of no use beside --{kind}; leave it out")


def selection_of(given: argparse.Namespace) -> Selection:
    """Return the selection that the options make."""
    return Selection(
        queues=tuple(given.queue) if given.queue else None,
        from_seq=None if given.from_seq is None else seq_number(given.from_seq, "--from-seq"),
        to_seq=None if given.to_seq is None else seq_number(given.to_seq, "--to-seq"),
        since=None if given.since is None else parse_time(given.since, "--since"),
        until=None if given.until is None else parse_time(given.until, "--until"),
    )


def job_rate(units_a_second: float | None, spark: SparkSession) -> Rate | None:
    """Return the rate that all tasks of a job keep to together, if there is to be one."""
    if units_a_second is None:
        return None
    host = spark.sparkContext.getConf().get("spark.driver.host", "127.0.0.1")
    # Lives as long as this process: tasks may ask until the last one has ended.
    return Rate(units_a_second, RateKeeper(host or "127.0.0.1").address)


def check_writable(option: str, uri: str) -> None:
    """Raise SettingsError if a folder of this machine takes no file; leaves nothing there. Buckets are not tried."""
    where = Storage(uri).canonical
    if "://" in where:
        return
    folder, made = Path(where), list[Path]()
    try:
        made += [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SettingsError(f"{option} {uri}: it cannot be written to: {error.strerror}") from error
    finally:
        for one in made:
            with suppress(OSError):
                one.rmdir()
