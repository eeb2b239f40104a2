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

// runtime says how to start servers of a runtime.
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
	fields, ok := texts(&document).(kaos.Map)
	if !ok && texts(&document) != nil {
		return nil, errors.New("it must be a mapping with the key runtimes")
	}
	switch entries := fields[runtimes].(type) {
	case kaos.Map:
		return registry(entries), nil
	case nil:
		if _, has := fields[runtimes]; has {
			return registry{}, nil
		}
		// Without the key `runtimes`, the entries are at the top level.
		return registry(fields), nil
	}
	return nil, errors.New("runtimes must be a mapping from names to entries")
}

// texts returns a YAML value in which every scalar is a text, even 8000.
func texts(node *yaml.Node) any {
	switch node.Kind {
	case yaml.DocumentNode:
		return texts(node.Content[0])
	case yaml.AliasNode:
		return texts(node.Alias)
	case yaml.MappingNode:
		members := kaos.Map{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			members[node.Content[i].Value] = texts(node.Content[i+1])
		}
		return members
	case yaml.SequenceNode:
		items := []any{}
		for _, item := range node.Content {
			items = append(items, texts(item))
		}
		return items
	case yaml.ScalarNode:
		if node.Tag != "!!null" {
			return node.Value
		}
	}
	return nil
}

func (r registry) names() []string { return slices.Sorted(maps.Keys(r)) }

// entry returns the entry of a runtime, or nil if there is none.
func (r registry) entry(name string) (*runtime, error) {
	value, has := r[name]
	if !has {
		return nil, nil
	}
	entry := &runtime{}
	if err := kaos.ParseObject(kaos.Text(kaos.Map{name: value})).Read(name, entry); err != nil {
		return nil, fmt.Errorf("runtimes.%w", err)
	}
	if strings.ContainsAny(entry.ParamsEnvVar, "=\x00") {
		return nil, fmt.Errorf("runtimes.%s.paramsEnvVar: a variable's name must not contain '='", name)
	}
	return entry, nil
}
