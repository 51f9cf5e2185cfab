"""What this subject brings (tiercel.subjects)."""

from tiercel.subjects import Subject

subject = Subject(
    workloads=("tiercel.inference.workload",),
    engines=("tiercel.inference.engine",),
    sections=("tiercel.inference.section",),
)
