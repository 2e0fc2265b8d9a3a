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
    """What a read of the format `stream_sort` was told: either tables or an archive, and what of it.

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
    told = {_known(name): str(value) for name, value in given.items()}
    archive = told.get("archive")
    access = None if archive else _access(told)
    if archive and any(name in told for name in TABLE_OPTIONS if name not in {"queueKey", "seqKey"}):
        raise SettingsError("archive and the options of a table were both given; read one or the other")
    selection = _selection(told)
    return SourceOptions(
        access=access,
        archive=archive,
        selection=selection,
        asked=selection,
        queue_key=told.get("queueKey", "" if archive else "queue"),
        seq_key=told.get("seqKey", "" if archive else "seq"),
        region=told.get("region"),
        endpoint_url=told.get("endpointUrl"),
        consistent=_yes(told, "consistent", default=True),
        max_read_units=_rate(told),
        rows_per_partition=_count(told, "rowsPerPartition") or ROWS_PER_PARTITION,
        mode=_one_of(told, "mode", FAIL, NULL),
        slots=_yes(told, "slots", default=False),
        push_filters=_yes(told, "pushFilters", default=False),
        max_rows_per_batch=_count(told, "maxRowsPerBatch"),
        starting_position=_one_of(told, "startingPosition", "earliest", "latest"),
    )


def _known(name: str) -> str:
    for known in KNOWN:
        if known.lower() == name.lower():
            return known
    raise SettingsError(f"the format stream_sort has no option {shown(name)}; it knows {', '.join(sorted(KNOWN))}")


def _access(told: Mapping[str, str]) -> TableAccess:
    for name in ("itemsTable", "cursorTable"):
        if not told.get(name):
            raise SettingsError(f"the option {name} is missing; give itemsTable and cursorTable, or archive")
    return TableAccess(
        told["itemsTable"],
        told["cursorTable"],
        told.get("queueKey", "queue"),
        told.get("seqKey", "seq"),
        told.get("region"),
        told.get("endpointUrl"),
    )


def _selection(told: Mapping[str, str]) -> Selection:
    return Selection(
        queues=queue_names(told["queues"]) if "queues" in told else None,
        from_seq=seq_number(told["fromSeq"], "fromSeq") if "fromSeq" in told else None,
        to_seq=seq_number(told["toSeq"], "toSeq") if "toSeq" in told else None,
        since=parse_time(told["since"], "since") if "since" in told else None,
        until=parse_time(told["until"], "until") if "until" in told else None,
        released=_yes(told, "released", default=True),
    )


def _yes(told: Mapping[str, str], name: str, *, default: bool) -> bool:
    if name not in told:
        return default
    return _one_of(told, name, "true", "false") == "true"


def _one_of(told: Mapping[str, str], name: str, *choices: str) -> str:
    value = told.get(name, choices[0]).lower()
    if value not in choices:
        raise SettingsError(f"{name} is {shown(told[name])}; it must be {' or '.join(map(repr, choices))}")
    return value


def _count(told: Mapping[str, str], name: str) -> int | None:
    if name not in told:
        return None
    count = seq_number(told[name], name)
    if count < 1:
        raise SettingsError(f"{name} is {count}; it must be at least 1")
    return count


def _rate(told: Mapping[str, str]) -> float | None:
    if "maxReadUnits" not in told:
        return None
    try:
        return float(told["maxReadUnits"])
    except ValueError:
        raise SettingsError(f"maxReadUnits is {shown(told['maxReadUnits'])}; it must be a number") from None
