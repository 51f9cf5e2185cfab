"""How figures of the section Sharing call stacks: by their layer's options, without what all of them have."""

from __future__ import annotations

from collections.abc import Sequence

from tiercel.report.sections.base import Context


def told_apart(labels: Sequence[str]) -> tuple[list[str], str]:
    """Return labels without the options that all have, and these; as they are where one has no others."""
    split = [label.split(" ") for label in labels]
    common = [word for word in split[0] if "=" in word and all(word in other for other in split)]
    rest = [" ".join(word for word in label if word not in common) for label in split]
    return (rest, " ".join(common)) if len(labels) > 1 and all(rest) else (list(labels), "")


def short(context: Context, stack: str, storage: str) -> str:
    """Return the layer's options alone: the storage is in the title."""
    options = stack.partition("fairshare ")[2]
    return options or (f"plain {storage}" if "fairshare" not in stack else context.results.name(stack))
