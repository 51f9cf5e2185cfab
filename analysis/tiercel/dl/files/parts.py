"""The parts of a deep-learning workload file that stand by themselves: model, reader, train, checkpoint...

The keys and their meaning are DLIO's (argonne-lcf/dlio_benchmark, version 3 of its workload files); the keys
of DLIO 2.0.0 that were renamed since (``record_length``, ``model_size``, ``data_reader``) are taken too.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from tiercel.documents import Document

#: What files, and whoever counts in them, can hold.
LARGEST = 2**63 - 1
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
#: Threads or processes that are really started: more than any training has, and few enough for a machine.
_MOST_WORKERS = 4096
Workers = Annotated[int, Field(ge=1, le=_MOST_WORKERS)]
#: Bytes that Linux gives by one read at most.
_LARGEST_READ = 0x7FFF_F000
#: What a clock can count: neither infinite nor more than it holds (30 years).
_CLOCK = 1e9
Seconds = Annotated[float, Field(ge=0, le=_CLOCK)]
Shuffle = Literal["off", "seed", "random"]
#: Programs whose order of files is emulated (`tiercel.dl.kernel.order`).
FileOrder = Literal["dlio-2.0", "dlio-main", "mlperf-3.0", "mlperf-3.0-resharding", "distributed-sampler"]
#: Of a file that shows no other origin.
CURRENT_ORDER: FileOrder = "dlio-main"
Loader = Literal["tensorflow", "pytorch", "dali", "native_dali", "synthetic", "none", "custom"]

#: What a file writes for "no": YAML reads the word off as a truth value.
_OFF = BeforeValidator(lambda value: "off" if value is False else value)


def renamed(content: Any, names: dict[str, str]) -> Any:
    """Return `content` with old keys under their new names; both at once is an error."""
    if not isinstance(content, dict):
        return content
    found = dict(content)
    for old, new in names.items():
        if old in found:
            if new in found:
                raise ValueError(f"{old} and {new} are the same key: write only {new}")
            found[new] = found.pop(old)
    return found


class Duration(Document):
    """A time in seconds that is drawn anew for each step: fixed, or from a distribution."""

    mean: Seconds = 0.0
    stdev: Seconds = 0.0
    type: Literal["normal", "uniform", "gamma", "exponential", "poisson"] = "normal"
    min: float | None = Field(default=None, ge=0, le=_CLOCK, description="of type uniform")
    max: float | None = Field(default=None, ge=0, le=_CLOCK, description="of type uniform")
    shape: float | None = Field(default=None, gt=0, le=_CLOCK, description="of type gamma")
    scale: float | None = Field(default=None, ge=0, le=_CLOCK, description="of types gamma and exponential")
    lam: float | None = Field(default=None, ge=0, le=_CLOCK, description="of type poisson")

    @model_validator(mode="after")
    def _known(self) -> Duration:
        needed = {"uniform": ("min", "max"), "gamma": ("shape", "scale"), "exponential": ("scale",),
                  "poisson": ("lam",)}.get(self.type, ())  # fmt: skip
        lacking = [name for name in needed if getattr(self, name) is None]
        if lacking:
            raise ValueError(f"type: {self.type} needs {' and '.join(lacking)}")
        if self.type == "uniform" and (self.max or 0) < (self.min or 0):
            raise ValueError("max must not be less than min")
        return self

    @property
    def short(self) -> float | dict[str, Any]:
        """Return what a file needs to say of it: a number of seconds, or the keys of a distribution."""
        return self.mean if self == Duration(mean=self.mean) else self.model_dump(exclude_defaults=True)

    @property
    def expected(self) -> float:
        """Return the mean in seconds."""
        if self.type == "uniform":
            return ((self.min or 0) + (self.max or 0)) / 2
        if self.type == "gamma":
            return (self.shape or 0) * (self.scale or 0)
        return {"exponential": self.scale, "poisson": self.lam}.get(self.type) or self.mean

    @property
    def takes_time(self) -> bool:
        """Return whether it can be anything but nothing."""
        return self.expected > 0 or self.stdev > 0

    def times(self, factor: float) -> Duration:
        """Return this time made `factor` times as long. (For poisson the numbers, not the shape, change.)"""
        names = ("mean", "stdev", "min", "max", "scale", "lam")
        values = {n: getattr(self, n) * factor for n in names if getattr(self, n) is not None}
        return self.model_copy(update=values)


def _as_duration(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a time in seconds, or a mapping with mean and stdev")
    return {"mean": value} if isinstance(value, int | float) else ({} if value is None else value)


Time = Annotated[Duration, BeforeValidator(_as_duration)]


def _with_stdev(content: Any, key: str) -> Any:
    """Join the keys `key` and `key_stdev` of a file to one time."""
    if not isinstance(content, dict) or f"{key}_stdev" not in content:
        return content
    found = dict(content)
    stdev = found.pop(f"{key}_stdev")
    time = found.get(key)
    found[key] = {**(time if isinstance(time, dict) else {"mean": time or 0.0}), "stdev": stdev}
    return found


#: Bytes of a number, by the names of types in models.
DATATYPE_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8, "int8": 1, "uint8": 1}


class Parallelism(Document):
    tensor: Positive = 1
    pipeline: Positive = 1
    data: int = -1
    zero_stage: Literal[0, 1, 2, 3] = 0


class Transformer(Document):
    vocab_size: Positive = 32000
    hidden_size: Positive = 2048
    ffn_hidden_size: Positive = 8192
    num_attention_heads: Positive = 32
    num_kv_heads: Positive = 8

    def parameters(self, layers: int) -> int:
        """Return the parameters of so many layers (grouped keys, gated feed-forward), embedding and head."""
        hidden, feed = self.hidden_size, self.ffn_hidden_size
        keys = hidden // self.num_attention_heads * self.num_kv_heads
        layer = 2 * hidden + hidden * (hidden + 2 * keys) + hidden * hidden + 3 * hidden * feed
        return 2 * self.vocab_size * hidden + layers * layer + hidden


class Model(Document):
    """What is trained: only its size matters, for checkpoints."""

    name: str = "default"
    type: str | None = None
    model_size_bytes: Count | None = None
    optimization_groups: list[Count] = []
    num_layers: int = Field(default=-1, le=1_000_000)
    layer_parameters: list[Count] = []
    model_datatype: Literal["fp16", "bf16", "fp32", "fp64", "int8", "uint8"] = "fp16"
    optimizer_datatype: Literal["fp16", "bf16", "fp32", "fp64", "int8", "uint8"] = "fp32"
    parallelism: Parallelism = Parallelism()
    transformer: Transformer | None = None

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, content: Any) -> Any:
        return renamed(content, {"model_size": "model_size_bytes"})

    @property
    def parameters(self) -> int:
        """Return the parameters of a transformer, after which the optimizer's state goes where no groups are
        stated; 0 for a model whose sizes are all stated."""
        if self.num_layers <= 0 or self.layer_by_layer:
            return 0
        return (self.transformer or Transformer()).parameters(self.num_layers)

    @property
    def layer_by_layer(self) -> bool:
        """Return whether sizes are stated, and no parallelism: a file of the model, of each layer, of groups
        (see `tiercel.dl.kernel.shards`)."""
        split = self.parallelism.tensor * self.parallelism.pipeline > 1 or self.parallelism.zero_stage > 0
        derived = self.num_layers > 0 and not self.layer_parameters
        stated = self.model_size_bytes is not None or self.num_layers > 0 or bool(self.optimization_groups)
        return stated and not split and not derived

    @property
    def checkpoint_bytes(self) -> int:
        """Return about the bytes of one replica's checkpoint: weights, and three tensors of the optimizer."""
        stated = 0 if self.type == "transformer" else self.model_size_bytes or 0
        stated += 3 * sum(self.optimization_groups) + max(0, self.num_layers) * sum(self.layer_parameters)
        weights = 0 if self.layer_parameters else DATATYPE_BYTES[self.model_datatype]
        states = 0 if self.optimization_groups else 3 * DATATYPE_BYTES[self.optimizer_datatype]
        return stated + self.parameters * (weights + states)


