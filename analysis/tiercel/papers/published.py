"""Works a figure out from others of the same paper: whether that agrees with itself, no more."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max, "round": round}


def worked_out(formula: str, figures: Mapping[str, float]) -> float:
    """Return the value of an arithmetic formula over named figures.

    ValueError for what is no arithmetic, for a name without a figure, and for a figure that is not taken.
    """
    try:
        tree = ast.parse(formula, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{formula}: {error.msg}") from None
    taken: set[str] = set()

    def value(node: ast.AST) -> float:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return number
            case ast.Name(id=name) if name in figures:
                taken.add(name)
                return figures[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*map(value, arguments))
        raise ValueError(f"{formula}: {ast.unparse(node)}: neither arithmetic nor one of its figures")

    found = value(tree)
    if left := sorted(set(figures) - taken):
        raise ValueError(f"{formula}: takes no {', '.join(left)}")
    return float(found)
