"""A parameter that the template does not know is named before anything is started."""

import pytest

from stream_sort import LocalStackFailed
from stream_sort.local.parameters import check_parameters, known_parameters
from stream_sort.sinks.choose import SINKS


def test_the_parameters_are_those_of_the_template() -> None:
    known = known_parameters()
    assert {"QueueKey", "SeqKey", "FirstSeq", "Sink", "SinkTarget", "Handler", "LagAlarm"} <= known.keys()
    assert set(known["Sink"]) == set(SINKS)
    assert known["OnPoison"] == ["park", "dead_letter"]
    assert known["SinkTarget"] == []


def test_what_the_template_allows_is_let_through() -> None:
    check_parameters({})
    check_parameters({"Sink": "kinesis", "FirstSeq": "7", "DeletionProtection": "true"})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"Foo": "1"}, "no parameter 'Foo'; there are .*QueueKey"),
        ({"sink": "log"}, "no parameter 'sink'"),
        ({"Sink": "kafka"}, "parameter Sink is 'kafka'; it must be one of .*sqs-fifo"),
    ],
)
def test_what_it_does_not_know_is_named(given: dict[str, str], problem: str) -> None:
    with pytest.raises(LocalStackFailed, match=problem):
        check_parameters(given)
