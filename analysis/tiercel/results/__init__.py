"""Results: raw folders of runs, the tables made from them, and the dataset.

Called, ``tiercel.results("local")``, it gives the results of a site (tiercel.notebook).
"""

from tiercel.called import called_as

called_as(__name__, "results")
