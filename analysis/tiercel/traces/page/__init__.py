"""Pages about traces: one HTML file each that works offline and prints."""

from tiercel.traces.page.job import job_page, write_job_page
from tiercel.traces.page.pair import pair_page, write_pair_page

__all__ = ["job_page", "pair_page", "write_job_page", "write_pair_page"]
