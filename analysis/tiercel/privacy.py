"""What of a user no result may hold: names, home folders, accounts, passwords, tokens.

Every text that is recorded with results goes through here (results.raw.write_json and clean). Paths stay
meaningful: ``$HOME/study``, ``/p/lustre1/$USER/run``. A user's or an account's name may be an ordinary word,
so it is replaced in paths and where a text says that it is one (``user=``, ``--account``, ``name@host``), not
everywhere.

As a part of a longer name it is replaced in names of temporary folders and files (``/tmp/pytest-of-alice``):
which names these are is decided first, for all texts of a run together (:meth:`Private.decide`), and then
they are replaced wherever they stand. A path that was replaced here and left there would hide nothing, and
who reads both would find two paths.
"""

from __future__ import annotations

import json
import os
import pwd
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

#: Stands for a password or token that no variable gives a name to.
HIDDEN = "***"

#: Accounts that every machine has; their names say nothing.
_NOBODY = frozenset({"root", "nobody"})

_ACCOUNTS = (
    "TIERCEL_ACCOUNT", "SLURM_ACCOUNT", "SLURM_JOB_ACCOUNT", "SBATCH_ACCOUNT", "SALLOC_ACCOUNT",
    "LSB_PROJECT_NAME", "LSB_SUB_PROJECT_NAME", "COBALT_PROJNAME", "PBS_ACCOUNT",
)  # fmt: skip

#: Environment variables whose values are nobody's business, by their names.
_SECRET_VARIABLE = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|API_?KEY|ACCESS_KEY|PRIVATE_KEY|JWT|COOKIE"
    r"|CREDENTIALS?)(?:_|$)"
)
_SHORTEST_SECRET = 6

#: A whole word of a path ends here.
_END = r"(?![\w@+-]|\.\w)"
#: Where anybody's folders lie, whatever stands before the path; and what may lie between there and a name.
_TEMPORARY = re.compile(
    r"(?:(?<![\w.~$-])|(?<=%2F)|(?<=%2f))(?:/|%2F)(?:var(?:/|%2F))?(?:tmp|dev(?:/|%2F)shm)(?:/|%2F)(?:(?![:,;=]/)[^\s\"'<>|])*$",
    re.IGNORECASE,
)
#: Within what tiercel itself named for a run.
_RUN = "tiercel-run-"
_OWN = re.compile(r"(?:/|%2[Ff])tiercel-run-[^\s\"'<>|]*$")
#: The longest name of a file, and path; how much of a name is looked at first.
_NAME, _PATH, _NEAR = 255, 4096, 16
#: The rest of a name on either side of a user's in it. (An escaped / ends as %2F does.)
_HEAD, _TAIL = re.compile(r"(?:%2[Ff])?([\w.+~-]*)$"), re.compile(r"[\w.+~-]*")

_KEY = r"pass(?:word|wd|phrase)|secret|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|token"
_VALUE = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s,;&\"'\\}\])]+"
_ASSIGNED = re.compile(rf"((?:{_KEY})[\"']?(?:\s*[=:]\s*|(?<=\w)\s+(?=\S{{16}})))({_VALUE})", re.IGNORECASE)
#: What is no secret although a key says so: a number, a switch, a variable; a short word after `token`.
_HARMLESS = re.compile(r"[\d.eE+-]*|true|false|null|none|yes|no|[$<*].*", re.IGNORECASE)
_SHAPES = re.compile(
    r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}"
    r"|sk-(?:proj-)?[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+)"
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{16,}")
_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@\"'<>]+@", re.IGNORECASE)
#: Without one of these (in small letters) a text holds no password or token. Searching words is quick.
_TELLTALES = (
    "passw", "passphrase", "secret", "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key",
    "privatekey", "private_key", "private-key", "credential", "token", "bearer", "basic", "://", "ghp_",
    "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat-", "hf_", "sk-", "akia", "xox", "eyj",
)  # fmt: skip

