# The public interface, for type checkers and editors: __init__.py imports it when it is asked for.
from tiercel.advice.answer import Advice as Advice
from tiercel.errors import UserError as UserError
from tiercel.notebook import Comparison as Comparison
from tiercel.notebook import Results as Results
from tiercel.notebook import advise as advise
from tiercel.notebook import compare as compare
from tiercel.notebook import evaluate as evaluate
from tiercel.notebook import results as results
from tiercel.notebook import sites as sites
from tiercel.notebook import studies as studies
from tiercel.notebook import trace as trace
from tiercel.traces import IOFrame as IOFrame

__version__: str
__all__: list[str]
