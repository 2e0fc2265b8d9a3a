"""What the template tells the functions is what the settings understand, and its defaults are theirs."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from stream_sort.local import builds
from stream_sort.settings import (
    PREFIX,
    ConsumerSettings,
    EnqueueSettings,
    EnvSettings,
    Settings,
    SinkSettings,
    tracing_is_on,
)
from stream_sort.sinks.choose import SINKS

ROOT = Path(__file__).parents[2]
KINDS: tuple[type[EnvSettings], ...] = (Settings, EnqueueSettings, ConsumerSettings, SinkSettings)
READS = {
    "enqueue": {Settings, EnqueueSettings},
    "advance": {Settings},
    "process": {Settings, ConsumerSettings, SinkSettings},
    "sweep": {Settings, ConsumerSettings},
}
# These differ on purpose: the app works with no code written, so it has a sink.
OTHER_DEFAULTS = {"STREAM_SORT_SINK": "sqs-fifo"}


# Read by all of them, before there are settings.
TRACING = "STREAM_SORT_TRACING"


def variables(kinds: set[type[EnvSettings]]) -> dict[str, str]:
    return {PREFIX + field.name.upper(): str(field.default) for kind in kinds for field in fields(kind)}


def environment(resources: dict[str, Any], step: str) -> dict[str, Any]:
    found: dict[str, Any] = resources[f"{step.title()}Function"]["Properties"]["Environment"]["Variables"]
    return found


@pytest.mark.parametrize("step", READS)
def test_a_function_is_told_nothing_that_its_settings_do_not_know(step: str, resources: dict[str, Any]) -> None:
    told = {name for name in environment(resources, step) if name.startswith(PREFIX)}
    assert told <= set(variables(READS[step])) | {TRACING}


@pytest.mark.parametrize("step", READS)
def test_a_function_is_told_the_names_of_its_tables(step: str, resources: dict[str, Any]) -> None:
    told = environment(resources, step)
    for name in variables(READS[step]):
        if name.endswith("_TABLE"):
            kind = name.removeprefix(PREFIX).removesuffix("_TABLE").title()
            assert told[name] == {"Ref": f"{kind}Table"}


@pytest.mark.parametrize("step", READS)
def test_the_defaults_of_the_template_are_those_of_the_code(
    step: str, resources: dict[str, Any], defaults: dict[str, str]
) -> None:
    known = variables(READS[step]) | OTHER_DEFAULTS
    for name, value in environment(resources, step).items():
        if name.startswith(PREFIX) and isinstance(value, dict) and value.get("Ref") in defaults:
            assert defaults[value["Ref"]] == known[name], name


def test_the_settings_accept_every_default(defaults: dict[str, str]) -> None:
    for kind in KINDS:
        given = {PREFIX + "ITEMS_TABLE": "abc", PREFIX + "CURSOR_TABLE": "abd", PREFIX + "CONTROL_TABLE": "abe"}
        for field in fields(kind):
            parameter = "".join(part.title() for part in field.name.split("_"))
            if parameter in defaults:
                given[PREFIX + field.name.upper()] = defaults[parameter]
        assert kind.from_env(given)


@pytest.mark.parametrize("step", READS)
def test_one_parameter_makes_lambda_and_the_code_trace(
    step: str, resources: dict[str, Any], defaults: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resources[f"{step.title()}Function"]["Properties"]["TracingConfig"] == {"Mode": {"Ref": "Tracing"}}
    condition, when_active, otherwise = environment(resources, step)[TRACING]["Fn::If"]
    assert (condition, defaults["Tracing"]) == ("WithTracing", "PassThrough")
    for value, expected in ((when_active, True), (otherwise, False)):
        monkeypatch.setenv(TRACING, value)
        assert tracing_is_on() is expected


def test_enqueue_is_told_where_poison_of_kinesis_is_kept(resources: dict[str, Any]) -> None:
    assert environment(resources, "enqueue")["STREAM_SORT_DEAD_LETTERS_URL"] == {"Ref": "EnqueueDeadLetters"}


def test_process_is_told_whose_messages_it_sends(resources: dict[str, Any]) -> None:
    assert environment(resources, "process")["STREAM_SORT_ITEMS_ARN"] == {"Fn::GetAtt": ["ItemsTable", "Arn"]}


def test_the_sinks_of_the_template_are_those_of_the_code(template: dict[str, Any]) -> None:
    assert set(template["Parameters"]["Sink"]["AllowedValues"]) == set(SINKS)
    assert set(template["Mappings"]["SinkAction"]) == set(SINKS)


def test_every_function_has_the_name_of_its_step(template: dict[str, Any], resources: dict[str, Any]) -> None:
    functions = {name for name, one in resources.items() if one["Type"] == "AWS::Lambda::Function"}
    assert functions == {f"{step.title()}Function" for step in READS}
    for step in READS:
        source = template["Resources"][f"{step.title()}Function"]["Properties"]["CodeUri"]
        assert source == f"functions/{step}/"
        assert (ROOT / source / "app.py").is_file()
        assert environment(resources, step)["POWERTOOLS_SERVICE_NAME"] == step


def test_versions_are_the_same_wherever_they_are_written(template: dict[str, Any]) -> None:
    makefile = (ROOT / "Makefile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    runtime = template["Parameters"]["PythonRuntime"]
    classifiers = [re.fullmatch(r".* Python :: (3\.\d+)", one) for one in project["classifiers"]]
    pythons = [f"python{found[1]}" for found in classifiers if found]
    assert re.findall(r"^LAMBDA_PYTHON \?= (.+)$", makefile, re.MULTILINE) == [
        runtime["Default"].removeprefix("python")
    ]
    assert re.findall(r"^SAM_VERSION := (.+)$", makefile, re.MULTILINE) == [builds.SAM_VERSION]
    assert runtime["AllowedValues"] == pythons
    assert template["Resources"]["StreamSortLayer"]["Properties"]["CompatibleRuntimes"] == pythons
