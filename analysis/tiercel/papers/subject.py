"""What this brings to reports (tiercel.subjects): a study beside the paper that it repeats."""

from tiercel.subjects import Subject

subject = Subject(sections=("tiercel.papers.section",))
