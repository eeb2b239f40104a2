package kaos

import (
	"fmt"
	"strings"
)

// ContainerEnv returns the `env` list of one container. Like an API server, it omits an empty `value`.
func ContainerEnv(vars []EnvVar, container string) []any {
	list := []any{}
	for _, variable := range vars {
		if variable.Container == container {
			list = append(list, listed(variable))
		}
	}
	return list
}

func listed(variable EnvVar) Map {
	from := Map{}
	switch source := variable.Source.(type) {
	case Literal:
		if source == "" {
			return Map{"name": variable.Name}
		}
		return Map{"name": variable.Name, "value": string(source)}
	case SecretKey:
		from["secretKeyRef"] = selected(KeySelector(source))
	case ConfigMapKey:
		from["configMapKeyRef"] = selected(KeySelector(source))
	case FieldPath:
		from["fieldRef"] = Map{"fieldPath": string(source)}
	case Other:
		return Map{"name": variable.Name, "valueFrom": Parse(JSON(source))}
	}
	return Map{"name": variable.Name, "valueFrom": from}
}

func selected(selector KeySelector) Map {
	of := Map{"key": selector.Key, "name": selector.Name}
	if selector.Optional {
		of["optional"] = true
	}
	return of
}

// variables reads the `env` list at `path` of the object. The refusal names every wrong entry.
func variables(container string, list []any, path string) ([]EnvVar, error) {
	var wrong Violations
	var vars []EnvVar
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if name, source := variable(item, at, &wrong); source != nil {
			vars = append(vars, EnvVar{Container: container, Name: name, Source: source, Origin: at})
		}
	}
	return vars, wrong.Refusal()
}

// variable reads the name and the source of an item of an `env` list. The source of a wrong item is nil.
func variable(item any, at string, wrong *Violations) (name string, source EnvSource) {
	members, _ := item.(Map)
	name, _ = members["name"].(string)
	if name == "" {
		wrong.Add(at+".name", "is required; it is the variable's name")
		return name, nil
	}
	if strings.ContainsAny(name, "=\x00") {
		wrong.Add(at+".name", "must not contain '='")
		return name, nil
	}
	return name, sourceOf(members, at, wrong)
}

func sourceOf(members Map, at string, wrong *Violations) EnvSource {
	value, isText := members["value"].(string)
	if members["value"] != nil && !isText {
		wrong.Add(at+".value", "must be text; put it into quotes")
		return nil
	}
	if members["valueFrom"] == nil {
		return Literal(value)
	}
	from, isObject := members["valueFrom"].(Map)
	switch {
	case !isObject:
		wrong.Add(at+".valueFrom", "must be an object")
		return nil
	case value != "":
		wrong.Add(at+".valueFrom", "must not be set together with value; remove one of them")
		return nil
	}
	return referenceOf(from)
}

// referenceOf returns `from` as a typed source if a type has all members of `from`. Otherwise it returns the JSON text.
func referenceOf(from Map) EnvSource {
	if len(from) == 1 {
		if selector, ok := selectorOf(from["secretKeyRef"]); ok {
			return SecretKey(selector)
		}
		if selector, ok := selectorOf(from["configMapKeyRef"]); ok {
			return ConfigMapKey(selector)
		}
		if field, ok := from["fieldRef"].(Map); ok && len(field) == 1 {
			if path, ok := field["fieldPath"].(string); ok {
				return FieldPath(path)
			}
		}
	}
	return Other(Text(from))
}

func selectorOf(value any) (KeySelector, bool) {
	members, _ := value.(Map)
	var selector KeySelector
	for member, value := range members {
		text, isText := value.(string)
		switch {
		case member == "name" && isText:
			selector.Name = text
		case member == "key" && isText:
			selector.Key = text
		case member == "optional" && value == true:
			selector.Optional = true
		default:
			return KeySelector{}, false
		}
	}
	return selector, selector.Name != "" && selector.Key != ""
}
