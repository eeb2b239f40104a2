package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
	"go.yaml.in/yaml/v3"
)

// runtime is an entry of the registry: how to start servers of a runtime.
type runtime struct {
	Image        string    `json:"image"`
	Command      *[]string `json:"command"`
	Args         *[]string `json:"args"`
	ParamsEnvVar string    `json:"paramsEnvVar"`
	RequiredEnv  []string  `json:"requiredEnv"`
	Tools        []string  `json:"tools"`
}

// registry has the entries of the registry by name.
type registry kaos.Map

func registryReference(settings *Settings, subject *kaos.Subject) kaos.Reference {
	namespace := subject.Cluster.OperatorNamespace
	return kaos.Reference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: settings.Registry.ConfigMap}
}

// registryOf reads the registry from the ConfigMap that the host found. Without the ConfigMap, the runtimes of the
// settings apply.
func registryOf(settings *Settings, subject *kaos.Subject) (registry, error) {
	found, err := subject.One(registryID)
	var forbidden kaos.ForbiddenError
	switch {
	case errors.As(err, &forbidden):
		return nil, fmt.Errorf("failed to get runtime registry: %s", forbidden)
	case err != nil:
		return registry(settings.Runtimes), nil
	}
	source := settings.Registry
	text, ok := found.At("data", source.Key).(string)
	if !ok {
		return nil, fmt.Errorf("failed to get runtime registry: ConfigMap %s has no key %s", source.ConfigMap, source.Key)
	}
	parsed, err := parseRegistry(text)
	if err != nil {
		return nil, malformed(settings, err)
	}
	return parsed, nil
}

func malformed(settings *Settings, err error) error {
	source := settings.Registry
	return fmt.Errorf("failed to get runtime registry: %s in ConfigMap %s is not usable: %w", source.Key, source.ConfigMap, err)
}

func parseRegistry(text string) (registry, error) {
	const most, runtimes = 150_000, "runtimes"
	if len(text) > most {
		return nil, fmt.Errorf("it has %d bytes, but the limit is %d: remove unused entries", len(text), most)
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, err
	}
	value, err := texts{}.of(&document)
	if err != nil {
		return nil, err
	}
	fields, ok := value.(kaos.Map)
	if !ok && value != nil {
		return nil, errors.New("it must be a mapping with the key runtimes")
	}
	switch entries := fields[runtimes].(type) {
	case kaos.Map:
		return registry(entries), nil
	case nil:
		if _, has := fields[runtimes]; has {
			return registry{}, nil
		}
		// If the key `runtimes` is missing, the entries are at the top level.
		return registry(fields), nil
	}
	return nil, errors.New("runtimes must be a mapping from names to entries")
}

// texts reads YAML. Every scalar becomes a text, even 8000. The map has the value of each node that texts has read.
// Several aliases can refer to one node, and texts reads it only once.
type texts map[*yaml.Node]any

// incomplete stands for the value of a node while the method `of` still reads this node.
type incomplete struct{}

func (t texts) of(node *yaml.Node) (value any, err error) {
	if known, has := t[node]; has {
		if known == (any)(incomplete{}) {
			return nil, wrong(node, "this alias has no anchor before it")
		}
		return known, nil
	}
	t[node] = incomplete{}
	switch node.Kind {
	case yaml.DocumentNode:
		value, err = t.of(node.Content[0])
	case yaml.AliasNode:
		value, err = t.of(node.Alias)
	case yaml.MappingNode:
		value, err = t.members(node)
	case yaml.SequenceNode:
		value, err = t.items(node)
	case yaml.ScalarNode:
		if node.Tag != "!!null" {
			value = node.Value
		}
	}
	t[node] = value
	return value, err
}

func (t texts) items(node *yaml.Node) (any, error) {
	items := []any{}
	for _, content := range node.Content {
		item, err := t.of(content)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// members returns the members of a mapping. It adds the members of the merge key `<<` first, so that the mapping's own
// members replace them.
func (t texts) members(node *yaml.Node) (any, error) {
	own, merged := kaos.Map{}, kaos.Map{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, wrong(key, "a key must be plain text")
		}
		value, err := t.of(node.Content[i+1])
		if err != nil {
			return nil, err
		}
		if key.Tag == "!!merge" {
			if err := merge(merged, value); err != nil {
				return nil, wrong(node.Content[i+1], err.Error())
			}
			continue
		}
		if _, has := own[key.Value]; has {
			return nil, wrong(key, fmt.Sprintf("the key \"%s\" occurs twice; remove one", kaos.Shown(key.Value, 100)))
		}
		own[key.Value] = value
	}
	maps.Copy(merged, own)
	return merged, nil
}

// merge adds the members of the bases to an object. A member of an earlier base wins.
func merge(into kaos.Map, value any) error {
	bases, isList := value.([]any)
	if !isList {
		bases = []any{value}
	}
	for _, base := range bases {
		members, ok := base.(kaos.Map)
		if !ok {
			return errors.New("<< takes an object, or a list of objects")
		}
		for name, member := range members {
			if _, has := into[name]; !has {
				into[name] = member
			}
		}
	}
	return nil
}

func wrong(node *yaml.Node, problem string) error {
	return fmt.Errorf("line %d, column %d: %s", node.Line, node.Column, problem)
}

func (r registry) names() []string { return slices.Sorted(maps.Keys(r)) }

// entry returns the entry of a runtime, or nil if there is none.
func (r registry) entry(name string) (*runtime, error) {
	value, has := r[name]
	if !has {
		return nil, nil
	}
	// Read the entry as a member of `runtimes`, so that the message about a mistake has the whole path.
	const runtimes = "runtimes"
	var read map[string]runtime
	if err := kaos.ParseObject(kaos.Text(kaos.Map{runtimes: kaos.Map{name: value}})).Read(runtimes, &read); err != nil {
		return nil, err
	}
	entry := read[name]
	if strings.ContainsAny(entry.ParamsEnvVar, "=\x00") {
		path := kaos.Path(runtimes).Key(name).Key("paramsEnvVar")
		return nil, fmt.Errorf("%s: a variable's name must not contain '='", path)
	}
	return &entry, nil
}
