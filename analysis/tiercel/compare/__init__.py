"""Two or more evaluations side by side: sites, dates, studies, layers, storages or archives.

A **side** is what is compared (`spelling`, `places`, `tables`, `side`); the first is the baseline. `stacks`
says which storage of one side stands for which of the other, `matching` which numbers, and why some have no
partner; `judging` makes the ratios and their verdicts with `tiercel.statistics`; `circumstances` lists what
else differs between the sides, which may be the cause; `answer` is all of it; `ask` leads there from words.
Called, ``tiercel.compare("one", "two")``, it compares (tiercel.notebook).
"""

from tiercel.called import called_as

called_as(__name__, "compare")
