"""Finds the functions that Python source defines at top level."""

import re

MOST = 500

# The patterns are compiled at build time. A loop over characters would cost much more fuel in each pass.
_DEFINITION = re.compile(r"(?:async[ \t]+)?def[ \t]+([A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*)[ \t]*[(\[]")
_PLAIN = re.compile(r"[^\n#\"'\\()\[\]{}]+")
_COMMENT = re.compile(r"[^\n]*")
_ESCAPED = re.compile(r"(?:\r\n|[\s\S])?")
_LINES = {
    '"': re.compile(r'(?:[^"\\\n]+|\\(?:\r\n|[\s\S])?)*"?'),
    "'": re.compile(r"(?:[^'\\\n]+|\\(?:\r\n|[\s\S])?)*'?"),
}
_TRIPLES = {
    '"': re.compile(r'(?:[^"\\]+|\\(?:\r\n|[\s\S])?|"(?!""))*(?:""")?'),
    "'": re.compile(r"(?:[^'\\]+|\\(?:\r\n|[\s\S])?|'(?!''))*(?:''')?"),
}


def top_level(source):
    """Returns the names of the functions, in order and without duplicates. Reads just enough of strings, brackets, comments
    and line continuations to find the statements that begin in column zero. If the text is not Python, the list may be
    wrong."""
    source = source.removeprefix("\ufeff")
    names, at = {}, 0
    while at < len(source) and len(names) < MOST:
        found = _DEFINITION.match(source, at)
        if found:
            names[found.group(1)] = None
        at = _after_statement(source, at)
    return list(names)


def _after_statement(source, at):
    """Returns the position after the rest of the logical line."""
    depth = 0
    while at < len(source):
        character = source[at]
        at += 1
        if character == "\n":
            if depth == 0:
                break
        elif character == "#":
            at = _COMMENT.match(source, at).end()
        elif character == "\\":
            at = _ESCAPED.match(source, at).end()
        elif character in _LINES:
            if source.startswith(character * 2, at):
                at = _TRIPLES[character].match(source, at + 2).end()
            else:
                at = _LINES[character].match(source, at).end()
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth = max(depth - 1, 0)
        else:
            at = _PLAIN.match(source, at - 1).end()
    return at
