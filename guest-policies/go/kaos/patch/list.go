package patch

import (
	"slices"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

const orderMismatch = "$setElementOrder must list every item of the patch, in the same order"

func noMergeKey(key string) string {
	return "each item needs the field " + key + ", which identifies it"
}

func baseWithoutKey(key string) string {
	return "cannot be merged: an item of the base list has no " + key
}

// ids returns the id of each item: the value of the merge key, or the item itself if the list has no merge key.
func ids(items []any, key string, path kaos.Path, missing func(string) string) ([]string, mistake) {
	all := make([]string, len(items))
	for i, item := range items {
		if key == "" {
			all[i] = idOf(item)
			continue
		}
		members, ok := item.(kaos.Map)
		switch {
		case !ok:
			return nil, mistake{"must be an object", path.Index(i)}
		case members[key] == nil:
			return nil, mistake{missing(key), path.Index(i)}
		}
		all[i] = idOf(members[key]) + protocol(key, members)
	}
	return all, fine
}

// idOf returns the id of a value. A text is its own id. The id of any other value begins with a control character, so
// that `8000` differs from `"8000"`.
func idOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	return "\x00" + string(kaos.Text(value))
}

// protocol returns a port's protocol, to distinguish ports with the same number. It is empty for TCP, the default.
func protocol(key string, members kaos.Map) string {
	if key != "containerPort" && key != "port" {
		return ""
	}
	if protocol, _ := members["protocol"].(string); protocol != "TCP" {
		return protocol
	}
	return ""
}

// positions returns the first position of each id.
func positions(ids []string) map[string]int {
	first := make(map[string]int, len(ids))
	for i, id := range ids {
		if _, has := first[id]; !has {
			first[id] = i
		}
	}
	return first
}

// arrange orders items as strategicpatch does. Items with an id in `wanted` get the order of `wanted`. The other items
// keep their order. One of these comes before an item of `wanted` only if `below` contains both in this order.
func arrange(items []any, own, wanted, below []string) []any {
	type placed struct {
		was  int
		item any
	}
	named := make([][]placed, len(wanted))
	var others []placed
	to, before := positions(wanted), positions(below)
	for i, item := range items {
		was, had := before[own[i]]
		if !had {
			was = -1
		}
		if at, is := to[own[i]]; is {
			named[at] = append(named[at], placed{was, item})
		} else {
			others = append(others, placed{was, item})
		}
	}
	arranged := make([]any, 0, len(items))
	for _, next := range slices.Concat(named...) {
		for len(others) > 0 && others[0].was >= 0 && next.was >= 0 && others[0].was < next.was {
			arranged = append(arranged, others[0].item)
			others = others[1:]
		}
		arranged = append(arranged, next.item)
	}
	for _, other := range others {
		arranged = append(arranged, other.item)
	}
	return arranged
}

// mergeList merges each item of the patch into the item of the base with the same key.
func (m merger) mergeList(base, patch []any, rule rule, wanted any, isOrdered bool, path kaos.Path) ([]any, mistake) {
	var content []any
	var at []int
	deleted := map[string]bool{}
	replaces := false
	for i, item := range patch {
		members, ok := item.(kaos.Map)
		if !ok {
			return nil, mistake{"must be an object", path.Index(i)}
		}
		word, has := members[directive]
		switch {
		case !has:
			content, at = append(content, item), append(at, i)
		case word == "delete":
			id, wrong := single(item, rule.key, path.Index(i))
			if wrong != fine {
				return nil, wrong
			}
			deleted[id] = true
		case word == "replace":
			replaces = true
		default:
			message := "$patch: merge is not possible in a list; name the item by its " + rule.key + " instead"
			return nil, mistake{message, path.Index(i)}
		}
	}
	if replaces {
		kept, _ := fresh(content).([]any)
		return kept, fine
	}
	below, wrong := ids(base, rule.key, path, baseWithoutKey)
	if wrong != fine {
		return nil, wrong
	}
	length := len(below)
	var kept []any
	var left []string
	for i, id := range below {
		if !deleted[id] {
			kept, left = append(kept, base[i]), append(left, id)
		}
	}
	named := make([]string, len(content))
	for i, item := range content {
		if named[i], wrong = single(item, rule.key, path.Index(at[i])); wrong != fine {
			return nil, wrong
		}
	}
	own, known := slices.Clone(left), positions(left)
	for i, item := range content {
		to, has := known[named[i]]
		if !has {
			if item := fresh(item); item != nil {
				known[named[i]] = len(kept)
				own, kept = append(own, named[i]), append(kept, item)
			}
			continue
		}
		slot, isMap := kept[to].(kaos.Map)
		overlay, bothMaps := item.(kaos.Map)
		if isMap && bothMaps {
			if kept[to], wrong = m.mergeMap(slot, overlay, rule.of, path.Index(at[i])); wrong != fine {
				return nil, wrong
			}
		}
	}
	if !isOrdered {
		return arrange(kept, own, named, left), fine
	}
	order, wrong := ordered(wanted, rule.key, named, path)
	if wrong != fine {
		return nil, wrong
	}
	// Go's strategicpatch reuses the slots of deleted items for new items, and treats the new items as items of the base.
	return arrange(kept, own, order, own[:min(length, len(own))]), fine
}

// mergeSet merges two lists of plain values into one list without duplicates.
func mergeSet(base, patch []any, wanted any, isOrdered bool, path kaos.Path) ([]any, mistake) {
	kind := func(value any) string {
		switch value.(type) {
		case kaos.Map, []any:
			return "composite"
		case string:
			return "text"
		case bool:
			return "boolean"
		case nil:
			return "null"
		}
		return "number"
	}
	both := slices.Concat(base, patch)
	for i, item := range patch {
		if kind(item) == "composite" || kind(item) != kind(both[0]) {
			return nil, mistake{"all items must be of one type", path.Index(i)}
		}
	}
	below, _ := ids(base, "", path, noMergeKey)
	named, _ := ids(patch, "", path, noMergeKey)
	seen := map[string]bool{}
	var all []any
	var own []string
	for i, id := range slices.Concat(below, named) {
		if !seen[id] {
			seen[id] = true
			all, own = append(all, both[i]), append(own, id)
		}
	}
	if !isOrdered {
		return arrange(all, own, named, below), fine
	}
	order, wrong := ordered(wanted, "", named, path)
	if wrong != fine {
		return nil, wrong
	}
	return arrange(all, own, order, below), fine
}

// ordered returns the ids of a $setElementOrder list, which must contain all ids of the patch, in the patch's order.
func ordered(wanted any, key string, named []string, path kaos.Path) ([]string, mistake) {
	list, ok := wanted.([]any)
	if !ok {
		return nil, mistake{orderMismatch, path}
	}
	order, wrong := ids(list, key, path, noMergeKey)
	if wrong != fine {
		return nil, wrong
	}
	rest := order
	for _, id := range named {
		at := slices.Index(rest, id)
		if at < 0 && len(order) > 0 {
			return nil, mistake{orderMismatch, path}
		}
		rest = rest[at+1:]
	}
	return order, fine
}

func single(item any, key string, path kaos.Path) (string, mistake) {
	found, wrong := ids([]any{item}, key, path, noMergeKey)
	if wrong != fine {
		return "", mistake{wrong.message, path}
	}
	return found[0], fine
}
