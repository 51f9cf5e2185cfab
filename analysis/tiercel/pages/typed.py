"""What a reader types, in a text for a page: `between ticks` in the source, as code on the page."""

from __future__ import annotations

from markupsafe import Markup, escape


def typed(text: object) -> Markup:
    """Return a text for a page, escaped; what stands between ticks is code. An odd tick stays."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)
    )
