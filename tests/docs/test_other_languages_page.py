"""docs/other-languages.md names outputs that the stack has. What it shows runs in tests/local_stack."""

from __future__ import annotations

import re
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml

from tests.docs.pages import ROOT, page

PAGE = page("docs/other-languages.md").text
ALWAYS = "always"


@pytest.fixture(scope="module")
def outputs() -> Any:
    return cfn_yaml.load(str(ROOT / "template.yaml"))["Outputs"]


def test_the_outputs_of_the_table_are_there_when_it_says_so(outputs: Any) -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (.+) \|$", PAGE, re.MULTILINE)
    assert {name for name, _ in rows} == {"EnqueueQueueUrl", "ApiUrl", "EnqueueFunction", "SinkQueueUrl"}
    assert {name for name, when in rows if when != ALWAYS} == {name for name, _ in rows if "Condition" in outputs[name]}


def test_every_url_that_it_names_is_an_output(outputs: Any) -> None:
    assert set(re.findall(r"`(\w+Url)`", PAGE)) <= set(outputs)


def test_it_says_which_languages_are_run() -> None:
    shown = set(re.findall(r"^```(\w+)", PAGE, re.MULTILINE)) - {"text", "console"}
    assert shown == {"bash", "python", "typescript", "go"}
    assert "The Go is not run." in PAGE
