"""What a deployed stack says of itself: its outputs and parameters, and the settings that they stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import CredentialsError, SettingsError, StoreUnavailable
from stream_sort.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

# Outputs and parameters of the template that a reader of its tables must know, by the variable that says the same.
OUTPUTS = {"ITEMS_TABLE": "ItemsTable", "CURSOR_TABLE": "CursorTable", "CONTROL_TABLE": "ControlTable"}
PARAMETERS = {
    "QUEUE_KEY": "QueueKey",
    "SEQ_KEY": "SeqKey",
    "FIRST_SEQ": "FirstSeq",
    "GAP_POLICY": "GapPolicy",
    "CONSUMER": "Consumer",
}


@dataclass(frozen=True, slots=True)
class Stack:
    """What is known of a deployed stack; nothing, if none was asked for."""

    name: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """The STREAM_SORT_* variables that say the same."""
        told = {name: self.outputs.get(output) for name, output in OUTPUTS.items()}
        told |= {name: self.parameters.get(parameter) for name, parameter in PARAMETERS.items()}
        return {PREFIX + name: value for name, value in told.items() if value}


def deployed_stack(name: str, cloudformation: Any) -> Stack:
    """The stack of that name, as CloudFormation knows it; SettingsError if it has none, or one that is not ours."""
    from botocore.exceptions import (  # noqa: PLC0415  # who asks for no stack needs no AWS
        BotoCoreError,
        ClientError,
        ConnectionError,  # noqa: A004  # its name there
        HTTPClientError,
        NoCredentialsError,
    )

    try:
        told = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        why, where = error.response["Error"]["Message"], cloudformation.meta.region_name
        raise SettingsError(f"--stack {name}: {why} (region {where}); is it --region or --profile?") from error
    except (HTTPClientError, ConnectionError) as error:
        told = f"--stack {name}: {error}; is it the right --region or --endpoint-url, and reachable from here?"
        raise StoreUnavailable(told) from error
    except NoCredentialsError as error:
        told = f"--stack {name}: no AWS credentials are found; give --profile, or set AWS_PROFILE, or log in"
        raise CredentialsError(told) from error
    except BotoCoreError as error:
        raise SettingsError(f"--stack {name}: {str(error).rstrip('.')}; check it, --region and --profile") from error
    outputs = {one["OutputKey"]: one["OutputValue"] for one in told.get("Outputs", [])}
    parameters = {one["ParameterKey"]: one["ParameterValue"] for one in told.get("Parameters", [])}
    if "ItemsTable" not in outputs:
        raise SettingsError(f"--stack {name}: it has no output ItemsTable; is it a stack of stream_sort?")
    return Stack(name, outputs, parameters)
