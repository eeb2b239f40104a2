// Package kaostest helps to write short tests of policies. The tests run natively, with `go test`.
package kaostest

import (
	"testing"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// SubjectBuilder builds a subject.
type SubjectBuilder struct{ subject kaos.Subject }

// Subject returns a builder of a subject for this object, without settings and found objects.
func Subject(object any) SubjectBuilder {
	return SubjectBuilder{kaos.Subject{
		Object:   kaos.Text(object),
		Settings: "{}",
		Cluster:  kaos.Cluster{Domain: "cluster.local", OperatorNamespace: "kaos-system"},
		Extra:    "{}",
	}}
}

// Settings sets the effective settings.
func (b SubjectBuilder) Settings(settings any) SubjectBuilder {
	b.subject.Settings = kaos.Text(settings)
	return b
}

// Defaults fills in the defaults of a settings schema, as the host does. Settings that the test set keep their values.
func (b SubjectBuilder) Defaults(schema string) SubjectBuilder {
	root, _ := kaos.Parse(kaos.JSON(schema)).(kaos.Map)
	settings, _ := kaos.Parse(b.subject.Settings).(kaos.Map)
	if defaults, ok := defaultOf(root, root).(kaos.Map); ok {
		fill(settings, defaults)
	}
	return b.Settings(settings)
}

// Found answers a need with these objects. Without objects, the answer is an empty list.
func (b SubjectBuilder) Found(id string, objects ...any) SubjectBuilder {
	answer := kaos.Objects{}
	for _, object := range objects {
		answer = append(answer, kaos.Text(object))
	}
	return b.Answer(id, answer)
}

// Answer answers a need.
func (b SubjectBuilder) Answer(id string, answer kaos.Answer) SubjectBuilder {
	b.subject.Found = append([]kaos.Found{}, b.subject.Found...)
	b.subject.Add([]kaos.Found{{ID: id, Answer: answer}})
	return b
}

// Serves adds a type to the types that the cluster serves. The claim must list the type among its wishes.
func (b SubjectBuilder) Serves(apiVersion, kind string) SubjectBuilder {
	served := append([]kaos.ResourceType{}, b.subject.Cluster.Served...)
	b.subject.Cluster.Served = append(served, kaos.ResourceType{APIVersion: apiVersion, Kind: kind})
	return b
}

// Applied makes a subject for whose object the host has already applied all children of a plan.
func (b SubjectBuilder) Applied() SubjectBuilder {
	b.subject.Applied = true
	return b
}

// Build returns the subject.
func (b SubjectBuilder) Build() *kaos.Subject { return &b.subject }

// Plan asks a policy for the mapping and then for the plan, as the host does.
func Plan(policy kaos.Policy, subject *kaos.Subject) (*kaos.Plan, error) {
	var env []kaos.EnvVar
	if mapper, ok := policy.(kaos.EnvMapper); ok {
		var err error
		if env, err = mapper.MapEnv(subject, nil); err != nil {
			return nil, err
		}
	}
	return policy.Translate(subject, env)
}

// Manifest returns the only manifest of a kind. The test fails if there is none, or more than one.
func Manifest(t *testing.T, plan *kaos.Plan, kind string) kaos.Object {
	t.Helper()
	var found []kaos.Object
	for _, text := range plan.Manifests {
		if object := kaos.ParseObject(text); object.Kind() == kind {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the plan has %d manifests of the kind %s", len(found), kind)
	}
	return found[0]
}

// Seen returns an observation with this outcome and these live children.
func Seen(outcome kaos.Outcome, live ...any) *kaos.Observation {
	seen := &kaos.Observation{Outcome: outcome}
	for _, child := range live {
		text := kaos.Text(child)
		object := kaos.ParseObject(text)
		identity := kaos.Reference{
			APIVersion: object.APIVersion(), Kind: object.Kind(), Namespace: object.Namespace(), Name: object.Name(),
		}
		seen.Children = append(seen.Children, kaos.Child{Identity: identity, Live: text})
	}
	return seen
}