_USER_KEY = r"(?:user|user[_-]?name|logname|login|owner|uname)"
_ACCOUNT_KEY = r"(?:account|acct|bank|project|wckey|charge)"
_USER_OPTIONS = ("-u", "--user", "--uid", "-l")
_ACCOUNT_OPTIONS = ("-A", "-G", "-P", "--account", "--bank", "--project", "--wckey", "--charge")

_USER, _ACCOUNT = "$USER", "$TIERCEL_ACCOUNT"


def _said(key: str, options: tuple[str, ...]) -> re.Pattern[str]:
    """Return what stands before a word that is said to be a name: user=, "user": ", user, --user, -u."""
    given = "|".join(map(re.escape, options))
    text = rf"(?:{key}[\"']?\s*[=:]\s*|\b{key}\s+|(?<![\w-])(?:{given})[ =]?)[\"']?$"
    return re.compile(text, re.IGNORECASE)


_SAID_USER = _said(_USER_KEY, _USER_OPTIONS)
_SAID_ACCOUNT = _said(_ACCOUNT_KEY, _ACCOUNT_OPTIONS)
#: Before a path: then it is only the end of a longer one.
_LONGER = re.compile(r"[\w.~$@+-]")
#: After a name: then it is only the beginning of a longer word.
_WHOLE = re.compile(r"[\w@+-]|\.\w")

