package main

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// topLevelFunctions returns the names of the functions that Python source defines at top level, in order and without
// duplicates. It scans just enough of strings, brackets, comments and line continuations to find the statements that
// begin in column zero. If the text is not Python, the list may be wrong.
func topLevelFunctions(source string) []string {
	const most = 500
	var names []string
	s := scanner(strings.TrimPrefix(source, "\ufeff"))
	for s != "" && len(names) < most {
		if name := definedName(string(s)); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
		s.skipStatement()
	}
	return names
}

// definedName returns the name after `def` or `async def`, or the empty text.
func definedName(statement string) string {
	if after, ok := keyword(statement, "async"); ok {
		statement = after
	}
	name, ok := keyword(statement, "def")
	if !ok {
		return ""
	}
	isEnd := func(c rune) bool {
		return !(c == '_' || c >= utf8.RuneSelf || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	after := ""
	if end := strings.IndexFunc(name, isEnd); end >= 0 {
		name, after = name[:end], strings.TrimLeft(name[end:], " \t")
	}
	if name == "" || '0' <= name[0] && name[0] <= '9' || !strings.HasPrefix(after, "(") && !strings.HasPrefix(after, "[") {
		return ""
	}
	return name
}

// keyword returns the text after `word` and the blanks behind it. A blank is required.
func keyword(text, word string) (string, bool) {
	after, ok := strings.CutPrefix(text, word)
	trimmed := strings.TrimLeft(after, " \t")
	return trimmed, ok && len(trimmed) < len(after)
}

type scanner string

// skipStatement skips the rest of the logical line.
func (s *scanner) skipStatement() {
	depth := 0
	for *s != "" {
		switch c := s.take(); c {
		case '\n':
			if depth == 0 {
				return
			}
		case '#':
			if end := strings.IndexByte(string(*s), '\n'); end >= 0 {
				*s = (*s)[end:]
			} else {
				*s = ""
			}
		case '"', '\'':
			s.skipString(c)
		case '\\':
			s.skipEscaped()
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
	}
}

// take returns the next byte. The scanner looks only for ASCII bytes, so it need not decode characters.
func (s *scanner) take() byte {
	c := (*s)[0]
	*s = (*s)[1:]
	return c
}

// skipEscaped skips one character, or both characters of a Windows line ending.
func (s *scanner) skipEscaped() {
	if *s != "" && s.take() == '\r' && strings.HasPrefix(string(*s), "\n") {
		s.take()
	}
}

// skipString skips a string with its closing quote. An unclosed string without triple quotes ends with its line.
func (s *scanner) skipString(quote byte) {
	doubled := strings.Repeat(string(quote), 2)
	triple := strings.HasPrefix(string(*s), doubled)
	if triple {
		*s = (*s)[2:]
	}
	for *s != "" {
		if triple && strings.HasPrefix(string(*s), doubled+string(quote)) {
			*s = (*s)[3:]
			return
		}
		if !triple && (*s)[0] == '\n' {
			return
		}
		switch c := s.take(); {
		case c == '\\':
			s.skipEscaped()
		case c == quote && !triple:
			return
		}
	}
}
