// Prints strategic-merge-patch vectors: what Go's strategicpatch makes of a base and a patch.
package main

import (
	"encoding/json"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type vector struct {
	Name   string          `json:"name"`
	Schema string          `json:"schema"`
	Base   json.RawMessage `json:"base"`
	Patch  json.RawMessage `json:"patch"`
	Merged json.RawMessage `json:"merged,omitempty"`
	Fails  bool            `json:"fails,omitempty"`
}

var types = map[string]any{
	"PodSpec":    corev1.PodSpec{},
	"Container":  corev1.Container{},
	"Deployment": appsv1.Deployment{},
	"Service":    corev1.Service{},
}

func main() {
	var vectors []vector
	if err := json.NewDecoder(os.Stdin).Decode(&vectors); err != nil {
		panic(err)
	}
	for i := range vectors {
		v := &vectors[i]
		merged, err := strategicpatch.StrategicMergePatch(v.Base, v.Patch, types[v.Schema])
		v.Merged, v.Fails = merged, err != nil
		if err != nil {
			os.Stderr.WriteString(v.Name + ": " + err.Error() + "\n")
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	if err := out.Encode(vectors); err != nil {
		panic(err)
	}
}