#: Threads that ask for row groups where the file says nothing, in MLPerf Storage's DLIO.
_OF_S3DLIO, _OF_OTHERS = 32, 64
#: Whole objects that its clients but s3dlio ask for at once, at most, whatever the window.
_WHOLE_AT_ONCE = {"minio": 16, "s3torchconnector": 1}


#: Stands for a credential of a file: it is never kept, and so never in results.
NOT_KEPT = "(not kept)"
Credential = Annotated[str, BeforeValidator(lambda value: NOT_KEPT if value else "")]


class StorageOptions(Document):
    """Of object storage. Credentials are taken from the environment only, whatever stands here."""

    endpoint_url: str = ""
    region: str = ""
    s3_force_path_style: bool = False
    s3_max_attempts: Positive = 5
    storage_library: Literal["posix", "direct", "s3dlio", "s3torchconnector", "minio"] | None = None
    uri_scheme: Literal["s3", "file", "direct", "az", "gs"] = Field(
        default="s3", description="of names of objects, for the client s3dlio"
    )
    columns: list[str] = Field(default=[], description="of Parquet files, that are read; default: all")
    prefetch_workers: Workers | None = Field(
        default=None, description="reads of row groups at once, of a reader; default: 64, of s3dlio 32"
    )
    prefetch_window: Workers = Field(
        default=64, description="row groups, or whole objects, on their way, of a reader"
    )
    coalesce_rgs: Positive = Field(default=8, description="row groups that s3dlio asks for at once")
    secure: bool | None = Field(default=None, description="of the client minio: TLS or not")
    access_key_id: Credential = ""
    secret_access_key: Credential = ""

    @property
    def joined(self) -> int:
        """Return the row groups of one request."""
        return self.coalesce_rgs if self.storage_library == "s3dlio" else 1

    @property
    def window(self) -> tuple[int, int]:
        """Return the threads that ask for row groups, and the requests on their way."""
        if self.storage_library == "s3dlio":
            return (self.prefetch_workers or _OF_S3DLIO,) * 2
        return self.prefetch_workers or _OF_OTHERS, self.prefetch_window

    @property
    def whole_objects(self) -> int:
        """Return the whole objects on their way to a reader; 0 where no client is named that does so."""
        if self.storage_library == "s3dlio":
            return self.prefetch_window
        return min(self.prefetch_window, _WHOLE_AT_ONCE.get(self.storage_library or "", 0))


