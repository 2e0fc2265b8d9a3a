"""docs/deploy-with-cdk-or-terraform.md names parameters, resources and outputs that template.yaml has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml

from stream_sort.local.builds import SAM_VERSION
from stream_sort.local.parameters import check_parameters
from tests.docs.pages import ROOT, page

PAGE = page("docs/deploy-with-cdk-or-terraform.md")
# The most that CloudFormation takes in a request, and the most from a bucket.
IN_A_REQUEST, FROM_A_BUCKET = 51_200, 1_048_576


@pytest.fixture(scope="module")
def template() -> Any:
    return cfn_yaml.load(str(ROOT / "template.yaml"))


def block(language: str) -> str:
    (found,) = PAGE.blocks(language)
    return found


def parameters(text: str) -> dict[str, str]:
    """What an example passes on."""
    (listed,) = re.findall(r"\bparameters = \{(.*?)\}", text, re.DOTALL)
    return {name: value.strip('"') for name, value in re.findall(r"(\w+)\s*[:=]\s*(\"[^\"]*\"|\d+)", listed)}


@pytest.mark.parametrize("language", ["typescript", "hcl"])
def test_an_example_passes_parameters_that_the_template_takes(language: str) -> None:
    given = parameters(block(language))
    assert given == {"GapPolicy": "skip after 1h", "OnPoison": "dead_letter", "LogRetention": "90"}
    check_parameters(given)


def test_outputs_and_resources_of_the_examples_are_there(template: Any) -> None:
    outputs = re.findall(r"outputs\[\"(\w+)\"\]", PAGE.text)
    assert set(outputs) == {"EnqueueQueueUrl", "SinkQueueUrl"}
    assert set(outputs) <= set(template["Outputs"])
    assert re.findall(r"getResource\(\"(\w+)\"\)", PAGE.text) == ["EnqueueQueue"]
    assert "EnqueueQueue" in template["Resources"]


def test_the_resources_that_cdk_cannot_read_are_those_with_a_destination_for_failures_only(template: Any) -> None:
    (listed,) = re.findall(r"dehydratedResources = \[(.*?)\]", block("typescript"))
    named = [name for name, one in template["Resources"].items() if "EventInvokeConfig" in one["Properties"]]
    assert sorted(re.findall(r"\w+", listed)) == sorted(named)
    assert "Fn::ForEach" not in json.dumps(template), "CfnInclude does not take it; see the page"


def test_the_template_is_too_large_for_a_request_and_small_enough_for_a_bucket() -> None:
    assert f"{IN_A_REQUEST:,} bytes" in PAGE.text
    assert IN_A_REQUEST < (ROOT / "template.yaml").stat().st_size < FROM_A_BUCKET


def test_the_capabilities_are_those_that_the_template_needs(template: Any) -> None:
    assert template["Transform"]
    roles = [one for one in template["Resources"].values() if one["Type"] == "AWS::IAM::Role"]
    assert roles
    assert not any("RoleName" in one["Properties"] for one in roles), "a named role needs CAPABILITY_NAMED_IAM"
    assert 'capabilities = ["CAPABILITY_AUTO_EXPAND", "CAPABILITY_IAM"]' in block("hcl")


def test_the_sam_of_the_page_is_the_one_that_builds() -> None:
    assert f"aws-sam-cli=={SAM_VERSION} sam" in PAGE.text
    assert f"SAM_VERSION := {SAM_VERSION}" in (ROOT / "Makefile").read_text()


def test_the_terraform_is_well_formed() -> None:
    terraform = shutil.which("terraform")
    if terraform is None:
        pytest.skip("there is no terraform")
    formatted = subprocess.run(
        [terraform, "fmt", "-"], input=block("hcl"), capture_output=True, text=True, timeout=60, check=False
    )
    assert (formatted.returncode, formatted.stdout) == (0, block("hcl")), formatted.stderr
