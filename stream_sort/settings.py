"""All settings, and the only reader of the environment."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self, get_type_hints

from stream_sort.errors import SettingsError, shown
from stream_sort.model.durations import seconds_in

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "STREAM_SORT_"


@dataclass(frozen=True, slots=True)
class EnvSettings:
    """One field a setting; `STREAM_SORT_` and its name in capitals is its environment variable."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float if kind is float else kind):
                raise SettingsError(f"{name} is {shown(value)}; it must be of type {kind.__name__}")
        self.check()

    def check(self) -> None:
        """Raise SettingsError where a value cannot work."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Read the environment; the tables' names must be there, all else has a default."""
        given = os.environ if environ is None else environ
        kinds = get_type_hints(cls)
        values: dict[str, Any] = {}
        for field in fields(cls):
            variable = PREFIX + field.name.upper()
            is_table = field.name.endswith("_table")
            if given.get(variable) or (variable in given and not is_table):
                values[field.name] = _read(variable, given[variable], kinds[field.name])
            elif is_table:
                raise SettingsError(f"{variable} is not set; it names the {field.name.replace('_', ' ')}")
        return cls(**values)

    def _one_of(self, name: str, *choices: str) -> None:
        value = getattr(self, name)
        if value not in choices:
            raise SettingsError(f"{name} is {value!r}; it must be {' or '.join(map(repr, choices))}")

    def _positive(self, *names: str) -> None:
        for name in names:
            if not 0 < getattr(self, name) < math.inf:
                raise SettingsError(f"{name} is {getattr(self, name)!r}; it must be greater than 0 and finite")


@dataclass(frozen=True, slots=True)
class Settings(EnvSettings):
    """The settings of a sorter."""

    items_table: str = "Items"
    cursor_table: str = "Cursor"
    queue_key: str = "queue"
    seq_key: str = "seq"
    first_seq: int = 0
    on_conflict: str = "report"
    gap_policy: str = "wait"
    deadline: float = 10.0
    max_advance: int = 1_000
    window: int = 1_000
    in_flight: int = 4

    def check(self) -> None:
        """Raise SettingsError where a value cannot work."""
        self._one_of("on_conflict", "report", "raise")
        self._positive("max_advance", "window", "in_flight", "deadline")


@dataclass(frozen=True, slots=True)
class EnqueueSettings(EnvSettings):
    """The settings of `enqueue` alone: the URL of an SQS queue for records that Kinesis would drop; empty for none."""

    dead_letters_url: str = ""


@dataclass(frozen=True, slots=True)
class ConsumerSettings(EnvSettings):
    """The settings of a consumer; `retry_queue_url` is empty where a nudge and the sweep wake it instead."""

    control_table: str = "Control"
    consumer: str = "process"
    batch_size: int = 100
    max_attempts: int = 5
    on_poison: str = "park"
    start: str = "earliest"
    retry_queue_url: str = ""

    def check(self) -> None:
        """Raise SettingsError where a value cannot work."""
        self._one_of("on_poison", "park", "dead_letter")
        self._positive("batch_size", "max_attempts")


@dataclass(frozen=True, slots=True)
class SinkSettings(EnvSettings):
    """Where `process` hands batches: to a handler of the user (`module:function`), or to a sink and its target.

    `items_arn` is the ARN of the items table, where it is known; the table's name and the consumer's are those of the
    other settings.
    """

    handler: str = ""
    sink: str = "log"
    sink_target: str = ""
    items_arn: str = ""
    items_table: str = "Items"
    consumer: str = "process"

    @property
    def sender(self) -> str:
        """Name who sends: no two consumers of a table have one name, nor two tables whose ARNs are known.

        Without `items_arn` two tables of one name, in two accounts or regions, are one sender.
        """
        return f"{self.items_arn or self.items_table} {self.consumer}"


def variables() -> dict[str, str]:
    """Return the STREAM_SORT_* variables that are set, for whoever puts options before them."""
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIX) and value}


def aws_region() -> str | None:
    """Return the region of AWS_REGION, which Lambda and the other SDKs use and boto3 does not read."""
    return os.environ.get("AWS_REGION") or None


def tracing_is_on() -> bool:
    """Return True if the functions send traces to X-Ray: STREAM_SORT_TRACING is `on`."""
    return os.environ.get(PREFIX + "TRACING", "").lower() in {"on", "true", "1"}


def metrics_namespace() -> str:
    """Under which name the functions publish their figures; Powertools' own variable, one for each stack."""
    return os.environ.get("POWERTOOLS_METRICS_NAMESPACE") or "StreamSort"


def _read(variable: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        must_be = "a whole number"
    if kind is float:
        # The only numbers that need not be whole are times.
        if (seconds := seconds_in(text)) is not None:
            return seconds
        must_be = "a number of seconds, or a duration such as 30s, 5m or 1h"
    raise SettingsError(f"{variable} is {text!r}; it must be {must_be}")
