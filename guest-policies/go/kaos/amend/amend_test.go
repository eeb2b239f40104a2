package amend

import (
	"testing"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

func deployment() kaos.Map {
	template, _ := kaos.Parse(`{"metadata":{"labels":{"app":"a"}},
		"spec":{"containers":[{"name":"c"}],"initContainers":[{"name":"i"}]}}`).(kaos.Map)
	return kaos.Map{"kind": "Deployment", "metadata": kaos.Map{"name": "a"}, "spec": kaos.Map{"template": template}}
}

func TestAnImageGetsAnotherRegistryAndKeepsItsName(t *testing.T) {
	for _, c := range [][3]string{
		{"nginx", "m.example", "m.example/library/nginx"},
		{"nginx:1.29", "m.example", "m.example/library/nginx:1.29"},
		{"docker.io/nginx", "m.example", "m.example/library/nginx"},
		{"axsauze/agent:v1", "m.example", "m.example/axsauze/agent:v1"},
		{"ghcr.io/org/app@sha256:ab", "m.example", "m.example/org/app@sha256:ab"},
		{"localhost/app", "m.example", "m.example/app"},
		{"registry:5000/app:1", "m.example", "m.example/app:1"},
		{"m.example/org/app:1", "m.example", "m.example/org/app:1"},
		{"m.example/app", "m.example/hub/", "m.example/hub/app"},
		{"nginx", "", "nginx"},
	} {
		if got := OnRegistry(c[0], c[1]); got != c[2] {
			t.Errorf("%s: got %s, want %s", c[0], got, c[2])
		}
	}
}

func TestOnlyChangedManifestsAreWrittenAgain(t *testing.T) {
	plan := kaos.NewPlan(nil, kaos.NewManifest(deployment()), kaos.NewManifest(kaos.Map{"kind": "Service"}))
	plan.Manifests[1] = "{ }"
	for template := range PodTemplates(plan) {
		for _, container := range Containers(template) {
			container["image"] = "x:1"
		}
		AddLabels(template, map[string]string{"team": "a", "app": "other"})
		Push(template, "tolerations", kaos.Map{"key": "gpu"})
		Push(template, "containers", kaos.Map{"name": "proxy"})
	}
	want := kaos.JSON(`{"kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"metadata":` +
		`{"labels":{"app":"a","team":"a"}},"spec":{"containers":[{"image":"x:1","name":"c"},{"name":"proxy"}],` +
		`"initContainers":[{"image":"x:1","name":"i"}],"tolerations":[{"key":"gpu"}]}}}}`)
	if plan.Manifests[0] != want || plan.Manifests[1] != "{ }" {
		t.Errorf("got %s", plan.Manifests)
	}
}

func TestALoopThatEndsEarlyKeepsItsChange(t *testing.T) {
	plan := kaos.NewPlan(nil, kaos.NewManifest(deployment()), kaos.NewManifest(deployment()))
	below := plan.Manifests[1]
	for template := range PodTemplates(plan) {
		AddLabels(template, map[string]string{"team": "a"})
		break
	}
	if plan.Manifests[0] == below || plan.Manifests[1] != below {
		t.Errorf("got %s", plan.Manifests)
	}
}

func TestAChangedAndAnAddedChildHaveOriginsAtTheirPositions(t *testing.T) {
	below := kaos.NewManifest(deployment()).Origin("spec.replicas", "spec.replicas")
	plan := kaos.NewPlan(nil, kaos.NewManifest(kaos.Map{"kind": "Service"}), below)
	for child := range Children(plan) {
		if template := PodTemplate(child.Manifest); template != nil {
			Push(template, "tolerations", kaos.Map{"key": "gpu"})
			child.Declare("spec.template.spec.tolerations", "settings.tolerations")
			Add(plan, kaos.NewManifest(kaos.Map{"kind": "ConfigMap"}).Origin("data", "settings.data"))
		}
	}
	want := []kaos.Origin{
		{Manifest: 1, Path: "spec.replicas", From: "spec.replicas"},
		{Manifest: 1, Path: "spec.template.spec.tolerations", From: "settings.tolerations"},
		{Manifest: 2, Path: "data", From: "settings.data"},
	}
	for i, origin := range want {
		if len(plan.Origins) != len(want) || plan.Origins[i] != origin {
			t.Fatalf("got %+v", plan.Origins)
		}
	}
	if len(plan.Manifests) != 3 || plan.Manifests[2] != `{"kind":"ConfigMap"}` {
		t.Errorf("got %s", plan.Manifests)
	}
}

func TestPodTemplatesAreFoundInAllWorkloads(t *testing.T) {
	for text, found := range map[kaos.JSON]bool{
		`{"kind":"Pod","spec":{"containers":[]}}`:                                                    true,
		`{"kind":"Deployment","spec":{"template":{"spec":{"containers":[]}}}}`:                       true,
		`{"kind":"CronJob","spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[]}}}}}}`: true,
		`{"kind":"Service","spec":{}}`:                                                               false,
		`{"kind":"Odd","spec":[]}`:                                                                   false,
	} {
		manifest, _ := kaos.Parse(text).(kaos.Map)
		if got := PodTemplate(manifest) != nil; got != found {
			t.Errorf("%s: got %v", text, got)
		}
	}
}
