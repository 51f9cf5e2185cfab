"""How a template becomes a page. What a page says is computed beside its templates."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tiercel.pages.terms import TERMS, anchor, terms
from tiercel.pages.typed import typed


def environment(package: str) -> Environment:
    """Return what renders the templates of `package`, and those that all pages share (``page.css``...).

    Everything is escaped but SVG of our own (``svg``).
    """
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("tiercel.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["svg"] = Markup
    made.filters["terms"] = terms
    made.filters["typed"] = typed
    made.globals["glossary"] = [(anchor(term), term, meaning) for term, meaning in TERMS.items()]
    return made
