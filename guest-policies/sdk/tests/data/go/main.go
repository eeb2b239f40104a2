// Writes the result of Go's package strategicpatch into each test vector of a file:
//
//	cd guest-policies/sdk/tests/data/go && go run . ../strategic-merge.json
//
// To add a vector, write its name, schema, base and patch by hand. If the SDK deviates on purpose, also write
// "deviation" (the reason) and "ours" (the SDK's result). Leave out "ours" if the SDK refuses the patch. This program
// writes the other members.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type vector struct {
	Name      string          `json:"name"`
	Schema    string          `json:"schema"`
	Base      json.RawMessage `json:"base"`
	Patch     json.RawMessage `json:"patch"`
	Merged    json.RawMessage `json:"merged"`
	Fails     string          `json:"fails"`
	Deviation string          `json:"deviation"`
	Ours      json.RawMessage `json:"ours"`
}

var types = map[string]any{
	"PodSpec":    corev1.PodSpec{},
	"Container":  corev1.Container{},
	"Deployment": appsv1.Deployment{},
	"Service":    corev1.Service{},
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run . <file of vectors>")
	}
	if err := rewrite(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func rewrite(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		return err
	}
	var out bytes.Buffer
	separator := "[\n"
	for _, v := range vectors {
		out.WriteString(separator)
		separator = ",\n"
		if err := v.write(&out); err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
	}
	out.WriteString("\n]\n")
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// Writes one member on each line, so that a base, its patch and the result are below each other.
func (v vector) write(out *bytes.Buffer) error {
	schema, known := types[v.Schema]
	if !known {
		return fmt.Errorf("unknown schema %q", v.Schema)
	}
	out.WriteString("{\n")
	members := []struct {
		name  string
		value any
	}{{"name", v.Name}, {"schema", v.Schema}, {"base", v.Base}, {"patch", v.Patch}}
	merged, err := strategicpatch.StrategicMergePatch(v.Base, v.Patch, schema)
	last := struct {
		name  string
		value any
	}{"merged", json.RawMessage(merged)}
	if err != nil {
		last.name, last.value = "fails", err.Error()
	}
	members = append(members, last)
	if v.Deviation != "" {
		last.name, last.value = "deviation", v.Deviation
		members = append(members, last)
	}
	if v.Ours != nil {
		last.name, last.value = "ours", v.Ours
		members = append(members, last)
	}
	for at, member := range members {
		value, err := json.Marshal(member.value)
		if err != nil {
			return err
		}
		comma := ","
		if at == len(members)-1 {
			comma = ""
		}
		fmt.Fprintf(out, " %q: %s%s\n", member.name, value, comma)
	}
	out.WriteString("}")
	return nil
}
