"""The parameters of template.yaml: their names and the values they allow, read without CloudFormation's own parser."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput
from stream_sort.local.builds import PYTHON
from stream_sort.local.project import project_root
from stream_sort.model.alike import question
from stream_sort.model.durations import DAY, HOUR, MINUTE, SECOND, seconds_in

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION = re.compile(r"^Parameters:\n(.*?)^\S", re.MULTILINE | re.DOTALL)
PARAMETER = re.compile(r"^  (\w+):\n((?:    .*\n|\n)*)", re.MULTILINE)
# The first word of a description is what a number counts.
UNITS = {"Seconds": SECOND, "Days": DAY}
PROPERTY = re.compile(r"^    (\w+): (.*)$", re.MULTILINE)
# What the local AWS has no service for, and what to do instead.
NOT_HERE = {
    ("SparkApplication", "Enabled"): "the local AWS has no EMR Serverless; stream-sort backfill, audit and archive run "
    "Spark on this machine"
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """What the template says of one parameter; an empty list of `allowed` values allows any.

    `in_words` says what matches the pattern. `unit` is in what it counts, in seconds, if it is a time.
    """

    is_number: bool = False
    allowed: tuple[str, ...] = ()
    pattern: str = ".*"
    in_words: str = ""
    least: float = -math.inf
    most: float = math.inf
    unit: float | None = None
    default: str = ""

    @classmethod
    def read(cls, body: str) -> Parameter:
        """Read a parameter as it stands in the template."""
        said = dict(PROPERTY.findall(body))
        listed = said.get("AllowedValues", "").strip("[]")
        return cls(
            said.get("Type") == "Number",
            tuple(value.strip(" \"'") for value in listed.split(",")) if listed else (),
            said.get("AllowedPattern", ".*"),
            said.get("ConstraintDescription", "").removeprefix("must be "),
            float(said.get("MinValue", -math.inf)),
            float(said.get("MaxValue", math.inf)),
            UNITS.get(said.get("Description", "").partition(" ")[0]),
            said.get("Default", "").strip("\"'"),
        )

    def plain(self, value: str) -> str:
        """Return a duration, such as 5m, as the template takes it: in its unit, or as a rate; all else as it is."""
        seconds = seconds_in(value) if value and not value.isdecimal() else None
        if seconds is None:
            return value
        if self.unit is not None:
            return f"{seconds / self.unit:g}"
        return _rate(seconds) if self.default.startswith("rate(") and seconds % MINUTE == 0 else value

    def problem_with(self, value: str) -> str:
        """Return what a value would have to be; empty if it is allowed."""
        if self.allowed:
            return "" if value in self.allowed else f"one of {', '.join(self.allowed)}"
        if self.is_number:
            return "" if _is_within(value, self.least, self.most) else f"a number{self._bounds()}"
        return "" if re.fullmatch(self.pattern, value) else self.in_words

    def _bounds(self) -> str:
        most = "" if math.isinf(self.most) else f" to {self.most:g}"
        return "" if math.isinf(self.least) else f" from {self.least:g}{most or ' on'}"


def known_parameters() -> dict[str, Parameter]:
    """Return every parameter of the template."""
    found = SECTION.search((project_root() / "template.yaml").read_text(encoding="utf-8"))
    return {name: Parameter.read(body) for name, body in PARAMETER.findall(found[1] if found else "")}


def plain_values(given: Mapping[str, str]) -> dict[str, str]:
    """Return the values with durations, such as 5m, in the unit that the template counts in."""
    known = known_parameters() if given else {}
    return {name: known[name].plain(value) if name in known else value for name, value in given.items()}


def check_parameters(given: Mapping[str, str]) -> None:
    """Raise InvalidInput for a parameter that the template has not, or a value that cannot be deployed here.

    An empty value stands for the default.
    """
    known = known_parameters() if given else {}
    for name, value in given.items():
        if name not in known:
            meant = question(name, known) or "; see its section Parameters"
            raise InvalidInput(f"template.yaml has no parameter {name!r}{meant}")
        if value and (problem := known[name].problem_with(value)):
            raise InvalidInput(f"parameter {name} is {value!r}; it must be {problem}")
        if why := _not_here(name, value):
            raise InvalidInput(f"{name}={value} cannot be tried here: {why}")


def _not_here(name: str, value: str) -> str:
    if name == "PythonRuntime" and value not in {"", f"python{PYTHON}"}:
        return f"functions run on the Python that runs this command, which is {PYTHON}"
    return NOT_HERE.get((name, value), "")


def _rate(seconds: float) -> str:
    unit, word = (HOUR, "hour") if seconds % HOUR == 0 else (MINUTE, "minute")
    count = round(seconds / unit)
    return f"rate({count} {word}{'' if count == 1 else 's'})"


def _is_within(value: str, least: float, most: float) -> bool:
    try:
        return math.isfinite(float(value)) and least <= float(value) <= most
    except ValueError:
        return False
