"""One snippet, one process. Judges nothing, and knows nothing of articles' claims."""

from kbtools.running.executor import Executor
from kbtools.running.model import Run
from kbtools.running.slots import Slots

__all__ = ["Executor", "Run", "Slots"]
