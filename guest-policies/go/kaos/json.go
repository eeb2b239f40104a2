package kaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Text returns the canonical JSON text of a value: with sorted keys and without spaces, as the contract demands. It
// panics if the value has no JSON, for example because it contains a function.
func Text(value any) JSON { return JSON(appendValue(nil, value)) }

// Parse returns the value of a JSON text: nil, a bool, a string, a json.Number, a []any or a map[string]any. For a text
// that is not JSON, it returns nil.
func Parse(text JSON) any {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

func appendValue(to []byte, value any) []byte {
	switch value := value.(type) {
	case nil:
		return append(to, "null"...)
	case bool:
		return strconv.AppendBool(to, value)
	case string:
		return appendText(to, value)
	case int:
		return strconv.AppendInt(to, int64(value), 10)
	case json.Number:
		return append(to, value...)
	case []any:
		return appendItems(to, value)
	case []Map:
		return appendItems(to, value)
	case []string:
		return appendItems(to, value)
	case Map:
		return appendMembers(to, value)
	case map[string]string:
		return appendMembers(to, value)
	case Object:
		return appendMembers(to, value.members)
	case JSON:
		return appendValue(to, Parse(value))
	}
	// For types of the policy, json.Marshal reads the tags. But it neither sorts the fields nor writes minimal escapes.
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("%T has no JSON: %v", value, err))
	}
	return appendValue(to, Parse(JSON(text)))
}

func appendItems[T any](to []byte, items []T) []byte {
	to = append(to, '[')
	for i, item := range items {
		if i > 0 {
			to = append(to, ',')
		}
		to = appendValue(to, item)
	}
	return append(to, ']')
}

func appendMembers[T any](to []byte, members map[string]T) []byte {
	to = append(to, '{')
	for i, name := range sortedNames(members) {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(appendText(to, name), ':')
		to = appendValue(to, members[name])
	}
	return append(to, '}')
}

func sortedNames[T any](members map[string]T) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// appendText writes a text with only the escapes that JSON demands. encoding/json escapes more characters.
func appendText(to []byte, text string) []byte {
	const digits = "0123456789abcdef"
	to = append(to, '"')
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			to = utf8.AppendRune(to, r)
			i += size
			continue
		}
		i++
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c >= ' ':
			to = append(to, c)
		case c == '\n':
			to = append(to, '\\', 'n')
		case c == '\r':
			to = append(to, '\\', 'r')
		case c == '\t':
			to = append(to, '\\', 't')
		case c == '\b':
			to = append(to, '\\', 'b')
		case c == '\f':
			to = append(to, '\\', 'f')
		default:
			to = append(to, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(to, '"')
}
