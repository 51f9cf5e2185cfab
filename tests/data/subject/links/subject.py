from tiercel.subjects import Subject

subject = Subject(
    workloads=("links.workload",),
    engines=("links.engine",),
    sections=("links.section",),
    findings=("links.findings",),
    commands=("links.commands",),
)
