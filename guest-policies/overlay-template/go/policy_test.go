package main

import (
	"reflect"
	"testing"

	"mirror-overlay/kaos"
	"mirror-overlay/kaos/kaostest"
)

// below returns an example of a plan from the policy below the overlay.
func below() *kaos.Plan {
	spec := kaos.Map{
		"containers":     []kaos.Map{{"name": "main", "image": "ghcr.io/org/app:1"}},
		"initContainers": []kaos.Map{{"name": "first", "image": "busybox"}},
	}
	template := kaos.Map{"metadata": kaos.Map{"labels": kaos.Map{"app": "any"}}, "spec": spec}
	return kaos.NewPlan(nil,
		kaos.NewManifest(kaos.Map{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": kaos.Map{"name": "any"},
			"spec": kaos.Map{"template": template},
		}),
		kaos.NewManifest(kaos.Map{"apiVersion": "v1", "kind": "Service", "metadata": kaos.Map{"name": "any"}}),
	)
}

func amended(t *testing.T, registry string) *kaos.Plan {
	t.Helper()
	subject := kaostest.Subject(object(kinds[0])).Settings(kaos.Map{"registry": registry}).Build()
	plan, err := Mirror{}.Amend(subject, below())
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestEveryImageComesFromTheRegistry(t *testing.T) {
	plan := amended(t, "registry.example.com:5000")
	pod := kaostest.Manifest(t, plan, "Deployment").Object("spec", "template", "spec")
	for list, want := range map[string]string{
		"containers":     "registry.example.com:5000/org/app:1",
		"initContainers": "registry.example.com:5000/library/busybox",
	} {
		container, _ := pod.List(list)[0].(kaos.Map)
		if container["image"] != want {
			t.Errorf("%s: got %v", list, container)
		}
	}
	if plan.Manifests[1] != below().Manifests[1] {
		t.Errorf("the Service changed: %s", plan.Manifests[1])
	}
}

func TestWithoutARegistryThePlanStaysAsItIs(t *testing.T) {
	if plan := amended(t, ""); !reflect.DeepEqual(plan, below()) {
		t.Errorf("got %+v", plan)
	}
}
