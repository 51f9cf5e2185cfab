"""The reference pages, made from the code: parsers, models, declared columns, registries."""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer.main
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from tiercel.columns import Column
from tiercel.engines import engines
from tiercel.launchers import launchers
from tiercel.layers import layers
from tiercel.quantities import Duration, Rate, Size
from tiercel.report.findings import AUDIENCES
from tiercel.report.sections import sections
from tiercel.results.schema import CONTEXT, FEATURES, IDENTITY, NUMBERS, OBSERVATIONS, RUNS
from tiercel.results.validity import FLAGS
from tiercel.schedulers import schedulers
from tiercel.site.model import LayerChoice, Site, Storage
from tiercel.site.scheduler import Limits, SchedulerSettings
from tiercel.site.topology import Stage
from tiercel.study.model import Doubling, Experiment, Repetitions, StackChoice, Study
from tiercel.study.sweep import Sweep
from tiercel.study.workloads import Workload, workload_kinds
from tiercel.subjects import fill
from tiercel.traced.schema import GROUPS, TRACES
from tiercel.traces.findings.base import needs_ranks, rules
from tiercel.traces.readers import readers
from tiercel.traces.schema import EVENTS
from tiercel.traces.survey.schema import JOBS

HEAD = "% made by tools/docs/reference.py from the code: a change goes there\n\n"


def pages() -> dict[str, str]:
    """Return the reference: name of a page to its text in MyST Markdown."""
    made = {
        "commands": commands(),
        "study-keys": study_keys(),
        "site-keys": site_keys(),
        "columns": columns(),
        "flags": flags(),
        "findings": findings(),
        "parts": parts(),
    }
    return {name: HEAD + text for name, text in made.items()}


# --- commands


def commands() -> str:
    """Return all commands with their arguments and options, as their parsers have them."""
    from tiercel.cli.main import app  # noqa: PLC0415 (the whole command line: imported where it is needed)

    lines = [
        "# Commands",
        "",
        "Each also has `--help`. Exit codes: 0 done; 1 what was asked for failed, or what was",
    ]
    lines += [
        "looked for was found; 2 a mistake of the user's, in a line; 3 a defect of tiercel; 130 interrupted.",
        "",
    ]
    lines += _command(typer.main.get_command(app), "tiercel", 2)
    return "\n".join(lines) + "\n"


def _command(command: Any, name: str, level: int) -> Iterator[str]:
    subcommands: Mapping[str, Any] = getattr(command, "commands", {})
    if name != "tiercel":
        yield from ("#" * min(level, 3) + f" {name}", "", _prose(command.help), "")
    context = typer.Context(command)
    rows = [row for parameter in command.params for row in _parameter(parameter, context)]
    if rows:
        yield from (*_table(("argument or option", "default", "meaning"), rows), "")
    for word, inner in sorted(subcommands.items()):
        if not inner.hidden:
            yield from _command(inner, f"{name} {word}", level + (name != "tiercel"))


def _parameter(parameter: Any, context: Any) -> Iterator[Sequence[str]]:
    if getattr(parameter, "hidden", False) or parameter.name == "help":
        return
    argument = parameter.param_type_name == "argument"
    names = "" if argument else ", ".join([*parameter.opts, *parameter.secondary_opts])
    value = "" if getattr(parameter, "is_flag", False) else parameter.display_type(context)
    shown = f"{names} {parameter.metavar or value}".strip() if not argument else parameter.metavar or value
    default = (
        "" if parameter.default in (None, False, ()) or callable(parameter.default) else parameter.default
    )
    default = "required" if parameter.required and not argument else str(getattr(default, "value", default))
    yield f"`{shown}`", default and f"`{default}`", _prose(parameter.help or "")


# --- keys of files


def study_keys() -> str:
    """Return the keys of a study file: of the study, its experiments and every kind of workload."""
    said = [
        "# Keys of a study",
        "",
        "How to write one: [studies](../studies.md). Unknown keys are mistakes.",
        "",
    ]
    for title, model in (
        ("Study", Study), ("Repetitions", Repetitions), ("Experiment", Experiment),
        ("A stack of `stacks`", StackChoice), ("A layer of a stack", LayerChoice), ("Sweep", Sweep),
    ):  # fmt: skip
        said += _model(title, model)
    for kind in workload_kinds:
        operations = [o for o in workload_kinds.operations() if workload_kinds.of(o) is kind]
        said += _model(f"Workload: `operation: {'` or `'.join(operations)}`", kind, skip=("operation",))
    return "\n".join(said) + "\n"


