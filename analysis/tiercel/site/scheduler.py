"""How jobs get to a site's nodes, and what they may cost."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from tiercel.documents import Document
from tiercel.quantities import Duration, Line


class SchedulerSettings(Document):
    """The scheduler of a site. Values may name environment variables, which the submission reads."""

    name: str = Field(description="slurm, pbs, lsf, flux, gridengine or cobalt")
    partition: Line = Field(default="", description="partition or queue; empty: the site's default")
    account: Line = Field(default="", description="who pays; best an environment variable: $MY_ACCOUNT")
    walltime: Duration = Field(
        default=3600.0, ge=60, le=366 * 86400, description="the most that one job may ask for"
    )
    options: list[str] = Field(
        default=[], description="more words for sbatch; elsewhere they stand in the site's submit"
    )
    head: Literal["compute", "service"] = Field(
        default="compute", description="where the job's script runs: on its first node, or on another machine"
    )

    @field_validator("options")
    @classmethod
    def _words(cls, value: list[str]) -> list[str]:
        for word in value:
            if not word.isprintable() or " " in word:
                raise ValueError(f"{word!r} must be one word without blanks; give each its own entry")
        return value


class Limits(Document):
    """What a study may use up on a site."""

    core_hours: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="of one study; once they are used no further run begins",
    )
