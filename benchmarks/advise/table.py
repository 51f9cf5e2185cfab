"""The judged cases as a table in Markdown, with the totals below it."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.advise.judge import Case, Totals

_HEADS = (
    *("program", "home", "advice", "at home s", "as advised s", "staging s", "stated saving s", "measured s"),
    *("inside", "best single", "regret", "with staging", "slower"),
)


def table(judged: Sequence[Case]) -> str:
    lines = [_line(_HEADS), _line(["---"] * len(_HEADS))]
    lines += [_line(_row(case)) for case in judged]
    return "\n".join(lines) + "\n"


def summary(total: Totals) -> str:
    """Return the totals in lines, each with its goal."""
    found = [
        f"{total.cases} cases, {total.moved} of them moved something"
        + (f"; {total.without_advice} got no advice" if total.without_advice else ""),
        f"measured saving inside the stated interval: {total.inside} of {total.stated} "
        f"({_percent(total.coverage)}; goal 90 %), {total.inside_moved} of the {total.moved} that moved",
        f"regret against the best single storage: {_percent(total.regret)} of run time (goal 2 %), median of "
        f"the cases {_percent(total.regret_median)}, over 2 % in {total.over}; staging counted on both sides "
        f"{_percent(total.regret_staged)}",
        f"slower than at home beyond noise: {total.harmful} (goal 0); staging counted {total.harmful_staged}",
        f"wrong outputs: {total.wrong} (goal 0)",
    ]
    return "\n".join(f"* {line}" for line in found) + "\n"


def _row(case: Case) -> list[str]:
    stated = "–" if case.stated is None else "{:.2f} ({:.2f} to {:.2f})".format(*case.stated)
    slower = "beyond noise" if case.slower else "with staging" if case.slower_staged else "no"
    return [
        case.program, case.home, case.way, f"{case.at_home:.2f}", f"{case.as_advised:.2f}",
        f"{case.staging:.2f}" if case.moves else "–", stated, f"{case.saved:.2f}",
        "–" if case.inside is None else "yes" if case.inside else "no", case.best, _percent(case.regret),
        _percent(case.regret_staged), "WRONG: " + case.wrong[0] if case.wrong else slower,
    ]  # fmt: skip


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.1f} %"
