"""Checks names, and quotes texts for messages and shells."""

import re
import unicodedata

# The build compiles these patterns, because compiling them in each pass would cost most of the pass's fuel.
_LABEL = re.compile(r"[a-z0-9-]*")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9%+,./:@_-]+")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]+")
# Characters that join other characters, change the direction of text, or have no width.
_HIDDEN = re.compile("[\xad\u061c\ufeff\u200b-\u200f\u2028-\u202e\u2060-\u206f]")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(value, most):
    """Returns at most `most` characters of a user's text on one line, for a message."""
    return "".join(_shown(character) for character in value[:most])


def _shown(character):
    if character in _ESCAPES:
        return _ESCAPES[character]
    if unicodedata.category(character) == "Cc" or _HIDDEN.match(character):
        return f"\\u{{{ord(character):x}}}"
    return character


def shell_word(value):
    """Returns a text as one word of a POSIX shell."""
    if _PLAIN_WORD.fullmatch(value):
        return value
    return "'" + value.replace("'", "'\\''").replace("\0", "") + "'"


def member(path, name):
    """Returns the path of a member, as users write it. A name that would make the path ambiguous is in quotes."""
    if not _PLAIN_KEY.fullmatch(name):
        return f'{path}["{shown(name, 200)}"]'
    return f"{path}.{name}" if path else name


def under(root, path):
    """Returns a path with `root` before it."""
    return root + path if not root or not path or path[0] == "[" else f"{root}.{path}"


def dns1035_label(name):
    """Returns why a Service cannot have this name, or None if a Service can have it."""
    if len(name.encode()) > 63:
        return f"must be at most 63 characters long, not {len(name.encode())}"
    if not "a" <= name[:1] <= "z":
        return "must start with a lower-case letter"
    if not _LABEL.fullmatch(name):
        return "must consist of lower-case letters, digits and '-'"
    return "must end with a lower-case letter or a digit" if name.endswith("-") else None
