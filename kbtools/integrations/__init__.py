"""Where a traceback meets its article: programs, pytest, agents, new issues."""