def site_keys() -> str:
    """Return the keys of a site file."""
    said = ["# Keys of a site", "", "How to write one: [sites](../sites.md). Unknown keys are mistakes.", ""]
    for title, model in (
        ("Site", Site), ("Scheduler", SchedulerSettings), ("Limits", Limits),
        ("A storage of `storages`", Storage), ("A stage of `topology`", Stage),
    ):  # fmt: skip
        said += _model(title, model)
    return "\n".join(said) + "\n"


def _model(title: str, model: type[BaseModel], skip: Sequence[str] = ()) -> Iterator[str]:
    yield from (f"## {title}", "", _prose(inspect.getdoc(model)), "")
    yield from _table(
        ("key", "value", "default", "meaning"),
        [
            (f"`{name}`", _kind(field.annotation, field.metadata), _default(field), _prose(field.description))
            for name, field in model.model_fields.items()
            if name not in skip
        ],
    )
    yield ""


def _default(field: Any) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "required" if field.is_required() else ""
    if value is None or value in ("", [], {}) or isinstance(value, BaseModel):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


_WORDS: dict[Any, str] = {
    str: "words", int: "number", float: "number", bool: "true or false", Any: "anything", type(None): "",
    Size: "size (`1MiB`)", Duration: "time (`30s`)", Rate: "rate (`10GB/s`)",
}  # fmt: skip


_KEYS = {
    "StackChoice": "a stack's keys", "LayerChoice": "a layer's keys", "Experiment": "an experiment's keys",
    "Repetitions": "keys of repetitions", "Sweep": "keys of a sweep",
    "SchedulerSettings": "a scheduler's keys", "Storage": "a storage's keys", "Stage": "a stage's keys",
    "Limits": "keys of limits",
}  # fmt: skip


