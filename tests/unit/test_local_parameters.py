"""A parameter that the template does not know is named before anything is started."""

import pytest

from stream_sort import InvalidInput
from stream_sort.local.parameters import check_parameters, known_parameters
from stream_sort.sinks.choose import SINKS


def test_the_parameters_are_those_of_the_template() -> None:
    known = known_parameters()
    assert {"QueueKey", "SeqKey", "FirstSeq", "Sink", "SinkTarget", "Handler", "LagAlarm"} <= known.keys()
    assert set(known["Sink"].allowed) == set(SINKS)
    assert known["OnPoison"].allowed == ("park", "dead_letter")
    assert known["SinkTarget"].allowed == ()


def test_what_the_template_allows_is_let_through() -> None:
    check_parameters({})
    check_parameters({"Sink": "kinesis", "FirstSeq": "7", "DeletionProtection": "true", "LogRetention": "30"})
    check_parameters({"GapPolicy": "skip after 2.5 seconds", "HandlerPolicy": "arn:aws:iam::000000000000:policy/mine"})


def test_an_empty_value_is_the_default_of_any_parameter() -> None:
    check_parameters(dict.fromkeys(known_parameters(), ""))


def test_what_a_pattern_allows_is_said_in_words() -> None:
    wordless = [name for name, known in known_parameters().items() if known.pattern != ".*" and not known.in_words]
    assert wordless == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"Foo": "1"}, "no parameter 'Foo'; see its section Parameters"),
        ({"sink": "log"}, "no parameter 'sink'"),
        ({"Sink": "kafka"}, "parameter Sink is 'kafka'; it must be one of .*sqs-fifo"),
        ({"MaxAttempts": "abc"}, "parameter MaxAttempts is 'abc'; it must be a number from 1 on"),
        ({"MaxAttempts": "0"}, "must be a number from 1 on"),
        ({"BatchSize": "10001"}, "must be a number from 1 to 10000"),
        ({"BatchSize": "nan"}, "must be a number"),
        ({"GapPolicy": "skip"}, 'parameter GapPolicy is \'skip\'; it must be "wait", or "skip after'),
        ({"KinesisSource": "Enabled"}, "'Enabled'; it must be the ARN of a Kinesis data stream, or empty"),
        ({"Start": "first"}, "it must be earliest, latest or a seq$"),
    ],
)
def test_what_it_does_not_know_is_named(given: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        check_parameters(given)