Found = Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class Private:
    """What is replaced. :func:`private` makes it for the user who runs this."""

    users: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    """(value, the variable that holds it)"""
    mounts: frozenset[str] = frozenset()
    """Mount points that end in a user's or account's name and are not theirs: ``/data`` for user data."""
    parts: frozenset[tuple[str, str, str]] = frozenset()
    """Longer names that hold a user's or account's: (what takes its place, what is before it, what after)."""

    def decide(self, texts: Iterable[str]) -> Private:
        """Return what replaces the same in all `texts`: also where one alone would not show that it must."""
        found = set(self.parts)
        for text in texts:
            for stands, names in ((_USER, self.users), (_ACCOUNT, self.accounts)):
                for form in (form for name in names for form in (*_forms(name), stands)):
                    found |= {(stands, *part) for part in _parts(form, text)}
        return self if found == self.parts else replace(self, parts=frozenset(found))

    def text(self, text: str) -> str:
        """Return `text` with everything private replaced; twice is the same as once."""
        return self.decide((text,)).replaced(text)

    def replaced(self, text: str) -> str:
        """Return `text` with everything private replaced, by what is decided already."""
        if not self.suspects(text):
            return text
        if "\n" not in text:
            return self._line(text)
        return "".join(self._line(line) if self.suspects(line) else line for line in text.splitlines(True))

    def _line(self, text: str) -> str:
        small = text.lower()
        if any(word in small for word in _TELLTALES):
            for pattern, new in _CREDENTIALS:
                text = pattern.sub(new, text)
        for word, pattern, found in self._words:
            if word in text:
                text = pattern.sub(found, text)
        return text

    def plain(self, value: Any, key: str = "") -> Any:
        """Return what JSON can hold (numbers, words, lists, mappings) with every text replaced."""
        return self.decide(_texts(value))._plain(value, key)

    def _plain(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return self._word(value, key)
        if isinstance(value, Mapping):
            return {self.replaced(str(k)): self._plain(v, str(k)) for k, v in value.items()}
        if isinstance(value, list | tuple):
            before = ["", *(str(v) for v in value)]
            return [
                self._plain(v, b if b.startswith("-") else "") for v, b in zip(value, before, strict=False)
            ]
        return value

    def suspects(self, text: str) -> bool:
        """Return whether `text` may hold something private (quick: most texts do not)."""
        if any(word in text for word in self._needles):
            return True
        small = text.lower()
        return any(word in small for word in _TELLTALES)

    def _word(self, word: str, key: str) -> str:
        """Replace in one word, whose key, or the option before it, may say what it is."""
        if word in self.users and (
            key in _USER_OPTIONS or re.fullmatch(rf"[\w-]*{_USER_KEY}", key, re.IGNORECASE)
        ):
            return _USER
        if word in self.accounts and (
            key in _ACCOUNT_OPTIONS or re.fullmatch(rf"[\w-]*{_ACCOUNT_KEY}", key, re.IGNORECASE)
        ):
            return _ACCOUNT
        secret = re.fullmatch(rf"[\w-]*(?:{_KEY})", key, re.IGNORECASE)
        if secret and word and not _harmless(key, word):
            return HIDDEN
        return self.replaced(word)

    @cached_property
    def _needles(self) -> tuple[str, ...]:
        words = [*self.users, *self.homes, *self.accounts, *(value for value, _ in self.secrets)]
        return tuple(form for word in words for form in _forms(word))

    @cached_property
    def _words(self) -> tuple[tuple[str, re.Pattern[str], Found], ...]:
        """What to search as a plain word, and what decides, from what stands around it, what takes its place.
        (Patterns that begin with what may stand before a name are slow, and traces are long.)"""
        rules: list[tuple[str, re.Pattern[str], Found]] = []
        for value, name in sorted(self.secrets, key=lambda s: -len(s[0])):
            rules += [(form, re.compile(re.escape(form)), _always(f"${name}")) for form in _forms(value)]
        for home in sorted(self.homes, key=len, reverse=True):
            rules += [(form, re.compile(re.escape(form) + _END), _home) for form in _forms(home)]
        for names, stands, said in (
            (self.users, _USER, _SAID_USER),
            (self.accounts, _ACCOUNT, _SAID_ACCOUNT),
        ):
            for name in sorted(names, key=len, reverse=True):
                found = self._name(stands, said)
                rules += [(form, re.compile(re.escape(form)), found) for form in _forms(name)]
        return tuple(rules)

    def _name(self, stands: str, said: re.Pattern[str]) -> Callable[[re.Match[str]], str]:
        def name(match: re.Match[str]) -> str:
            before, after = _before(match.string, match.start()), match.string[match.end() :][:2]
            whole = _WHOLE.match(after) is None
            component = before.endswith(("/", "%2F", "%2f"))
            alone = not before or not (before[-1].isalnum() or before[-1] == "_")
            if whole and component:
                # What tiercel itself named inside a run's folder stays, and the machine's mount points.
                return match[0] if _own(before) or self._mounted(before + match[0]) else stands
            if whole and (before.endswith("~") or said.search(before[-80:])):
                return stands
            if alone and len(after) == 2 and after[0] == "@" and after[1].isalnum():
                return stands
            around = _around(before, match.string[match.end() : match.end() + _NAME])
            return stands if around and (stands, *around) in self.parts else match[0]

        return name

    def _mounted(self, text: str) -> bool:
        """Return whether `text` ends with one of the mount points, and not with a longer path."""
        return any(text.endswith(m) and not _LONGER.search(text[: -len(m)][-1:]) for m in self.mounts)


def private(environment: Mapping[str, str] | None = None) -> Private:
    """Return what is private to the user who runs this: from the environment and the user data base."""
    env = os.environ if environment is None else environment
    users = [env.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")]
    homes = [env.get("HOME", "")]
    with suppress(KeyError, OSError):  # a user id without a name
        entry = pwd.getpwuid(os.getuid())
        users.append(entry.pw_name)
        homes.append(entry.pw_dir)
    homes += [os.path.realpath(home) for home in homes if home.startswith("/")]
    accounts = [env.get(name, "") for name in _ACCOUNTS]
    secrets = {
        value: name
        for name, value in sorted(env.items())
        if _SECRET_VARIABLE.search(name.upper()) and len(value) >= _SHORTEST_SECRET
    }
    names = _distinct(u for u in users if u not in _NOBODY)
    own = _distinct(home.rstrip("/") for home in homes if home.startswith("/") and home.strip("/"))
    return Private(
        users=names, homes=own, accounts=_distinct(accounts), secrets=tuple(secrets.items()),
        mounts=_mounts({*names, *accounts}, own),
    )  # fmt: skip


def _mounts(names: set[str], homes: tuple[str, ...]) -> frozenset[str]:
    try:
        lines = Path("/proc/self/mounts").read_bytes().split(b"\n")
    except OSError:
        return frozenset()
    points = [os.fsdecode(fields[1]) for line in lines if len(fields := line.split(b" ")) > 1]
    parents = {Path(home).parent for home in homes} | {Path(p) for p in ("/home", "/Users", "/users", "/u")}
    paths = [Path(point) for point in points if point not in homes]
    return frozenset(str(p) for p in paths if p.name in names and p.parent not in parents)


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(w for w in words if w))


def _forms(word: str) -> tuple[str, ...]:
    """Return a word as texts hold it: as it is, and as JSON writes it."""
    return tuple(dict.fromkeys((word, json.dumps(word)[1:-1], json.dumps(word, ensure_ascii=False)[1:-1])))


def _always(new: str) -> Callable[[re.Match[str]], str]:
    return lambda _match: new


def _home(match: re.Match[str]) -> str:
    """Replace a home folder, but not the end of a longer path: /nfs/home/alice is another folder."""
    before = match.string[max(0, match.start() - 1) : match.start()]
    return match[0] if before and (before.isalnum() or before in "_.~$-") else "$HOME"


def _before(text: str, start: int) -> str:
    """Return what stands before a match on its line; of a long one what a path may have."""
    first = max(0, start - _PATH)
    return text[max(first, text.rfind("\n", first, start) + 1) : start]


def _around(before: str, after: str) -> tuple[str, str] | None:
    """Return what of a longer name is before and after a name; None where it stands alone or in a word."""
    head, tail = _ends(before[-_NEAR:], after[:_NEAR])
    if _NEAR in (len(head), len(tail)):
        head, tail = _ends(before[-_NAME:], after[:_NAME])
    tail = tail.rstrip(".")
    inside = head[-1:].isalnum() or head[-1:] == "_" or tail[:1].isalnum() or tail[:1] == "_"
    return None if inside or not head + tail else (head, tail)


@lru_cache(1 << 14)
def _ends(before: str, after: str) -> tuple[str, str]:
    head, tail = _HEAD.search(before), _TAIL.match(after)
    return head[1] if head else "", tail[0] if tail else ""


def _parts(form: str, text: str) -> set[tuple[str, str]]:
    """Return the names of temporary folders and files that hold `form`: what is before and after it."""
    found: set[tuple[str, str]] = set()
    start = -1
    while (start := text.find(form, start + 1)) >= 0:
        end = start + len(form)
        around = _around(text[max(0, start - _NAME) : start], text[end : end + _NAME])
        if around and around not in found and not f"{around[0]}{form}{around[1]}".startswith(_RUN):
            line = _before(text, start).removesuffix(around[0])
            if ("tmp" in line or "shm" in line) and _TEMPORARY.search(line) and not _own(line):
                found.add(around)
    return found


def _own(before: str) -> bool:
    """Return whether what follows `before` is in the folder of a run, so named by tiercel itself."""
    return _RUN in before and _OWN.search(before) is not None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _harmless(key: str, value: str) -> bool:
    bare = value.strip("\"'")
    short = key.rstrip("\"' =:").lower().endswith("token") and len(bare) < 16  # "unexpected token: end"
    return short or _HARMLESS.fullmatch(bare) is not None


def _assigned(match: re.Match[str]) -> str:
    key, value = match[1], match[2]
    if _harmless(key, value):
        return match[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{key}{quote}{HIDDEN}{quote}"


_CREDENTIALS: tuple[tuple[re.Pattern[str], str | Found], ...] = (
    (_SHAPES, HIDDEN),
    (_BEARER, rf"\1 {HIDDEN}"),
    (_URL, rf"\1{HIDDEN}@"),
    (_ASSIGNED, _assigned),
)
