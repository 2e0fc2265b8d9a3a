"""Alarms as CloudWatch evaluates them, over figures of our own making.

Every minute, over windows that end now: with a period of 5 minutes, at minute 6 over minutes 2 to 6.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from dataclasses import dataclass
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MINUTE = 60.0
OK, ALARM = "OK", "ALARM"
STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {"Maximum": max, "Minimum": min, "Sum": sum}
COMPARISONS = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
}
Figure = tuple[float, float]


def resolved(value: Any, template: dict[str, Any], parameters: dict[str, str]) -> Any:
    """A value of the template, with its parameters filled in and its conditions decided."""
    match value:
        case {"Ref": name}:
            return parameters.get(name, name)
        case {"Fn::If": [condition, yes, no]}:
            chosen = yes if _decided(template["Conditions"][condition], parameters) else no
            return resolved(chosen, template, parameters)
    return value


def _decided(condition: dict[str, Any], parameters: dict[str, str]) -> bool:
    left, right = condition["Fn::Equals"]
    return bool(parameters[left["Ref"]] == right)


@dataclass(frozen=True, slots=True)
class Alarm:
    """What an alarm demands."""

    statistic: str
    period: int
    windows: int
    needed: int
    comparison: str
    threshold: float
    missing: str

    @classmethod
    def of(cls, properties: dict[str, Any], template: dict[str, Any], parameters: dict[str, str]) -> Alarm:
        def number(name: str, default: Any = None) -> float:
            return float(resolved(properties.get(name, default), template, parameters))

        windows = int(number("EvaluationPeriods"))
        return cls(
            properties["Statistic"],
            int(number("Period")),
            windows,
            int(number("DatapointsToAlarm", windows)),
            properties["ComparisonOperator"],
            number("Threshold"),
            properties["TreatMissingData"],
        )

    @property
    def length(self) -> float:
        """The seconds that one evaluation looks back."""
        return float(self.period * self.windows)

    def states(self, figures: list[Figure], until: float) -> list[tuple[float, str]]:
        """When the alarm came into which state; it begins as OK. Figures are in the order of their times."""
        states, state = [(0.0, OK)], OK
        for minute in range(1, int(until / MINUTE)):
            state = self._state(figures, minute * MINUTE, state)
            states.append((minute * MINUTE, state))
        return [next(group) for _, group in groupby(states, key=lambda one: one[1])]

    def _state(self, figures: list[Figure], now: float, before: str) -> str:
        breaching = [self._breaches(figures, now - window * self.period) for window in range(self.windows)]
        if None in breaching and self.missing == "ignore":
            return before
        assert self.missing in {"ignore", "notBreaching"}
        return ALARM if sum(one is True for one in breaching) >= self.needed else OK

    def _breaches(self, figures: list[Figure], end: float) -> bool | None:
        first, last = (bisect_left(figures, (at, -inf)) for at in (end - self.period, end))
        values = [value for _, value in figures[first:last]]
        if not values:
            return None
        return bool(COMPARISONS[self.comparison](STATISTICS[self.statistic](values), self.threshold))
