"""The options of the data source: text in, checked values out. Names are read in any case, as Spark's own are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import SettingsError, shown
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.ranges import Selection, parse_time, queue_names, seq_number

if TYPE_CHECKING:
    from collections.abc import Mapping

ROWS_PER_PARTITION = 50_000
FAIL = "fail"
NULL = "null"

TABLE_OPTIONS = ("itemsTable", "cursorTable", "queueKey", "seqKey", "consistent", "maxReadUnits", "released")
RANGE_OPTIONS = ("queues", "fromSeq", "toSeq", "since", "until")
COMMON_OPTIONS = ("region", "endpointUrl", *RANGE_OPTIONS, "rowsPerPartition", "mode", "slots", "pushFilters")
STREAM_OPTIONS = ("maxRowsPerBatch", "startingPosition")
KNOWN = (*TABLE_OPTIONS, "archive", *COMMON_OPTIONS, *STREAM_OPTIONS)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a read of the format `stream_sort` was given: either tables or an archive, and what of it.

    Filters of Spark's narrow the selection; `asked` stays what the options say. The names of the keys are empty
    where nobody gave them, and none can be known: an archive does not say under which names its messages have them.
    """

    access: TableAccess | None
    archive: str | None
    selection: Selection
    asked: Selection
    queue_key: str = "queue"
    seq_key: str = "seq"
    region: str | None = None
    endpoint_url: str | None = None
    consistent: bool = True
    max_read_units: float | None = None
    rows_per_partition: int = ROWS_PER_PARTITION
    mode: str = FAIL
    slots: bool = False
    push_filters: bool = False
    max_rows_per_batch: int | None = None
    starting_position: str = "earliest"


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """Read the options; an unknown one is an error, not a typing mistake that nobody sees."""
    given = {_known(name): str(value) for name, value in given.items()}
    archive = given.get("archive")
    access = None if archive else _access(given)
    if archive and any(name in given for name in TABLE_OPTIONS if name not in {"queueKey", "seqKey"}):
        raise SettingsError("archive and the options of a table were both given; read one or the other")
    selection = _selection(given)
    return SourceOptions(
        access=access,
        archive=archive,
        selection=selection,
        asked=selection,
        queue_key=given.get("queueKey", "" if archive else "queue"),
        seq_key=given.get("seqKey", "" if archive else "seq"),
        region=given.get("region"),
        endpoint_url=given.get("endpointUrl"),
        consistent=_yes(given, "consistent", default=True),
        max_read_units=_rate(given),
        rows_per_partition=_count(given, "rowsPerPartition") or ROWS_PER_PARTITION,
        mode=_one_of(given, "mode", FAIL, NULL),
        slots=_yes(given, "slots", default=False),
        push_filters=_yes(given, "pushFilters", default=False),
        max_rows_per_batch=_count(given, "maxRowsPerBatch"),
        starting_position=_one_of(given, "startingPosition", "earliest", "latest"),
    )


def _known(name: str) -> str:
    for known in KNOWN:
        if known.lower() == name.lower():
            return known
    raise SettingsError(f"the format stream_sort has no option {shown(name)}; it knows {', '.join(sorted(KNOWN))}")


def _access(given: Mapping[str, str]) -> TableAccess:
    for name in ("itemsTable", "cursorTable"):
        if not given.get(name):
            raise SettingsError(f"the option {name} is missing; give itemsTable and cursorTable, or archive")
    return TableAccess(
        given["itemsTable"],
        given["cursorTable"],
        given.get("queueKey", "queue"),
        given.get("seqKey", "seq"),
        given.get("region"),
        given.get("endpointUrl"),
    )


def _selection(given: Mapping[str, str]) -> Selection:
    return Selection(
        queues=queue_names(given["queues"]) if "queues" in given else None,
        from_seq=seq_number(given["fromSeq"], "fromSeq") if "fromSeq" in given else None,
        to_seq=seq_number(given["toSeq"], "toSeq") if "toSeq" in given else None,
        since=parse_time(given["since"], "since") if "since" in given else None,
        until=parse_time(given["until"], "until") if "until" in given else None,
        released=_yes(given, "released", default=True),
    )


def _yes(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    if name not in given:
        return default
    return _one_of(given, name, "true", "false") == "true"


def _one_of(given: Mapping[str, str], name: str, *choices: str) -> str:
    value = given.get(name, choices[0]).lower()
    if value not in choices:
        raise SettingsError(f"{name} is {shown(given[name])}; it must be {' or '.join(map(repr, choices))}")
    return value


def _count(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    count = seq_number(given[name], name)
    if count < 1:
        raise SettingsError(f"{name} is {count}; it must be at least 1")
    return count


def _rate(given: Mapping[str, str]) -> float | None:
    if "maxReadUnits" not in given:
        return None
    try:
        return float(given["maxReadUnits"])
    except ValueError:
        raise SettingsError(f"maxReadUnits is {shown(given['maxReadUnits'])}; it must be a number") from None
