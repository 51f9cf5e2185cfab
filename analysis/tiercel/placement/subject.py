"""What this subject brings (tiercel.subjects)."""

from tiercel.subjects import Subject

subject = Subject(
    workloads=("tiercel.placement.workload",),
    engines=("tiercel.placement.engine",),
    sections=("tiercel.placement.section",),
    commands=("tiercel.placement.commands",),
)
