package kaos

import (
	"fmt"
	"strings"
)

const labelMax = 63

// DNS1035Label returns why a Service cannot have this name. It returns the empty text if a Service can have the name.
func DNS1035Label(name string) string {
	return label(name, labelMax, isLower, "a lower-case letter")
}

// DNS1123Label returns why a container or a namespace cannot have this name. It returns the empty text if they can have
// the name.
func DNS1123Label(name string) string {
	return label(name, labelMax, isLowerOrDigit, "a lower-case letter or a digit")
}

// DNS1123Subdomain returns why an object cannot have this name. It returns the empty text if an object can have it.
func DNS1123Subdomain(name string) string {
	const most = 253
	if len(name) > most {
		return tooLong(name, most)
	}
	for part := range strings.SplitSeq(name, ".") {
		if why := label(part, most, isLowerOrDigit, "a lower-case letter or a digit"); why != "" {
			return why
		}
	}
	return ""
}

func isLower(c rune) bool        { return 'a' <= c && c <= 'z' }
func isLowerOrDigit(c rune) bool { return isLower(c) || '0' <= c && c <= '9' }

func label(name string, most int, first func(rune) bool, starts string) string {
	inner := func(c rune) bool { return isLowerOrDigit(c) || c == '-' }
	switch {
	case len(name) > most:
		return tooLong(name, most)
	case strings.IndexFunc(name, first) != 0:
		return "must start with " + starts
	case strings.ContainsFunc(name, func(c rune) bool { return !inner(c) }):
		return "must consist of lower-case letters, digits and '-'"
	case strings.HasSuffix(name, "-"):
		return "must end with a lower-case letter or a digit"
	}
	return ""
}

func tooLong(name string, most int) string {
	return fmt.Sprintf("must be at most %d characters long, not %d", most, len(name))
}

// Shorten returns the name if it has at most `most` bytes. Otherwise it returns the beginning of the name and a hash of
// the whole name, so that different names stay different.
func Shorten(name string, most int) string {
	if len(name) <= most {
		return name
	}
	room := max(most-9, 0)
	for room > 0 && !isBoundary(name, room) {
		room--
	}
	long := uint64(0xcbf29ce484222325)
	for i := range len(name) {
		long = (long ^ uint64(name[i])) * 0x100000001b3
	}
	return fmt.Sprintf("%s-%08x", strings.TrimRight(name[:room], "-._"), uint32(long>>32)^uint32(long))
}

// isBoundary reports whether a character begins at this byte.
func isBoundary(text string, at int) bool { return text[at]&0xc0 != 0x80 }