#: Of `StorageOptions`: what `mlpstorage` and its files state beside them.
_BESIDE = ("storage_library", "s3_force_path_style")


class Storage(Document):
    storage_type: Literal["local_fs", "direct_fs", "parallel_fs", "s3", "aistore"] = "local_fs"
    storage_root: str = "./"
    storage_options: StorageOptions = StorageOptions()
    post_generation_settle_seconds: Seconds = 0.0

    @model_validator(mode="before")
    @classmethod
    def _beside(cls, content: Any) -> Any:
        """Take options from where MLPerf Storage 3 writes some: beside `storage_options`, not in it."""
        if not isinstance(content, dict):
            return content
        beside = {key: value for key, value in content.items() if key in _BESIDE}
        options = content.get("storage_options") or {}
        if not beside or not isinstance(options, dict):
            return content
        for key, value in beside.items():
            if options.get(key, value) != value:
                raise ValueError(f"{key} is stated twice, in storage and in storage_options")
        rest = {key: value for key, value in content.items() if key not in beside}
        return {**rest, "storage_options": {**options, **beside}}

    @field_validator("storage_options", mode="before")
    @classmethod
    def _none(cls, value: Any) -> Any:
        return {} if value is None else value


class Workflow(Document):
    """Which parts of the work are done."""

    generate_data: bool = False
    train: bool = True
    evaluation: bool = False
    checkpoint: bool = False
    profiling: bool = False
    debug: bool = Field(default=False, description="in some files of DLIO, which reads it nowhere")


