"""What ``import tiercel as tc`` offers to Python and Jupyter: few names, over what the command line uses.

r = tc.results("local")     # of the study that was measured last
r                           # the answer, as a table
r.numbers                   # tidy pandas tables, units in .attrs["units"]
r.dataset                   # labelled xarray, units as attributes
r.trace()                   # a traced run
tc.compare("local", "lassen").rows
tc.evaluate("local", "quick")
tc.advise("./simulate input.nml").advised
"""

from tiercel.advice.answer import Advice
from tiercel.errors import UserError
from tiercel.notebook.advising import advise
from tiercel.notebook.comparison import Comparison, compare
from tiercel.notebook.evaluation import evaluate, sites, studies
from tiercel.notebook.results import Results, results
from tiercel.notebook.tracing import trace
from tiercel.traces import IOFrame

__all__ = [
    "Advice", "Comparison", "IOFrame", "Results", "UserError", "advise", "compare", "evaluate",
    "results", "sites", "studies",
    "trace",
]  # fmt: skip
