"""What this subject brings (tiercel.subjects)."""

from tiercel.subjects import Subject

subject = Subject(
    workloads=("tiercel.caching.workload",),
    engines=("tiercel.caching.engine",),
    sections=("tiercel.caching.section",),
    commands=("tiercel.caching.commands",),
)
