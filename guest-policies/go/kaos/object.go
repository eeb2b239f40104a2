package kaos

import (
	"encoding/json"
	"maps"
)

// Map is a JSON object. A manifest is easy to write as a Map of Maps.
type Map = map[string]any

// Object is a Kubernetes object, or a part of one. Its functions treat a member that is missing or has another type as
// absent, so reading never fails. Only [Object.Read] reports errors.
type Object struct{ members Map }

// ParseObject reads an object from its JSON text.
func ParseObject(text JSON) Object {
	members, _ := Parse(text).(Map)
	return Object{members}
}

// Exists reports whether there is an object. It is false if the value is missing or has another type.
func (o Object) Exists() bool { return o.members != nil }

// Name returns metadata.name.
func (o Object) Name() string { return o.String("metadata", "name") }

// Namespace returns metadata.namespace.
func (o Object) Namespace() string { return o.String("metadata", "namespace") }

// Kind returns the kind.
func (o Object) Kind() string { return o.String("kind") }

// APIVersion returns the API version.
func (o Object) APIVersion() string { return o.String("apiVersion") }

// Generation returns metadata.generation.
func (o Object) Generation() int64 { return o.Int("metadata", "generation") }

// At returns the value at this path of member names, or nil.
func (o Object) At(path ...string) any {
	var value any = o.members
	for _, name := range path {
		members, ok := value.(Map)
		if !ok {
			return nil
		}
		value = members[name]
	}
	return value
}

// String returns the text at this path, or the empty text.
func (o Object) String(path ...string) string {
	text, _ := o.At(path...).(string)
	return text
}

// Bool reports whether the value at this path is true.
func (o Object) Bool(path ...string) bool { return o.At(path...) == true }

// Int returns the whole number at this path, or 0.
func (o Object) Int(path ...string) int64 {
	number, _ := o.At(path...).(json.Number)
	whole, err := number.Int64()
	if err != nil {
		return 0
	}
	return whole
}

// List returns the list at this path, or an empty list.
func (o Object) List(path ...string) []any {
	list, _ := o.At(path...).([]any)
	return list
}

// Object returns the object at this path.
func (o Object) Object(path ...string) Object {
	members, _ := o.At(path...).(Map)
	return Object{members}
}

// Condition returns the entry of status.conditions with this type.
func (o Object) Condition(of string) Object {
	for _, item := range o.List("status", "conditions") {
		if members, ok := item.(Map); ok && members["type"] == of {
			return Object{members}
		}
	}
	return Object{}
}

// Members returns a shallow copy of the members.
func (o Object) Members() Map { return maps.Clone(o.members) }

// Read decodes the member `name` into a value of the policy, with the tags of encoding/json. If the member is missing,
// the value stays as it is. The error is a refusal with the path of the wrong field.
func (o Object) Read(name string, into any) error {
	member := o.members[name]
	if member == nil {
		return nil
	}
	return decode(member, into, Path(name))
}
