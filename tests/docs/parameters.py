"""Write docs/parameters.md, the table of all parameters of template.yaml: `python -m tests.docs.parameters`."""

from __future__ import annotations

from typing import Any

from cfnlint.decode import cfn_yaml

from tests.docs.pages import DOCS, ROOT

TARGET = DOCS / "parameters.md"
BEGINNING = """# Template parameters

Every parameter of `template.yaml` has a default. `make deploy` asks for them and remembers the answers in
`samconfig.toml`; `stream-sort local up --set NAME=VALUE` tries one on this machine. For a parameter that counts seconds
or days, and for `SweepSchedule`, `--set` also takes a duration, such as `5m` or `2h`.

(This page is made from `template.yaml`: `.venv/bin/python -m tests.docs.parameters` writes it anew.)
"""
RULES = """
## What belongs together

CloudFormation refuses a deployment that breaks one of these rules:

"""
HEAD = "| parameter | type | default | allowed | description |\n| --- | --- | --- | --- | --- |\n"


def page() -> str:
    """Return the page as the template has it now."""
    template = cfn_yaml.load(str(ROOT / "template.yaml"))
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    known = template["Parameters"]
    tables = (
        _table(group["Label"]["default"], {name: known[name] for name in group["Parameters"]}) for group in groups
    )
    rules = (_rule(assertion) for rule in template["Rules"].values() for assertion in rule["Assertions"])
    return "".join([BEGINNING, *tables, RULES, *rules])


def _table(label: str, parameters: dict[str, Any]) -> str:
    rows = (_row(name, parameter) for name, parameter in parameters.items())
    return f"\n## {label}\n\n{HEAD}{''.join(rows)}"


def _row(name: str, parameter: dict[str, Any]) -> str:
    default = f"`{parameter['Default']}`" if parameter["Default"] != "" else "(empty)"
    cells = [f"`{name}`", parameter["Type"], default, _allowed(parameter), parameter["Description"]]
    line = " | ".join(cell.replace("|", r"\|") for cell in cells)
    return f"| {line} |\n"


def _allowed(parameter: dict[str, Any]) -> str:
    """Return the values that CloudFormation takes, in words."""
    if "AllowedValues" in parameter:
        return ", ".join(f"`{value}`" for value in parameter["AllowedValues"])
    if "ConstraintDescription" in parameter:
        return str(parameter["ConstraintDescription"]).removeprefix("must be ").replace('"', "`")
    if "MinLength" in parameter:
        return f"at least {parameter['MinLength']} character"
    if "MaxValue" in parameter:
        return f"{parameter['MinValue']} to {parameter['MaxValue']}"
    return f"from {parameter['MinValue']} on" if "MinValue" in parameter else "any"


def _rule(assertion: dict[str, Any]) -> str:
    told = str(assertion["AssertDescription"])
    return f"- {told[0].upper()}{told[1:]}.\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
