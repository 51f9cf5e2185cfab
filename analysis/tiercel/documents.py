"""YAML files of the user, read into typed objects with errors that name file and key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Tag, ValidationError, ValidationInfo, field_validator

from tiercel.atomic_file import read_text
from tiercel.errors import UserError, suggest
from tiercel.quantities import WRITTEN


class Document(BaseModel):
    """Base of everything that a user writes: unknown keys are errors, objects are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_no_truth_values(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse yes and no where a number is meant: `read_threads: yes` would be one."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        kinds = {annotation, *getattr(annotation, "__args__", ())} - {None, type(None)}
        if isinstance(value, bool) and kinds and kinds <= {int, float}:
            raise ValueError(f"must be a number (given: {value})")
        return value


D = TypeVar("D", bound=Document)
#: So many further keys does a line about mistakes name.
_NAMED = 3


class WrongDocument(UserError):
    """What is wrong in a file of the user: its first problem as text, all of them in `problems`."""

    def __init__(self, text: str, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__(text)
        self.problems = problems
        """(key, what is wrong with it)."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe loader that refuses a key written twice (YAML's default keeps the last, silently)."""


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":  # what it brings may be overridden
            continue
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | bool):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a word", key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"key {key!r} is written twice", key_node.start_mark
            )
        seen.add(key)
    loader.flatten_mapping(node)
    return {
        loader.construct_object(k, deep=True): loader.construct_object(v, deep=True) for k, v in node.value
    }


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


#: Lists and mappings inside each other; libyaml composes them by recursion in C, which ends the process some
#: ten thousand deep, and no shorter text can be as deep.
_DEEPEST, _SHORT = 100, 5000


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader) if len(text) > _SHORT else ():
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} lists and mappings inside each other")


#: Values of a file. A few lines of aliases of aliases stand for more than any memory holds, and whoever
#: validates or shows them goes through all.
_MOST = 1_000_000


def _check_size(content: Any) -> None:
    known: dict[int, int] = {}

    def size(value: Any) -> int:
        if not isinstance(value, list | dict):
            return 1
        if id(value) not in known:
            known[id(value)] = _MOST  # until it is counted: one that holds itself has no end
            parts = value.values() if isinstance(value, dict) else value
            known[id(value)] = 1 + sum(map(size, parts))
        return known[id(value)]

    if size(content) > _MOST:
        raise ValueError(f"more than {_MOST} values, with those for which its aliases stand")


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in `path`; UserError that names file and line otherwise."""
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    try:
        _check_depth(text)
        content = yaml.load(text, Loader=_Loader)
        _check_size(content)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark else ""
        raise UserError(f"{path}{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UserError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be a mapping of keys to values")
    return content


def parse(model: type[D], content: Any, where: str, *, dumped: bool = False) -> D:
    """Return `content` as a `model`; UserError that names `where`, the key and what is allowed.

    `dumped`: some of it comes from such an object, where rates are plain numbers.
    """
    try:
        return model.model_validate(content, context={WRITTEN: not dumped})
    except ValidationError as error:
        problems = error.errors(include_url=False)
        # The first is enough: later ones often follow from it, and one line is promised.
        first = _of_the_kind_given(problems)
        more = f" (and {len(problems) - 1} more{_others(problems, first)})" if len(problems) > 1 else ""
        told = [(_key(one), _explain(one, model)) for one in problems]
        raise WrongDocument(f"{where}: {_key(first)}: {_explain(first, model)}{more}", told) from None


def _of_the_kind_given(problems: list[Any]) -> Any:
    """Return the first problem; where it is of a mapping that should be a number or one, that in it."""
    first = problems[0]
    around = first["loc"][:-1]
    inside = (p for p in problems if p["loc"][: len(around)] == around and any(map(_is_mapping, p["loc"])))
    return next(inside, first) if isinstance(first.get("input"), dict) else first


def _others(problems: list[Any], first: Any) -> str:
    """Name the other keys that are unknown or missing: those are not consequences of the first mistake."""
    keys = [_key(p) for p in problems if p is not first and p["type"] in ("extra_forbidden", "missing")]
    return f": {', '.join(keys[:_NAMED])}" if keys else ""


def _is_mapping(part: Any) -> bool:
    return str(part).startswith("dict[")


def _location(problem: Any) -> list[Any]:
    # Parts in brackets are tags of alternatives (see Workload), not keys of the file, as are kinds of values.
    kinds = ("[", "dict[", "constrained-float")
    return [part for part in problem["loc"] if not str(part).startswith(kinds)]


def _key(problem: Any) -> str:
    return ".".join(map(str, _location(problem))) or "(top)"


def _explain(problem: Any, model: type[BaseModel]) -> str:
    """Return what is wrong with a problem's key."""
    kind = problem["type"]
    if kind == "extra_forbidden":
        holder = _model_at(model, problem["loc"][:-1])
        known = holder.model_fields.keys() if holder else ()
        return f"unknown key: {suggest(str(_location(problem)[-1]), known)}"
    if kind == "missing":
        return "is required"
    if kind == "model_type":
        holder = _model_at(model, problem["loc"])
        keys = f" ({', '.join(holder.model_fields)})" if holder else ""
        return f"must be a mapping of keys to values{keys} (given: {_short(problem.get('input'))})"
    message = str(problem["msg"]).removeprefix("Value error, ")
    shown = problem.get("input")
    given = "" if isinstance(shown, dict | list) or kind == "value_error" else f" (given: {_short(shown)})"
    return f"{message[0].lower() + message[1:]}{given}"


def _short(value: Any) -> str:
    """Return a value as an error names it, cut; of large numbers Python gives no digits."""
    shown = f"about 2**{value.bit_length()}" if isinstance(value, int) and value > 1 << 256 else repr(value)
    return shown if len(shown) <= 100 else f"{shown[:100]}..."


def _model_at(model: type[BaseModel], location: Iterable[Any]) -> type[BaseModel] | None:
    """Return the model that holds the keys at `location`, walking through dicts, lists and tagged unions."""
    current: Any = model
    for part in location:
        if str(part).startswith("["):
            current = next((m for m in _models_in(current) if part in _tags(current, m)), None)
        elif _is_model(current):
            if part not in current.model_fields:
                return None
            current = current.model_fields[part].annotation
        elif getattr(current, "__origin__", None) in (dict, list):
            current = current.__args__[-1]
        else:  # an optional or annotated model: `part` is one of its keys
            current = next((m for m in _models_in(current) if part in m.model_fields), None)
            if current is not None:
                current = current.model_fields[part].annotation
    models = [current] if _is_model(current) else list(_models_in(current))
    return models[0] if len(models) == 1 else None


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)


def _tags(annotation: Any, model: type[BaseModel]) -> Iterator[str]:
    """Yield the tags under which `model` stands in a tagged union anywhere in `annotation`."""
    for argument in getattr(annotation, "__args__", ()):
        metadata = getattr(argument, "__metadata__", ())
        if model in getattr(argument, "__args__", ()) or getattr(argument, "__origin__", None) is model:
            yield from (m.tag for m in metadata if isinstance(m, Tag))
        yield from _tags(argument, model)
