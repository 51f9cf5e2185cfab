"""Pages about traces: one HTML file each that works offline and prints."""

from tiercel.traces.page.job import job_page, write_job_page

__all__ = ["job_page", "write_job_page"]
