"""A workload of any kind, as a field of documents: subjects' kinds are imported with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import BeforeValidator, Discriminator, Tag

from tiercel.errors import suggest
from tiercel.study.workloads import Workload, workload_kinds


def _tag(kind: type[Workload]) -> str:
    return f"[{kind.__name__}]"


def _known(content: Any) -> Any:
    """Refuse an operation that no kind does, with the nearest one."""
    operation = _operation(content)
    if workload_kinds.of(operation) is None:
        said = "is required" if operation is None else f"{operation!r} is unknown"
        raise ValueError(f"operation {said}: {suggest(str(operation), workload_kinds.operations())}")
    return content


def _kind(content: Any) -> str | None:
    kind = workload_kinds.of(_operation(content))
    return _tag(kind) if kind else None


def _operation(content: Any) -> object:
    return content.get("operation") if isinstance(content, dict) else getattr(content, "operation", None)


if TYPE_CHECKING:
    AnyWorkload = Workload
else:
    #: A workload of any kind, for fields of documents. The tags are in brackets: `documents` leaves them
    #: out of the path that an error names.
    AnyWorkload = Annotated[
        Union[tuple(Annotated[kind, Tag(_tag(kind))] for kind in workload_kinds)],  # noqa: UP007
        Discriminator(_kind),
        BeforeValidator(_known),
    ]
