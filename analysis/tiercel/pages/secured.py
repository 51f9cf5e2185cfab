"""A page that names from outside cannot harm: only its own scripts run, and no text turns others around."""

from __future__ import annotations

import base64
import hashlib
import html
import re

_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_CODE = re.compile(r"(<script>.*?</script>|<style>.*?</style>)", re.DOTALL)
#: A page within the page, which keeps to the policy of the one around it.
_INNER = re.compile(r' srcdoc="([^"]*)"')
_NONE = "'none'"
_HEAD = '<meta charset="utf-8">\n'
#: What turns the text around it, and controls: a name with one would reverse the figures that follow it.
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
#: Letters written from right to left, words of them: a number that follows would be shown before them.
_RIGHT = "[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
#: What is read, also where a word is pointed at; not the rest of a tag, where paths of figures have numbers.
_READ = re.compile(r">[^<>]+<|(?<= title=\")[^\"]+")
#: The blank in a number, or between it and its unit.
_WITHIN = re.compile(
    r"(?<=\d) (?=\d{3}\b|%|(?:[KMGTP]?i?B(?:/s)?|[kMG]?op/s|samples/s|files/s|[nµm]?s|min|h)\b)"
)
_LEFTWARD = re.compile(f"{_RIGHT}++(?:[ \u00a0]{_RIGHT}++)*+(?!\u200e)")


def secured(page: str) -> str:
    """Return a page without what `unturned` takes, and with a policy that allows its scripts by their hashes.

    Numbers stay with their units (`unbroken`). Call it last: no script that is changed afterwards runs.
    """
    page = unbroken(unturned(page))
    scripts = _SCRIPT.findall(page)
    scripts += [text for inner in _INNER.findall(page) for text in _SCRIPT.findall(html.unescape(inner))]
    hashes = " ".join(dict.fromkeys(f"'{_digest(text)}'" for text in scripts))
    policy = (
        f"default-src 'none'; script-src {hashes or _NONE}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return page.replace(_HEAD, f'{_HEAD}<meta http-equiv="Content-Security-Policy" content="{policy}">\n', 1)


def unturned(text: str) -> str:
    """Return a text in which characters that turn the line around, and controls, are marked as replaced.

    After what is written from right to left the line goes on from left to right: an invisible mark says so.
    """
    return _LEFTWARD.sub("\\g<0>\u200e", _TURNING.sub("\ufffd", text))


def unbroken(text: str) -> str:
    """Return a text in which a line never ends within a number, or between it and its unit."""
    parts = _CODE.split(text)  # of code every second one: a blank there is no blank in a number
    parts[::2] = [_READ.sub(lambda found: _WITHIN.sub("\u00a0", found[0]), part) for part in parts[::2]]
    return "".join(parts)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
