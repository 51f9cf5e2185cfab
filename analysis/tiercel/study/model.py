"""What a study file says: which workloads at which scales on which stacks, how often."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from tiercel.documents import Document
from tiercel.quantities import Duration, Share
from tiercel.site.model import LayerChoice, Name
from tiercel.study.any_workload import AnyWorkload
from tiercel.study.sweep import Sweep
from tiercel.study.workloads import Workload

Count = Annotated[int, Field(ge=1)]
Processes = Literal["half", "max"] | Count


class Doubling(list[int]):
    """Numbers written as ``doubling`` (up to what the site has) or ``doubling to 128``.

    Those beyond what a site has are left out there; of the second form that is said.
    """

    bounded = True


def _or_doubling(value: Any, otherwise: ValidatorFunctionWrapHandler) -> Any:
    if not isinstance(value, str):
        return otherwise(value)
    match = re.fullmatch(r"doubling(?: to (\d{1,7}))?", value)
    if match is None or match[1] == "0":
        raise ValueError(f"must be a list of numbers, doubling, or doubling to a number (given: {value!r})")
    most = int(match[1] or 10**6)
    numbers = Doubling(2**n for n in range(most.bit_length()))
    numbers.bounded = match[1] is not None
    return numbers


Scales = WrapValidator(_or_doubling)


class Repetitions(Document):
    """How often a configuration runs: on until its interval is tight enough, within these bounds; the minimum
    where looks decide on more (`decide:`)."""

    minimum: int = Field(default=4, ge=1, description="so many at least; fewer than four decide nothing")
    # Beyond a thousand no interval gets tighter that anybody waits for; a plan has a row for each.
    maximum: int = Field(default=10, ge=1, le=1000, description="so many at most")
    target: float = Field(
        default=0.1, gt=0, lt=1, description="half width of the 95 % interval of the median, relative to it"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Repetitions:
        if self.maximum < self.minimum:
            raise ValueError("maximum must not be less than minimum")
        return self


class StackChoice(Document):
    """A stack named in a study: a storage of the site and the layers in front of it."""

    storage: Name = Field(description="one of the site's")
    layers: list[Name | LayerChoice] = Field(
        default=[], description="in front of it, from the program to the storage"
    )

    def choices(self) -> list[LayerChoice]:
        """Return the layers, from the program to the storage."""
        return [c if isinstance(c, LayerChoice) else LayerChoice(layer=c) for c in self.layers]


class Experiment(Document):
    """Workloads over scales."""

    title: str = Field(default="", description="for figures and tables; default: the name")
    nodes: Annotated[list[Count], Scales] = Field(
        default=[1], min_length=1, description="each of these numbers of nodes"
    )
    processes_per_node: Annotated[list[Processes], Scales] = Field(
        default=["max"], min_length=1, description="each of these; half and max are of the site's"
    )
    launcher: Literal["site", "fork"] = Field(
        default="site", description="fork: the engine starts its own processes, on one node and without MPI"
    )
    workloads: dict[Name, AnyWorkload] = Field(default={}, description="what is done, by name")
    sweep: Sweep | None = Field(default=None, description="a designed sample of workloads beside the named")
    repetitions: Repetitions | None = Field(default=None, description="of its own; default: the study's")
    phase_time: Duration | None = Field(
        default=None,
        ge=0.1,
        description="what a measured phase aims at: a calibration finds the amount for each stack and scale",
    )
    # What an experiment has of its own; without it, the study's.
    stacks: Literal["all"] | list[Name | StackChoice] | None = Field(
        default=None, description="of its own; default: the study's"
    )
    engines: list[Name] = Field(default=[], description="of the study's, those that run it")
    twins: bool | None = Field(default=None, description="of its own; default: the study's")
    trace: bool | None = Field(default=None, description="of its own; default: the study's")
    optional: bool = Field(
        default=False,
        description="what the site lacks of it (nodes, processes, layers, engines) is left out with a note",
    )

    @model_validator(mode="after")
    def _some(self) -> Experiment:
        if not self.workloads and self.sweep is None:
            raise ValueError("workloads: at least one workload is required (or a sweep)")
        if self.launcher == "fork" and any(n > 1 for n in self.nodes):
            raise ValueError("launcher: fork starts processes on one node only (nodes: [1])")
        if self.phase_time is not None and self.sweep is not None:
            raise ValueError("phase_time excludes sweep: the sizes of a designed sample are part of it")
        return self

    def all_workloads(self) -> dict[str, Workload]:
        """Return the named workloads and those of the sweep."""
        return {**self.workloads, **(self.sweep.workloads if self.sweep else {})}


class Study(Document):
    """One file: ``workflows/studies/<study>.yaml``."""

    study: Name = Field(description="the file's name")
    title: str = Field(description="for the report")
    description: str = Field(default="", description="for the report")
    source: str = Field(default="", description="the publication that this study repeats")
    stacks: Literal["all"] | list[Name | StackChoice] = Field(
        default="all", description="storage systems with their layers; all: every storage of the site"
    )
    engines: list[Name] = Field(default=["iokernel"], description="required")
    engines_where_found: list[Name] = Field(default=[], description="run beside them where installed")
    repetitions: Repetitions = Field(default=Repetitions(), description="how often each configuration runs")
    twins: bool = Field(
        default=True, description="run one scale of each workload twice over: the A/A noise floor"
    )
    trace: bool = Field(default=False, description="one more run of each workload, traced by DFTracer")
    timeout: Duration = Field(default=3600.0, gt=0, description="of one run")
    budget: Duration | None = Field(
        default=None, gt=0, description="engine time after which no more repetitions are added"
    )
    decide: Duration | None = Field(
        default=None,
        gt=0,
        description="time for repetitions beyond the minimum: of what is undecided, in up to three looks",
    )
    margin: Share = Field(
        default=0.1,
        gt=0,
        le=1,
        description="storages whose ratio surely lies within it, either way, are called the same",
    )
    seed: int = Field(default=1, ge=0, lt=2**31, description="of the random order")
    experiments: dict[Name, Experiment] = Field(description="by name")

    @model_validator(mode="after")
    def _some(self) -> Study:
        if not self.experiments:
            raise ValueError("experiments: at least one is required")
        if not self.engines:
            raise ValueError("engines: at least one is required")
        if self.stacks != "all" and not self.stacks:
            raise ValueError("stacks: write all, or name at least one storage")
        known = {*self.engines, *self.engines_where_found}
        for name, experiment in self.experiments.items():
            if experiment.stacks == []:
                raise ValueError(f"experiments.{name}.stacks: write all, or name at least one storage")
            if other := [e for e in experiment.engines if e not in known]:
                raise ValueError(f"experiments.{name}.engines: {other[0]} is none of the study's engines")
        return self

    def stacks_of(self, experiment: str) -> Literal["all"] | list[Name | StackChoice]:
        """Return the stacks that an experiment names, or else those of the study."""
        own = self.experiments[experiment].stacks
        return self.stacks if own is None else own

    def layer_choices(self) -> list[LayerChoice]:
        """Return the layers of all stacks that the experiments name."""
        wanted = [self.stacks_of(name) for name in self.experiments]
        stacks = [stack for each in wanted if each != "all" for stack in each]
        return [c for stack in stacks if isinstance(stack, StackChoice) for c in stack.choices()]

    def twinned(self, experiment: str) -> bool:
        own = self.experiments[experiment].twins
        return self.twins if own is None else own

    def traced(self, experiment: str) -> bool:
        own = self.experiments[experiment].trace
        return self.trace if own is None else own

    def repetitions_of(self, experiment: str) -> Repetitions:
        return self.experiments[experiment].repetitions or self.repetitions
