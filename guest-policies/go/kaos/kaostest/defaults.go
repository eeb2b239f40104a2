package kaostest

import (
	"strings"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// defaultOf returns the default of a part of a schema: the part's `default`, completed with those of its properties.
func defaultOf(node, root kaos.Map) any {
	value := copied(node["default"])
	if target, ok := node["$ref"].(string); ok && value == nil {
		var at any = root
		for name := range strings.SplitSeq(strings.TrimPrefix(target, "#/"), "/") {
			members, _ := at.(kaos.Map)
			at = members[name]
		}
		if found, ok := at.(kaos.Map); ok {
			value = defaultOf(found, root)
		}
	}
	properties, _ := node["properties"].(kaos.Map)
	for name, property := range properties {
		of, _ := property.(kaos.Map)
		inner := defaultOf(of, root)
		if inner == nil {
			continue
		}
		if value == nil {
			value = kaos.Map{}
		}
		if outer, ok := value.(kaos.Map); ok {
			fill(outer, kaos.Map{name: inner})
		}
	}
	return value
}

// fill adds to `outer` the members of `inner` that `outer` lacks.
func fill(outer, inner kaos.Map) {
	for name, value := range inner {
		own, exists := outer[name]
		if !exists {
			outer[name] = copied(value)
			continue
		}
		ownMap, isMap := own.(kaos.Map)
		innerMap, bothMaps := value.(kaos.Map)
		if isMap && bothMaps {
			fill(ownMap, innerMap)
		}
	}
}

// copied returns a copy, so that filling a default does not change the schema.
func copied(value any) any {
	if value == nil {
		return nil
	}
	return kaos.Parse(kaos.Text(value))
}
