package patch

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

var fine mistake

// sorted returns the names of the members in alphabetical order, so that the first mistake is always the same.
func sorted(members kaos.Map) []string { return slices.Sorted(maps.Keys(members)) }

// checkObject checks a patch on its own, without the base.
func (m merger) checkObject(patch kaos.Map, of *typ, path kaos.Path) mistake {
	switch patch[directive] {
	case "delete":
		return fine
	case "replace", "merge":
	default:
		if _, has := patch[directive]; has {
			return mistake{"$patch must be delete, merge or replace", path.Key(directive)}
		}
	}
	// An empty text counts as unset, as on an API server: `value: ""` is allowed together with `valueFrom`.
	first := ""
	for _, key := range sorted(patch) {
		if !m.exclusive || !of.rivals(key) || patch[key] == nil || patch[key] == "" {
			continue
		}
		if first != "" {
			return mistake{"must not be set together with " + first + "; remove one of them", path.Key(key)}
		}
		first = key
	}
	for _, key := range sorted(patch) {
		if isDirective(key) {
			continue
		}
		below := of.fields[key].of
		if below == nil {
			below = &plain
		}
		if wrong := m.checkValue(patch[key], below, path.Key(key)); wrong != fine {
			return wrong
		}
	}
	return fine
}

func (m merger) checkValue(patch any, of *typ, path kaos.Path) mistake {
	switch patch := patch.(type) {
	case kaos.Map:
		return m.checkObject(patch, of, path)
	case []any:
		for i, item := range patch {
			if wrong := m.checkValue(item, of, path.Index(i)); wrong != fine {
				return wrong
			}
		}
	}
	return fine
}

// fresh returns the value that a patch creates where the base has no value. It returns nil if the patch only deletes.
func fresh(patch any) any {
	switch patch := patch.(type) {
	case kaos.Map:
		if word, has := patch[directive]; has && word != "replace" && word != "merge" {
			return nil
		}
		kept := kaos.Map{}
		for key, value := range patch {
			if isDirective(key) {
				continue
			}
			if value := fresh(value); value != nil {
				kept[key] = value
			}
		}
		return kept
	case []any:
		kept := []any{}
		for _, item := range patch {
			// Skip an item with a directive: it is not content.
			if members, ok := item.(kaos.Map); ok && members[directive] != nil {
				continue
			}
			if item := fresh(item); item != nil {
				kept = append(kept, item)
			}
		}
		return kept
	}
	return patch
}

func (m merger) mergeMap(base, patch kaos.Map, of *typ, path kaos.Path) (kaos.Map, mistake) {
	switch patch[directive] {
	case "delete":
		return kaos.Map{}, fine
	case "replace":
		kept, _ := fresh(patch).(kaos.Map)
		return kept, fine
	}
	if wrong := retain(base, patch, path); wrong != fine {
		return nil, wrong
	}
	if m.exclusive {
		makeRoom(base, patch, of)
	}
	for _, key := range sorted(patch) {
		wrong := fine
		if field, ok := strings.CutPrefix(key, deleteFrom); ok {
			wrong = deleteItems(base, field, patch[key], path.Key(key))
		} else if field, ok := strings.CutPrefix(key, elementOrder); ok {
			if _, has := patch[field]; !has {
				wrong = setOrder(base, field, patch[key], of, path.Key(key))
			}
		} else if !isDirective(key) {
			wrong = m.mergeMember(base, key, patch, of, path.Key(key))
		}
		if wrong != fine {
			return nil, wrong
		}
	}
	return base, fine
}

func (m merger) mergeMember(base kaos.Map, key string, patch kaos.Map, of *typ, path kaos.Path) mistake {
	below, has := base[key]
	var merged any
	wrong := fine
	rule := of.fields[key]
	wanted, isOrdered := patch[elementOrder+key]
	switch overlay := patch[key].(type) {
	case kaos.Map:
		under, ok := below.(kaos.Map)
		if !ok {
			merged = fresh(overlay)
			break
		}
		inner := &plain
		if rule.of != nil && rule.key == "" {
			inner = rule.of
		}
		var all kaos.Map
		all, wrong = m.mergeMap(under, overlay, inner, path)
		merged = all
	case []any:
		under, ok := below.([]any)
		switch {
		case ok && rule.key != "":
			var all []any
			all, wrong = m.mergeList(under, overlay, rule, wanted, isOrdered, path)
			merged = all
		case ok && rule.set:
			var all []any
			all, wrong = mergeSet(under, overlay, wanted, isOrdered, path)
			merged = all
		default:
			merged = fresh(overlay)
		}
	default:
		merged = overlay
	}
	if wrong != fine {
		return wrong
	}
	if merged != nil {
		base[key] = merged
	} else if has {
		delete(base, key)
	}
	return fine
}

// retain applies $retainKeys: it removes every member of the base that the directive does not list.
func retain(base, patch kaos.Map, path kaos.Path) mistake {
	value, has := patch[retainKeys]
	if !has {
		return fine
	}
	keys, ok := value.([]any)
	if !ok {
		return mistake{"must be a list", path.Key(retainKeys)}
	}
	for _, key := range sorted(patch) {
		if patch[key] != nil && !isDirective(key) && !slices.Contains(keys, any(key)) {
			message := "$retainKeys must list every field that is set here; " + key + " is missing"
			return mistake{message, path.Key(retainKeys)}
		}
	}
	maps.DeleteFunc(base, func(key string, _ any) bool { return !slices.Contains(keys, any(key)) })
	return fine
}

// makeRoom removes those members of the base that are not allowed together with a member of the patch.
func makeRoom(base, patch kaos.Map, of *typ) {
	sets := func(key string) bool { return patch[key] != nil }
	if of.by != "" {
		if sets(of.by) && !reflect.DeepEqual(base[of.by], patch[of.by]) {
			clear(base)
		}
		return
	}
	for key := range patch {
		if of.rivals(key) && sets(key) {
			maps.DeleteFunc(base, func(key string, _ any) bool { return of.rivals(key) && !sets(key) })
			return
		}
	}
}

func deleteItems(base kaos.Map, field string, gone any, path kaos.Path) mistake {
	values, ok := gone.([]any)
	if !ok {
		return mistake{"must be a list", path}
	}
	if items, ok := base[field].([]any); ok {
		base[field] = slices.DeleteFunc(items, func(item any) bool {
			return slices.ContainsFunc(values, func(value any) bool { return reflect.DeepEqual(item, value) })
		})
	}
	return fine
}

// setOrder applies $setElementOrder to the list of the base if the patch does not contain this list.
func setOrder(base kaos.Map, field string, wanted any, of *typ, path kaos.Path) mistake {
	list, ok := wanted.([]any)
	if !ok {
		return mistake{"must be a list", path}
	}
	items, ok := base[field].([]any)
	if !ok {
		return fine
	}
	key := of.fields[field].key
	order, wrong := ids(list, key, path, noMergeKey)
	if wrong != fine {
		return wrong
	}
	below, wrong := ids(items, key, path, baseWithoutKey)
	if wrong != fine {
		return wrong
	}
	base[field] = arrange(items, below, order, below)
	return fine
}