class Reader(Document):
    """How samples get from files to the training loop."""

    data_loader: Loader | None = Field(default=None, description="default: the framework's")
    batch_size: Positive = 1
    batch_size_eval: Positive = 1
    read_threads: int = Field(
        default=1, ge=0, le=_MOST_WORKERS, description="0: the training process itself reads"
    )
    write_threads: Count = Field(default=1, description="of MLPerf Storage's DLIO: that make files")
    computation_threads: Workers = Field(default=1, description="that prepare samples (tf.data's map)")
    prefetch_size: Count = Field(default=2, description="batches")
    file_shuffle: Annotated[Shuffle, _OFF] = "off"
    sample_shuffle: Annotated[Shuffle, _OFF] = "off"
    shuffle_size: Positive = Field(default=1024, description="samples in the buffer that is drawn from")
    order: FileOrder | None = Field(
        default=None, description="tiercel's: as which program files are read; default: by the file's origin"
    )
    file_access: Literal["multi", "shared", "collective"] = "multi"
    read_type: Literal["on_demand", "memory"] = "on_demand"
    transfer_size: int | None = Field(default=None, ge=0, le=_LARGEST_READ, description="bytes of one read")
    preprocess_time: Time = Duration()
    odirect: bool = False
    dont_use_mmap: bool = False
    pin_memory: bool = True
    multiprocessing_context: Literal["fork", "spawn", "forkserver"] = "fork"
    data_loader_sampler: Literal["iterative", "index", "none"] | None = None
    data_loader_classname: str | None = None
    reader_classname: str | None = None
    transformed_record_dims: list[Positive] = []
    transformed_record_element_type: str = "uint8"

    @model_validator(mode="before")
    @classmethod
    def _joined(cls, content: Any) -> Any:
        return _with_stdev(content, "preprocess_time")

    @field_validator("transfer_size")
    @classmethod
    def _unset(cls, value: int | None) -> int | None:
        return value or None  # 0 in MLPerf Storage's runs: the framework's own choice


class Train(Document):
    epochs: Positive = 1
    total_training_steps: int = Field(default=-1, description="of one epoch and rank; -1: all data")
    seed_change_epoch: bool = True
    seed: int = Field(default=123, ge=0)
    computation_time: Time = Duration()

    @model_validator(mode="before")
    @classmethod
    def _joined(cls, content: Any) -> Any:
        return _with_stdev(content, "computation_time")

    @field_validator("total_training_steps")
    @classmethod
    def _some(cls, value: int) -> int:
        if value == 0:
            raise ValueError("must be 1 or more steps, or -1 for all data")
        return value


class Evaluation(Document):
    eval_time: Time = Duration()
    eval_after_epoch: Positive = 1
    epochs_between_evals: Count = 1

    @model_validator(mode="before")
    @classmethod
    def _joined(cls, content: Any) -> Any:
        return _with_stdev(content, "eval_time")


class Ksm(Document):
    madv_mergeable_id: int = 12
    high_ram_trigger: float = 30.0
    low_ram_exit: float = 15.0
    await_time: int = 200


class Checkpoint(Document):
    checkpoint_folder: str = "./checkpoints/"
    checkpoint_after_epoch: Positive = 1
    epochs_between_checkpoints: Positive = 1
    steps_between_checkpoints: int = -1
    type: Literal["rank_zero", "all_ranks"] = "rank_zero"
    mode: Literal["default", "subset"] = "default"
    checkpoint_mechanism_classname: str | None = None
    fsync: bool = False
    time_between_checkpoints: Time = Duration()
    rank_sync: bool = False
    recovery_rank_shift: bool = False
    num_checkpoints_write: int = -1
    num_checkpoints_read: int = -1
    randomize_tensor: bool = True
    ksm: Ksm | None = None

    @model_validator(mode="after")
    def _known(self) -> Checkpoint:
        if self.steps_between_checkpoints == 0:
            raise ValueError("steps_between_checkpoints must be 1 or more, or -1 for checkpoints by epoch")
        if 0 < self.num_checkpoints_write < self.num_checkpoints_read:
            raise ValueError(
                f"num_checkpoints_read: {self.num_checkpoints_read} is more than "
                f"num_checkpoints_write: {self.num_checkpoints_write}"
            )
        return self


class Metric(Document):
    """Steps that are left out of utilisation and throughput."""

    exclude_start_steps: Count = 1
    exclude_end_steps: Count = 0


class Output(Document):
    folder: str | None = None
    log_file: str = "dlio.log"
    metric: Metric = Metric()


class Logging(Document):
    verbosity: str = Field(default="INFO", description="in some files for DLIO, which reads it nowhere")


class Profiling(Document):
    profiler: Literal["none", "iostat", "darshan", "tensorboard"] = "iostat"
    iostat_devices: list[str] | str = []


class Goal(Document):
    au: float = Field(default=0.90, gt=0, le=1, description="accelerator utilisation that passes")
