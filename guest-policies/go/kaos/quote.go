package kaos

import (
	"fmt"
	"strings"
	"unicode"
)

// Shown returns at most `most` characters of a user's text as one line, for a message. It escapes characters that
// control a terminal or are invisible.
func Shown(text string, most int) string {
	var shown strings.Builder
	for _, c := range text {
		if most == 0 {
			break
		}
		most--
		switch {
		case c == '"' || c == '\\':
			shown.WriteByte('\\')
			shown.WriteRune(c)
		case c == '\n':
			shown.WriteString(`\n`)
		case c == '\r':
			shown.WriteString(`\r`)
		case c == '\t':
			shown.WriteString(`\t`)
		case unicode.IsControl(c) || isHidden(c):
			fmt.Fprintf(&shown, `\u{%x}`, c)
		default:
			shown.WriteRune(c)
		}
	}
	return shown.String()
}

// isHidden reports whether a character joins other characters, changes the direction of text, or has no width.
func isHidden(c rune) bool {
	return c == 0xad || c == 0x61c || c == 0xfeff || 0x200b <= c && c <= 0x200f || 0x2028 <= c && c <= 0x202e ||
		0x2060 <= c && c <= 0x206f
}

// ShellWord returns a text as one word of a POSIX shell.
func ShellWord(text string) string {
	plain := func(c rune) bool { return isAlphanumeric(c) || strings.ContainsRune("%+,-./:@_", c) }
	if text != "" && !strings.ContainsFunc(text, func(c rune) bool { return !plain(c) }) {
		return text
	}
	return "'" + strings.NewReplacer("'", `'\''`, "\x00", "").Replace(text) + "'"
}

func isAlphanumeric(c rune) bool { return isLowerOrDigit(c) || 'A' <= c && c <= 'Z' }

// Path is the path of a field, as users write it: spec.models[0], metadata.annotations["a.b/c"].
type Path string

// Key returns the path of a member. It quotes a name that would make the path ambiguous.
func (p Path) Key(name string) Path {
	plain := func(c rune) bool { return isAlphanumeric(c) || strings.ContainsRune("-_$", c) }
	switch {
	case name == "" || strings.ContainsFunc(name, func(c rune) bool { return !plain(c) }):
		return p + Path(`["`+Shown(name, 200)+`"]`)
	case p == "":
		return Path(name)
	}
	return p + "." + Path(name)
}

// Index returns the path of an item of a list.
func (p Path) Index(at int) Path { return p + Path(fmt.Sprintf("[%d]", at)) }

// Under returns the path with `root` before it.
func (p Path) Under(root string) string {
	switch {
	case root == "" || p == "":
		return root + string(p)
	case p[0] == '[':
		return root + string(p)
	}
	return root + "." + string(p)
}
