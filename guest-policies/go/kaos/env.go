package kaos

import (
	"strings"
)

// Env builds the mapping of environment variables. A name occurs once in a container, and the user's value wins.
type Env struct{ entries []entry }

type entry struct {
	EnvVar
	// stays says that the variable keeps its value when the policy sets another value.
	stays bool
}

// EnvOver starts from the mapping of the layer below. Set, Bind and Hold replace these variables, even the user's.
func EnvOver(base []EnvVar) *Env {
	env := &Env{}
	for _, variable := range base {
		env.entries = append(env.entries, entry{EnvVar: variable})
	}
	return env
}

// Vars returns the finished mapping.
func (e *Env) Vars() []EnvVar {
	vars := make([]EnvVar, len(e.entries))
	for i, entry := range e.entries {
		vars[i] = entry.EnvVar
	}
	return vars
}

// Container returns the variables of one container.
func (e *Env) Container(name string) EnvOfContainer { return EnvOfContainer{e, name} }

// EnvOfContainer has the variables of one container.
type EnvOfContainer struct {
	env       *Env
	container string
}

// Set sets a variable of the policy. The process sees exactly this text, because Set escapes `$(NAME)` for Kubernetes. A
// variable that User or Hold set keeps its value.
func (c EnvOfContainer) Set(name, value, origin string) EnvOfContainer {
	return c.Bind(name, Literal(Unexpanded(value)), origin)
}

// SetSome is like Set, but does nothing if the value is empty.
func (c EnvOfContainer) SetSome(name, value, origin string) EnvOfContainer {
	if value == "" {
		return c
	}
	return c.Set(name, value, origin)
}

// Bind is like Set, but takes any source, and Kubernetes expands `$(NAME)` in a literal.
func (c EnvOfContainer) Bind(name string, source EnvSource, origin string) EnvOfContainer {
	return c.put(name, source, origin, false)
}

// Hold is like Bind, but the value stays even if the policy later sets another value. The user's value still wins.
func (c EnvOfContainer) Hold(name string, source EnvSource, origin string) EnvOfContainer {
	return c.put(name, source, origin, true)
}

func (c EnvOfContainer) put(name string, source EnvSource, origin string, stays bool) EnvOfContainer {
	own := entry{EnvVar{Container: c.container, Name: name, Source: source, Origin: origin}, stays}
	switch at := c.position(name); {
	case at < 0:
		c.env.entries = append(c.env.entries, own)
	case !c.env.entries[at].stays:
		c.env.entries[at] = own
	}
	return c
}

// User adds the user's variables from the `env` list at `path` of the object, in the user's order.
//
// If the mapping already has a variable of the same name, this variable gets the user's value and keeps its position,
// so that later variables can still refer to it. But if the user's value refers to a variable after this position, the
// variable moves to the place that it has in the user's list.
func (c EnvOfContainer) User(list []any, path string) error {
	vars, err := variables(c.container, list, path)
	if err != nil {
		return err
	}
	for _, variable := range vars {
		c.env.entries = append(c.env.entries, entry{variable, true})
	}
	definitions := make([]definition, len(c.env.entries))
	for i, entry := range c.env.entries {
		if entry.Container == c.container {
			definitions[i] = definitionOf(entry.EnvVar)
		}
	}
	c.env.entries = picked(c.env.entries, order(definitions))
	return nil
}

// Get returns the source of a variable, or nil if the container does not have the variable.
func (c EnvOfContainer) Get(name string) EnvSource {
	if at := c.position(name); at >= 0 {
		return c.env.entries[at].Source
	}
	return nil
}

// Remove removes a variable, even if the user set it.
func (c EnvOfContainer) Remove(name string) EnvOfContainer {
	if at := c.position(name); at >= 0 {
		c.env.entries = append(c.env.entries[:at], c.env.entries[at+1:]...)
	}
	return c
}

func (c EnvOfContainer) position(name string) int {
	for i, entry := range c.env.entries {
		if entry.Name == name && entry.Container == c.container {
			return i
		}
	}
	return -1
}

// Unexpanded escapes a text so that Kubernetes expands no variable in it.
func Unexpanded(text string) string {
	var escaped strings.Builder
	for i := range len(text) {
		escaped.WriteByte(text[i])
		if text[i] == '$' && i+1 < len(text) {
			if next := text[i+1]; next == '$' || next == '(' || next >= 0x80 {
				escaped.WriteByte('$')
			}
		}
	}
	return escaped.String()
}

// references returns the names of the variables that Kubernetes expands in a text.
func references(text string) []string {
	var names []string
	for {
		at := strings.IndexByte(text, '$')
		if at < 0 || at+1 == len(text) {
			return names
		}
		text = text[at+1:]
		switch text[0] {
		case '(':
			end := strings.IndexByte(text, ')')
			if end < 0 {
				return names
			}
			names = append(names, text[1:end])
			text = text[end+1:]
		case '$':
			text = text[1:]
		}
	}
}

// definition is the name of a variable, and its value, which can refer to other variables. Other items have no name.
type definition struct{ name, text string }

func definitionOf(variable EnvVar) definition {
	text, _ := variable.Source.(Literal)
	return definition{variable.Name, string(text)}
}

// order returns the positions of the definitions to keep, in their final order. The last definition of a name moves to
// the position of the first, except if it refers to a variable between the two.
func order(definitions []definition) []int {
	const gone = -1
	stands := map[string]int{}
	var all []int
	for at, own := range definitions {
		stood, known := stands[own.name]
		if own.name != "" && known {
			refersToLater := false
			for _, name := range references(own.text) {
				other, ok := stands[name]
				refersToLater = refersToLater || ok && other > stood
			}
			if !refersToLater {
				all[stood] = at
				continue
			}
			all[stood] = gone
		}
		if own.name != "" {
			stands[own.name] = len(all)
		}
		all = append(all, at)
	}
	kept := all[:0]
	for _, at := range all {
		if at != gone {
			kept = append(kept, at)
		}
	}
	return kept
}

func picked[T any](items []T, order []int) []T {
	kept := make([]T, len(order))
	for i, at := range order {
		kept[i] = items[at]
	}
	return kept
}
