"""The archive bucket and the Spark application: there only when wanted, private, with the rights that jobs use."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from stream_sort.replay.engine.options import JobParser

MADE = {"Archive", "ArchivePolicy", "Spark", "SparkRole"}
# What jobs do, by what they do it with. Whoever adds to the role has to add it here, and say why there.
NEEDS = {
    "ItemsTable.Arn": {"dynamodb:BatchGetItem", "dynamodb:DescribeTable", "dynamodb:Query", "dynamodb:Scan"},
    "CursorTable.Arn": {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Scan", "dynamodb:UpdateItem"},
    "ControlTable.Arn": {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"},
    "${Archive.Arn}/*": {"s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"},
    "Archive.Arn": {"s3:GetBucketLocation", "s3:ListBucket"},
}
TRIM = {"dynamodb:BatchWriteItem", "dynamodb:DeleteItem"}


class Chosen:
    """The template's conditions under some parameters, all others at their defaults."""

    def __init__(self, template: dict[str, Any], defaults: dict[str, str], **given: str) -> None:
        self._template = template
        self._values = {**defaults, **given}

    def holds(self, condition: Any) -> bool:
        match condition:
            case str(name) | {"Condition": str(name)}:
                return self.holds(self._template["Conditions"][name])
            case {"Fn::Equals": [left, right]}:
                return self._value(left) == self._value(right)
            case {"Fn::And": parts}:
                return all(map(self.holds, parts))
            case {"Fn::Or": parts}:
                return any(map(self.holds, parts))
            case {"Fn::Not": [part]}:
                return not self.holds(part)
        raise AssertionError(condition)

    def there(self, section: str) -> set[str]:
        """The resources, or outputs, of such a stack."""
        parts = self._template[section].items()
        return {name for name, one in parts if "Condition" not in one or self.holds(one["Condition"])}

    def refusals(self) -> list[str]:
        """What CloudFormation would say before it makes anything."""
        rules = self._template["Rules"].values()
        asserted = [one for rule in rules if self.holds(rule["RuleCondition"]) for one in rule["Assertions"]]
        return [one["AssertDescription"] for one in asserted if not self.holds(one["Assert"])]

    def _value(self, part: Any) -> Any:
        return self._values[part["Ref"]] if isinstance(part, dict) else part


def target(resource: Any) -> str:
    match resource:
        case {"Fn::GetAtt": [name, attribute]}:
            return f"{name}.{attribute}"
        case {"Fn::Sub": text}:
            return str(text)
    raise AssertionError(resource)


def statements(template: dict[str, Any]) -> list[Any]:
    (policy,) = template["Resources"]["SparkRole"]["Properties"]["Policies"]
    found: list[Any] = policy["PolicyDocument"]["Statement"]
    return found


def test_a_stack_of_defaults_has_no_bucket_no_application_and_no_role_for_it(
    template: dict[str, Any], defaults: dict[str, str]
) -> None:
    stack = Chosen(template, defaults)
    assert not stack.there("Resources") & MADE
    assert not stack.there("Outputs") & {"ArchiveBucket", "SparkApplication", "SparkRole", "StartArchive"}
    assert stack.refusals() == []


def test_a_bucket_can_be_had_alone_and_the_application_with_it(
    template: dict[str, Any], defaults: dict[str, str]
) -> None:
    before = Chosen(template, defaults).there("Resources")
    alone = Chosen(template, defaults, ArchiveBucket="Enabled")
    both = Chosen(template, defaults, ArchiveBucket="Enabled", SparkApplication="Enabled")
    assert alone.there("Resources") == before | {"Archive", "ArchivePolicy"}
    assert both.there("Resources") == before | MADE
    assert alone.refusals() == both.refusals() == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"SparkApplication": "Enabled"}, "SparkApplication needs ArchiveBucket=Enabled"),
        ({"ArchiveTrim": "Enabled"}, "ArchiveTrim is a permission of SparkApplication"),
    ],
)
def test_what_makes_no_sense_alone_is_refused_before_anything_is_made(
    given: dict[str, str], said: str, template: dict[str, Any], defaults: dict[str, str]
) -> None:
    (refusal,) = Chosen(template, defaults, **given).refusals()
    assert refusal.startswith(said)


