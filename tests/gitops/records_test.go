// Package gitops tests how the libraries of other tools judge the status of objects. The libraries are kstatus of kpt,
// the fork of kstatus in Flux and Helm, and the Lua interpreter of Argo CD.
//
// The folder `recorded` contains objects that other test suites of this repository recorded. Each record also has the
// expected verdicts, which the author of the recording test wrote.
package gitops

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const root = "../.."

type record struct {
	Name    string
	Kstatus string                     `json:"kstatus"`
	Argo    string                     `json:"argo"`
	Object  *unstructured.Unstructured `json:"object"`
}

// records returns every recorded object. The file cases.json contains several records with their names. Every other
// file contains one record, which has the name of the file.
func records(t *testing.T) []record {
	t.Helper()
	files, err := filepath.Glob("recorded/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []record
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if name != "cases" {
			all = append(all, parsed(t, name, text))
			continue
		}
		var cases map[string]json.RawMessage
		if err := json.Unmarshal(text, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for name, text := range cases {
			all = append(all, parsed(t, name, text))
		}
	}
	if len(all) < 150 {
		t.Fatalf("only %d records", len(all))
	}
	return all
}

func parsed(t *testing.T, name string, text []byte) record {
	t.Helper()
	one := record{Name: name}
	if err := json.Unmarshal(text, &one); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if one.Object == nil || one.Kstatus == "" || one.Argo == "" {
		t.Fatalf("%s: the record has no object or no verdict", name)
	}
	return one
}

// newStatuses returns, for each kind, the status that an API server gives to a new object. This status consists of
// defaults in the CustomResourceDefinitions: the default of the status, and the defaults of its fields.
func newStatuses(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob(root + "/crds/generated/*.yaml")
	if err != nil || len(files) != 7 {
		t.Fatalf("the definitions are not there: %v %v", files, err)
	}
	statuses := map[string]map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var definition map[string]any
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kind, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
		schema, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "status")
		status, isThere := schema["default"].(map[string]any)
		if !isThere {
			t.Fatalf("%s: a new object has no status", kind)
		}
		for field, inner := range schema["properties"].(map[string]any) {
			if value, isThere := inner.(map[string]any)["default"]; isThere {
				status[field] = value
			}
		}
		statuses[kind] = numbers(t, status)
	}
	return statuses
}

// numbers converts the whole numbers in a status to int64, as in other unstructured objects. The YAML parser returned
// them as float64.
func numbers(t *testing.T, status map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Status", "status": status})
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object.Object["status"].(map[string]any)
}

// states returns copies of a recorded object in further states, for example while it is being deleted. The recorded
// conditions do not influence the verdict that the tools must give in these states.
func states(t *testing.T, recorded record) []record {
	t.Helper()
	edited := recorded.Object.DeepCopy()
	edited.SetGeneration(edited.GetGeneration() + 1)
	going := recorded.Object.DeepCopy()
	if err := unstructured.SetNestedField(going.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp"); err != nil {
		t.Fatal(err)
	}
	all := []record{
		{recorded.Name + ", after an edit", "InProgress", "Progressing", edited},
		{recorded.Name + ", being deleted", "Terminating", "Progressing", going},
	}
	if status, isOurs := newStatuses(t)[recorded.Object.GetKind()]; isOurs {
		made := recorded.Object.DeepCopy()
		made.SetGeneration(1)
		made.Object["status"] = status
		all = append(all, record{recorded.Name + ", before the first pass", "InProgress", "Progressing", made})
	}
	return all
}

func all(t *testing.T) []record {
	t.Helper()
	var objects []record
	for _, recorded := range records(t) {
		objects = append(append(objects, recorded), states(t, recorded)...)
	}
	return objects
}

// condition returns the object's condition of this type if the condition is true, and otherwise nil.
func condition(object *unstructured.Unstructured, of string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if one := one.(map[string]any); one["type"] == of && one["status"] == "True" {
			return one
		}
	}
	return nil
}