def _kind(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """Return what a value is, in words; `metadata` is what pydantic took out of an Annotated."""
    for known in (Size, Duration, Rate):
        if get_args(known)[1:] and get_args(known)[1] in metadata:
            return _WORDS[known]
    if annotation in _WORDS:
        return _WORDS[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        if any(Doubling.__name__ in repr(part) or "_or_doubling" in repr(part) for part in inner[1:]):
            return f"{_kind(inner[0])}, or `doubling`"
        return _WORDS.get(annotation, _kind(inner[0], inner[1:]))
    if origin is Literal:
        return ", ".join(f"`{str(value).lower() if isinstance(value, bool) else value}`" for value in inner)
    if origin in (Union, types.UnionType):
        kinds = list(dict.fromkeys(filter(None, map(_kind, inner))))
        return "a workload" if all(get_origin(i) is Annotated for i in inner) else ", or ".join(kinds)
    if origin is list:
        return f"list of {_kind(inner[0])}"
    if origin is dict:
        return f"names with {_kind(inner[1])} each"
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return "a workload" if issubclass(annotation, Workload) else _KEYS.get(annotation.__name__, "keys")
    return getattr(annotation, "__name__", str(annotation))


# --- tables of results


def columns() -> str:
    """Return the columns of every table, as declared."""
    said = [
        "# Columns and metrics",
        "",
        "What the tables hold; what statistics make of it: [results](../results.md).",
        "",
    ]
    own = {column.name for column in (*IDENTITY, *FEATURES, *NUMBERS, *CONTEXT)}
    for title, found in (
        ("What determines a run (`observations.parquet`, `runs.parquet`)", IDENTITY),
        ("What was done: features of workloads (`observations.parquet`)", FEATURES),
        ("What was measured (`observations.parquet`)", NUMBERS),
        ("Under which conditions (`observations.parquet`, `runs.parquet`)", CONTEXT),
        ("Beside them in `observations.parquet`", [c for c in OBSERVATIONS if c.name not in own]),
        ("Beside them in `runs.parquet`", [c for c in RUNS if c.name not in own]),
        ("Traced runs (`traces.parquet`), beside what determines them", _without(TRACES, own)),
        ("Groups of their files (`trace-groups.parquet`), beside that", _without(GROUPS, own)),
        ("A survey of many traces (`survey.parquet`)", JOBS),
        ("Events of a trace (`IOFrame.events`, `trace convert`)", EVENTS),
    ):  # fmt: skip
        rows = [(f"`{c.name}`", c.unit and f"`{c.unit}`", _prose(c.meaning)) for c in found]
        said += [f"## {title}", "", *_table(("column", "unit", "meaning"), rows), ""]
    return "\n".join(said) + "\n"


def _without(found: Iterable[Column], names: set[str]) -> list[Column]:
    return [column for column in found if column.name not in names]


def flags() -> str:
    """Return the validity flags: what makes a number mean less, and what to do."""
    rows = [(f"`{f.code}`", f.severity, _prose(f.title), _prose(f.advice)) for f in FLAGS.values()]
    text = "`info` is worth knowing; `caution` may change a conclusion; `invalid`: not what was asked for."
    return (
        "\n".join(
            ["# Validity flags", "", text, "", *_table(("flag", "gravity", "what", "what to do"), rows)]
        )
        + "\n"
    )


# --- what is registered


def findings() -> str:
    """Return the rules on traces, and those of the report by audience."""
    said = ["# Findings", "", "## About a trace", "", "`tiercel trace explain` ([traces](../traces.md)).", ""]
    rows = []
    for name in rules:
        several = "ranks" if needs_ranks(rules.get(name)) else ""
        rows.append((f"`{name}`", several, _first(rules.get(name))))
    said += [*_table(("rule", "needs", "what it finds"), rows), "", "## Of the report", ""]
    said += ["[How to read it](../evaluate.md).", ""]
    found: dict[str, str] = {}
    for module in fill("findings", "tiercel.report.findings.finding"):
        for rule in getattr(module, "RULES", ()):
            found[f"`{rule.__name__}` ({module.__name__.removeprefix('tiercel.')})"] = _first(rule)
    said += _table(("rule", "what it says"), found.items())
    said += ["", "Audiences:", "", *(f"- {title}: {question}" for title, question in AUDIENCES.values())]
    return "\n".join(said) + "\n"


def parts() -> str:
    """Return all engines, launchers, schedulers, layers, kinds of workloads, formats and sections."""
    kinds: list[tuple[str, Iterable[tuple[str, Any]]]] = [
        ("Engines", ((name, engines.get(name)) for name in engines)),
        ("Launchers", ((name, launchers.get(name)) for name in launchers)),
        ("Schedulers", ((name, schedulers.get(name)) for name in schedulers)),
        ("Layers", ((name, layers.get(name)) for name in layers)),
        ("Kinds of workloads", ((name, workload_kinds.of(name)) for name in workload_kinds.operations())),
        ("Trace formats", ((name, readers.get(name)) for name in readers)),
        ("Sections of the report", ((name, sections.get(name)) for name in sections)),
    ]
    said = [
        "# What there is",
        "",
        "Each has a file of its own; [adding one](../add/index.md) takes one more.",
        "",
    ]
    for title, found in kinds:
        # A kind of workload says itself what it is; of the others the file does.
        rows = [
            (
                f"`{n}`",
                _first(t if title == "Kinds of workloads" else sys.modules[t.__module__]),
                f"`{t.__module__}`",
            )
            for n, t in found
        ]
        said += [f"## {title}", "", *_table(("name", "what", "where"), rows), ""]
    return "\n".join(said) + "\n"


def _first(thing: Callable[..., Any] | type | types.ModuleType) -> str:
    """Return the first sentence of a docstring."""
    return _prose(re.split(r"(?<=[.])\s|\n\n", inspect.cleandoc(thing.__doc__ or ""), maxsplit=1)[0])


# --- Markdown


def _prose(text: str | None) -> str:
    """Return text of the code as a line of Markdown: ``code`` becomes `code`."""
    one = " ".join(inspect.cleandoc(text or "").split())
    one = re.sub(r"``([^`]*)``", r"`\1`", one)
    return re.sub(r"\[(?=[^\]]*\])", r"\\[", one).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    bar = re.compile(r"(?<!\\)\|")  # ends a cell, in code too
    return lines + ["| " + " | ".join(bar.sub(r"\\|", cell) for cell in row) + " |" for row in rows]


def write(folder: Path) -> None:
    """Write the pages into `folder`, where their index lies."""
    for name, text in pages().items():
        (folder / f"{name}.md").write_text(text)
