package main

import (
	"errors"
	"reflect"
	"testing"

	"website-policy/kaos"
	"website-policy/kaos/kaostest"
)

func plan(t *testing.T, spec kaos.Map) (*kaos.Plan, error) {
	t.Helper()
	return kaostest.Plan(Website{}, kaostest.Subject(website(spec)).Defaults(schema).Build())
}

func TestTheTitleReachesTheContainerAndSaysWhereItCameFrom(t *testing.T) {
	plan, err := plan(t, kaos.Map{"title": "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	want := kaos.EnvVar{Container: "web", Name: "SITE_TITLE", Source: kaos.Literal("Hello"), Origin: "spec.title"}
	if len(plan.Env) != 1 || plan.Env[0] != want {
		t.Errorf("got %+v", plan.Env)
	}
}

func TestAUsersVariableWins(t *testing.T) {
	env := []kaos.Map{{"name": "SITE_TITLE", "value": "Mine"}}
	plan, err := plan(t, kaos.Map{"title": "Hello", "env": env})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Env) != 1 || plan.Env[0].Source != kaos.Literal("Mine") {
		t.Errorf("got %+v", plan.Env)
	}
}

func TestABlankTitleIsRefusedWithItsPath(t *testing.T) {
	_, err := plan(t, kaos.Map{"title": " "})
	var invalid kaos.Invalid
	if !errors.As(err, &invalid) || invalid[0].Path != "spec.title" {
		t.Errorf("got %v", err)
	}
}

func TestTheServiceSelectsThePods(t *testing.T) {
	plan, err := plan(t, kaos.Map{"title": "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	pods, service := kaostest.Manifest(t, plan, "Deployment"), kaostest.Manifest(t, plan, "Service")
	labels := pods.At("spec", "template", "metadata", "labels")
	if selector := service.At("spec", "selector"); !reflect.DeepEqual(selector, labels) {
		t.Errorf("the Service selects %v, and the pods have %v", selector, labels)
	}
}

func TestOnlyUpToDateReplicasCount(t *testing.T) {
	for name, c := range map[string]struct {
		observed, replicas, updated int
		ready                       bool
	}{
		"new pods serve":              {observed: 2, replicas: 1, updated: 1, ready: true},
		"only old pods serve":         {observed: 2, replicas: 2, updated: 1},
		"the controller did not look": {observed: 1, replicas: 1, updated: 1},
	} {
		live := kaos.Map{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": kaos.Map{"name": "blog", "generation": 2},
			"status": kaos.Map{
				"observedGeneration": c.observed, "replicas": c.replicas, "updatedReplicas": c.updated,
				"availableReplicas": 1,
			},
		}
		subject := kaostest.Subject(website(kaos.Map{})).Build()
		if report := (Website{}).Assess(subject, kaostest.Seen(kaos.Applied{}, live)); report.Ready != c.ready {
			t.Errorf("%s: got %+v", name, report)
		}
	}
}
