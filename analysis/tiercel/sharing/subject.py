"""What this subject brings (tiercel.subjects)."""

from tiercel.subjects import Subject

subject = Subject(
    workloads=(
        "tiercel.sharing.workload",
        "tiercel.sharing.workload_application",
        "tiercel.sharing.workload_servers",
    ),
    engines=("tiercel.sharing.engine",),
    sections=("tiercel.sharing.section",),
    commands=("tiercel.sharing.commands",),
)
