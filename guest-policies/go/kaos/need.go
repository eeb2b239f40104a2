package kaos

// NeedOf returns a need for one object in the namespace of the pass's object. The policy chooses the id.
func NeedOf(id, apiVersion, kind, name string) Need {
	return Need{ID: id, Target: Named{APIVersion: apiVersion, Kind: kind, Name: name}}
}

// NeedAll returns a need for all objects of a type that have all of these labels, in the namespace of the pass's
// object.
func NeedAll(id, apiVersion, kind string, labels map[string]string) Need {
	selector := Labelled{Of: ResourceType{APIVersion: apiVersion, Kind: kind}}
	for _, key := range sortedNames(labels) {
		selector.Labels = append(selector.Labels, [2]string{key, labels[key]})
	}
	return Need{ID: id, Target: selector}
}

// Reading limits the need to these fields of each object. A change of any other field begins no pass. [Need] explains
// the grammar of a path.
func (n Need) Reading(paths ...string) Need {
	n.Fields = append(n.Fields, paths...)
	return n
}

// IfPresent makes the need optional: the policy can make its plan without the object.
func (n Need) IfPresent() Need {
	n.Optional = true
	return n
}

// Key returns the path of a member, for a name with other characters than letters, digits, "_" and "-".
func Key(of, name string) string { return of + "[" + string(Text(name)) + "]" }

// Equal returns a path that selects a string if it equals the text, or those items of a list that equal the text.
func Equal(path, text string) string { return path + "[=" + string(Text(text)) + "]" }

// Items returns the path that selects the maps of a list by a member: Items("status.conditions", "type", "Ready").
func Items(list, member, text string) string {
	return list + "[" + member + "=" + string(Text(text)) + "]"
}
