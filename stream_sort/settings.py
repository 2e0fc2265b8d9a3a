"""All settings, and the only reader of the environment."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_type_hints

from stream_sort.errors import SettingsError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "STREAM_SORT_"


@dataclass(frozen=True, slots=True)
class Settings:
    """One field a setting; `STREAM_SORT_` and its name in capitals is its environment variable."""

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

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float if kind is float else kind):
                raise SettingsError(f"{name} is {shown(value)}; it must be of type {kind.__name__}")
        if self.on_conflict not in {"report", "raise"}:
            raise SettingsError(f"on_conflict is {self.on_conflict!r}; it must be 'report' or 'raise'")
        for name in ("max_advance", "window", "in_flight", "deadline"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingsError(f"{name} is {getattr(self, name)!r}; it must be greater than 0 and finite")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read the environment; the tables' names must be there, all else has a default."""
        given = os.environ if environ is None else environ
        kinds = get_type_hints(cls)
        values: dict[str, Any] = {}
        for field in fields(cls):
            variable = PREFIX + field.name.upper()
            if variable in given:
                values[field.name] = _read(variable, given[variable], kinds[field.name])
        for name in ("items_table", "cursor_table"):
            if not values.get(name):
                raise SettingsError(f"{PREFIX}{name.upper()} is not set; it names the {name.replace('_', ' ')}")
        return cls(**values)


def aws_region() -> str | None:
    """The region of AWS_REGION, which Lambda and the other SDKs use and boto3 does not read."""
    return os.environ.get("AWS_REGION") or None


def _read(variable: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise SettingsError(f"{variable} is {text!r}; it must be {'a whole ' if kind is int else 'a '}number") from None