def test_jobs_may_do_what_they_need_and_nothing_else(template: dict[str, Any]) -> None:
    plain = [one for one in statements(template) if "Fn::If" not in one]
    assert {target(one["Resource"]): set(one["Action"]) for one in plain} == NEEDS
    assert {one["Effect"] for one in plain} == {"Allow"}


def test_jobs_may_delete_messages_only_if_the_stack_was_told_so(template: dict[str, Any]) -> None:
    (choice,) = (one["Fn::If"] for one in statements(template) if "Fn::If" in one)
    condition, allowed, otherwise = choice
    assert (condition, otherwise) == ("WithTrim", {"Ref": "AWS::NoValue"})
    assert (target(allowed["Resource"]), set(allowed["Action"])) == ("ItemsTable.Arn", TRIM)


def test_no_right_of_a_job_is_a_wildcard_and_none_can_destroy_a_version(template: dict[str, Any]) -> None:
    for one in statements(template):
        stated = one.get("Fn::If", [None, one])[1]
        assert not [action for action in stated["Action"] if "*" in action or "Version" in action]
        assert target(stated["Resource"]).split("/")[0] != "*"
    managed = template["Resources"]["SparkRole"]["Properties"]["ManagedPolicyArns"]
    assert managed == {"Fn::If": ["WithSparkPolicy", [{"Ref": "SparkPolicy"}], {"Ref": "AWS::NoValue"}]}


def test_only_emr_serverless_takes_on_the_role(template: dict[str, Any]) -> None:
    (trust,) = template["Resources"]["SparkRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "emr-serverless.amazonaws.com"}


def test_the_archive_is_private_encrypted_and_outlives_its_stack(template: dict[str, Any]) -> None:
    bucket = template["Resources"]["Archive"]
    properties = bucket["Properties"]
    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(properties["PublicAccessBlockConfiguration"]) == 4
    assert properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert "BucketName" not in properties, "a name of its own would be in the way of a second stack"


def test_a_segment_that_was_deleted_can_be_brought_back_and_no_rule_deletes_one(template: dict[str, Any]) -> None:
    properties = template["Resources"]["Archive"]["Properties"]
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    rules = properties["LifecycleConfiguration"]["Rules"]
    assert {name for rule in rules for name in rule} == {
        "Id",
        "Status",
        "AbortIncompleteMultipartUpload",
        "NoncurrentVersionExpiration",
    }


def test_the_archive_answers_over_tls_only(template: dict[str, Any]) -> None:
    (statement,) = template["Resources"]["ArchivePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert [target(one) for one in statement["Resource"]] == ["Archive.Arn", "${Archive.Arn}/*"]


def test_the_application_stops_by_itself_and_has_a_limit(template: dict[str, Any]) -> None:
    properties = template["Resources"]["Spark"]["Properties"]
    assert properties["AutoStopConfiguration"]["Enabled"] is True
    assert properties["AutoStopConfiguration"]["IdleTimeoutMinutes"] <= 15
    sizes = template["Mappings"]["SparkCapacity"]
    assert set(sizes) == set(template["Parameters"]["SparkSize"]["AllowedValues"])
    for part in ("Cpu", "Memory", "Disk"):
        assert properties["MaximumCapacity"][part] == {"Fn::FindInMap": ["SparkCapacity", {"Ref": "SparkSize"}, part]}


def test_the_output_that_starts_a_job_is_a_command_that_can_be_pasted(template: dict[str, Any]) -> None:
    said = template["Outputs"]["StartArchive"]["Value"]["Fn::Sub"]
    names = set(re.findall(r"\$\{([A-Za-z]+)", said))
    assert names <= set(template["Resources"]) | set(template["Parameters"])
    (driver,) = re.findall(r"--job-driver '([^']+)'", said)
    submit = json.loads(driver)["sparkSubmit"]
    assert submit["entryPoint"].endswith("/archive.py")
    assert JobParser("archive").parse_args(submit["entryPointArguments"]).archive == "s3://${Archive}/archive"
    assert "--py-files s3://${Archive}/code/stream_sort.zip" in submit["sparkSubmitParameters"]
