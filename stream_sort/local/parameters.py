"""The parameters of template.yaml: their names and the values they allow, read without CloudFormation's own parser."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput
from stream_sort.local.project import project_root

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION = re.compile(r"^Parameters:\n(.*?)^\S", re.MULTILINE | re.DOTALL)
PARAMETER = re.compile(r"^  (\w+):\n((?:    .*\n|\n)*)", re.MULTILINE)
PROPERTY = re.compile(r"^    (\w+): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Parameter:
    """What the template says of one parameter; an empty list of `allowed` values allows any."""

    is_number: bool = False
    allowed: tuple[str, ...] = ()
    pattern: str = ".*"
    least: float = -math.inf
    most: float = math.inf

    @classmethod
    def read(cls, body: str) -> Parameter:
        """A parameter as it stands in the template."""
        said = dict(PROPERTY.findall(body))
        listed = said.get("AllowedValues", "").strip("[]")
        return cls(
            said.get("Type") == "Number",
            tuple(value.strip(" \"'") for value in listed.split(",")) if listed else (),
            said.get("AllowedPattern", ".*"),
            float(said.get("MinValue", -math.inf)),
            float(said.get("MaxValue", math.inf)),
        )

    def problem_with(self, value: str) -> str:
        """What a value would have to be; empty if it is allowed."""
        if self.allowed:
            return "" if value in self.allowed else f"one of {', '.join(self.allowed)}"
        if self.is_number:
            return "" if _is_within(value, self.least, self.most) else f"a number{self._bounds()}"
        return "" if re.fullmatch(self.pattern, value) else f"as {self.pattern} has it"

    def _bounds(self) -> str:
        most = "" if math.isinf(self.most) else f" to {self.most:g}"
        return "" if math.isinf(self.least) else f" from {self.least:g}{most or ' on'}"


def known_parameters() -> dict[str, Parameter]:
    """Every parameter of the template."""
    found = SECTION.search((project_root() / "template.yaml").read_text(encoding="utf-8"))
    return {name: Parameter.read(body) for name, body in PARAMETER.findall(found[1] if found else "")}


def check_parameters(given: Mapping[str, str]) -> None:
    """Raise InvalidInput for a parameter that the template has not, or a value that it does not allow.

    An empty value stands for the default.
    """
    known = known_parameters() if given else {}
    for name, value in given.items():
        if name not in known:
            raise InvalidInput(f"template.yaml has no parameter {name!r}; there are {', '.join(known)}")
        if value and (problem := known[name].problem_with(value)):
            raise InvalidInput(f"parameter {name} is {value!r}; it must be {problem}")


def _is_within(value: str, least: float, most: float) -> bool:
    try:
        return math.isfinite(float(value)) and least <= float(value) <= most
    except ValueError:
        return False
