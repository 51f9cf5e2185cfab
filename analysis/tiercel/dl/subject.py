"""What this subject brings (tiercel.subjects)."""

from tiercel.subjects import Subject

subject = Subject(
    workloads=("tiercel.dl.study_workload",),
    engines=(
        "tiercel.dl.engine",
        "tiercel.dl.upstream.engine",
    ),
    sections=("tiercel.dl.section",),
    commands=("tiercel.dl.commands",),
)
