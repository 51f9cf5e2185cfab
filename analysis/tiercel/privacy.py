"""What of a user no result may hold: names, home folders, accounts, passwords, tokens.

Every text that is recorded with results goes through here (results.raw.write_json and clean). Paths stay
meaningful: ``$HOME/study``, ``/p/lustre1/$USER/run``. A user's or an account's name may be an ordinary word,
so it is replaced in paths and where a text says that it is one (``user=``, ``--account``, ``name@host``), not
everywhere.
"""

from __future__ import annotations

import json
import os
import pwd
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
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
_TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/")

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

_ACCOUNT = "$TIERCEL_ACCOUNT"


def _said(key: str, options: tuple[str, ...]) -> re.Pattern[str]:
    """Return what stands before a word that is said to be a name: user=, "user": ", user, --user, -u."""
    given = "|".join(map(re.escape, options))
    text = rf"(?:{key}[\"']?\s*[=:]\s*|\b{key}\s+|(?<![\w-])(?:{given})[ =]?)[\"']?$"
    return re.compile(text, re.IGNORECASE)


_SAID_USER = _said(_USER_KEY, _USER_OPTIONS)
_SAID_ACCOUNT = _said(_ACCOUNT_KEY, _ACCOUNT_OPTIONS)
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

    def text(self, text: str) -> str:
        """Return `text` with everything private replaced; twice is the same as once."""
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
        if isinstance(value, str):
            return self._word(value, key)
        if isinstance(value, Mapping):
            return {self.text(str(k)): self.plain(v, str(k)) for k, v in value.items()}
        if isinstance(value, list | tuple):
            before = ["", *(str(v) for v in value)]
            return [
                self.plain(v, b if b.startswith("-") else "") for v, b in zip(value, before, strict=False)
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
            return "$USER"
        if word in self.accounts and (
            key in _ACCOUNT_OPTIONS or re.fullmatch(rf"[\w-]*{_ACCOUNT_KEY}", key, re.IGNORECASE)
        ):
            return _ACCOUNT
        secret = re.fullmatch(rf"[\w-]*(?:{_KEY})", key, re.IGNORECASE)
        if secret and word and not _harmless(key, word):
            return HIDDEN
        return self.text(word)

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
            (self.users, "$USER", _SAID_USER),
            (self.accounts, _ACCOUNT, _SAID_ACCOUNT),
        ):
            for name in sorted(names, key=len, reverse=True):
                found = self._name(stands, said)
                rules += [(form, re.compile(re.escape(form)), found) for form in _forms(name)]
        return tuple(rules)

    def _name(self, stands: str, said: re.Pattern[str]) -> Callable[[re.Match[str]], str]:
        def replace(match: re.Match[str]) -> str:
            before, after = match.string[: match.start()][-4096:], match.string[match.end() :][:2]
            whole = _WHOLE.match(after) is None
            component = before.endswith(("/", "%2F", "%2f"))
            alone = not before or not (before[-1].isalnum() or before[-1] == "_")
            if whole and component:
                # What tiercel itself named inside a run's folder stays, and the machine's mount points.
                path = _path_before(before) + match[0] if self.mounts or "/tiercel-run-" in before else ""
                return match[0] if "/tiercel-run-" in path or path in self.mounts else stands
            if whole and (before.endswith("~") or said.search(before[-80:])):
                return stands
            if alone and len(after) == 2 and after[0] == "@" and after[1].isalnum():
                return stands
            ended = not after or not (after[0].isalnum() or after[0] == "_")
            path = _path_before(before)
            if alone and ended and path.startswith(_TEMPORARY) and "/tiercel-run-" not in path:
                return stands  # part of a file's name: /tmp/pip-alice
            return match[0]

        return replace


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
        points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    except (OSError, IndexError):
        return frozenset()
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


def _path_before(text: str) -> str:
    """Return the part of a path that `text` ends with."""
    return re.split(r"[\s\"'=,;]", text)[-1]


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
