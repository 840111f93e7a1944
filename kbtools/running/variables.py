"""Which environment variables a snippet changes: a fork is too late for one that was read before.

In a fork the preloaded modules have been imported already. A variable that such a module reads
while it is imported has to be there before, and only a new interpreter can have that.
"""

from __future__ import annotations

import ast

CACHE = "{cache}"
"""Stands in a value of `[run.variables]` for the folder of a run's caches."""
OF_EACH_RUN = frozenset({"CUDA_CACHE_PATH", "XDG_CACHE_HOME", "CUDA_VISIBLE_DEVICES"})
"""Variables that every fork gets a value of its own for, after what was preloaded. What reads them
does so later, or no fork would have caches and GPUs of its own."""
WORDS = ("environ", "putenv", "unsetenv")
"""A source that has none of them changes no variable."""
READING = ("get", "copy", "items", "keys", "values")
CHANGING = ("setdefault", "pop")


def changed_variables(source: str) -> frozenset[str] | None:
    """The variables that Python code may change in its own process; None where that is not sure.

    Whatever is not surely reading, or a change of a variable that is named there, is not sure.

    Args:
        source: Of a snippet.
    """
    if not any(word in source for word in WORDS):
        return frozenset()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    names: set[str] = set()
    for node in ast.walk(tree):
        if is_environ(node):
            change = change_by(node, parents)
            if change is None:
                return None
            names |= change
        elif mentions(node) and not is_docstring(node, parents):
            return None
    return frozenset(names)


def is_environ(node: ast.AST) -> bool:
    """Whether a node is `os.environ`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "environ"
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    )


def mentions(node: ast.AST) -> bool:
    """Whether a node has one of the words in it, other than as `os.environ`."""
    own = (getattr(node, field, None) for field in ("id", "attr", "name", "asname", "value", "arg"))
    return any(isinstance(text, str) and any(word in text for word in WORDS) for text in own)


def is_docstring(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a node is a text that stands alone, and so does nothing."""
    return isinstance(node, ast.Constant) and isinstance(parents.get(node), ast.Expr)


def change_by(environ: ast.AST, parents: dict[ast.AST, ast.AST]) -> frozenset[str] | None:
    """What is changed where `os.environ` stands like this; None where that is not sure.

    Args:
        environ: The node.
        parents: Node → the one that it stands in.
    """
    around = parents.get(environ)
    further = parents.get(around) if around else None
    if isinstance(around, ast.Subscript) and around.value is environ:
        if isinstance(around.ctx, ast.Load):
            return frozenset()
        return named(around.slice)
    if isinstance(around, ast.Attribute) and isinstance(further, ast.Call):
        if further.func is not around:
            return None
        if around.attr in READING:
            return frozenset()
        if around.attr in CHANGING and further.args:
            return named(further.args[0])
        return None
    if isinstance(around, ast.Compare) and around.left is not environ:
        is_test = all(isinstance(operator, (ast.In, ast.NotIn)) for operator in around.ops)
        return frozenset() if is_test else None
    if isinstance(around, ast.Dict):  # {**os.environ, ...}
        unpacked = (None, environ) in list(zip(around.keys, around.values, strict=True))
        return frozenset() if unpacked else None
    return None


def named(key: ast.expr) -> frozenset[str] | None:
    """The variable that a text names; None where it is computed."""
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return frozenset({key.value})
    return None
