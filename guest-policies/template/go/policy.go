// A policy that creates a Deployment and a Service for each `Website`.
//
// A policy consists of pure functions: they get everything as arguments, and use no clock, network or randomness. This
// policy is short enough to read in a minute. Use it as the start for your own policy.
package main

import (
	_ "embed"
	"fmt"
	"strings"

	"website-policy/kaos"
	"website-policy/kaos/policy"
)

const (
	apiVersion = "example.com/v1"
	container  = "web"
)

//go:embed settings.schema.json
var schema string

func init() { policy.Export(Website{}) }

func main() {}

// Spec is the `spec` of a Website.
type Spec struct {
	Title    string  `json:"title"`
	Replicas *uint32 `json:"replicas"`
	Env      []any   `json:"env"`
}

// Settings are the settings that settings.schema.json declares. The host fills in the defaults and checks the values.
type Settings struct {
	Image string `json:"image"`
	Port  uint16 `json:"port"`
}

// Website is the policy.
type Website struct{}

// Describe returns the name and the claims of the policy.
func (Website) Describe() kaos.Descriptor {
	return kaos.Descriptor{
		Name:    "website",
		Version: "0.1.0",
		Claims: []kaos.Claim{{
			Primary: kaos.ResourceType{APIVersion: apiVersion, Kind: "Website"},
			Emits:   []kaos.ResourceType{{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "v1", Kind: "Service"}},
			Samples: []kaos.Sample{{Name: "minimal", Object: kaos.Text(website(kaos.Map{"title": "Hello"}))}},
		}},
		SettingsSchema: kaos.JSON(schema),
	}
}

func spec(subject *kaos.Subject) (Spec, error) {
	spec := Spec{Title: "Welcome"}
	return spec, subject.Read("spec", &spec)
}

// MapEnv returns the environment variables, each with the origin of its value.
func (Website) MapEnv(subject *kaos.Subject, base []kaos.EnvVar) ([]kaos.EnvVar, error) {
	spec, err := spec(subject)
	if err != nil {
		return nil, err
	}
	env := kaos.EnvOver(base)
	err = env.Container(container).Set("SITE_TITLE", spec.Title, "spec.title").User(spec.Env, "spec.env")
	return env.Vars(), err
}

// Translate returns the plan: the children that the cluster should have for the object.
func (Website) Translate(subject *kaos.Subject, env []kaos.EnvVar) (*kaos.Plan, error) {
	spec, err := spec(subject)
	if err != nil {
		return nil, err
	}
	var settings Settings
	if err := subject.ReadSettings(&settings); err != nil {
		return nil, err
	}
	object := subject.Get()
	name := object.Name()
	var wrong kaos.Violations
	wrong.Require(strings.TrimSpace(spec.Title) != "", "spec.title", "must not be blank: give the site a title")
	if why := kaos.DNS1035Label(name); why != "" {
		wrong.Add("metadata.name", why+", since the Service has the same name")
	}
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}

	labels := kaos.Map{"app": "website", "website": name}
	metadata := kaos.Map{"name": name, "namespace": object.Namespace(), "labels": labels}
	deployment := kaos.Map{
		"selector": kaos.Map{"matchLabels": labels},
		"template": kaos.Map{
			"metadata": kaos.Map{"labels": labels},
			"spec": kaos.Map{"containers": []kaos.Map{{
				"name":  container,
				"image": settings.Image,
				"env":   kaos.ContainerEnv(env, container),
				"ports": []kaos.Map{{"name": "http", "containerPort": settings.Port, "protocol": "TCP"}},
			}}},
		},
	}
	if spec.Replicas != nil {
		deployment["replicas"] = *spec.Replicas
	}
	service := kaos.Map{
		"selector": labels,
		"ports":    []kaos.Map{{"name": "http", "port": settings.Port, "targetPort": settings.Port, "protocol": "TCP"}},
	}
	return kaos.NewPlan(env,
		kaos.NewManifest(kaos.Map{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment}).
			Origin(fmt.Sprintf("spec.template.spec.containers[name=%q].image", container), "settings.image").
			Origin("spec.replicas", "spec.replicas"),
		kaos.NewManifest(kaos.Map{"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service}).
			Origin("spec.ports[0].port", "settings.port"),
	), nil
}

// Assess returns the status. While new pods start, old pods can still serve. The status does not count the old pods.
func (Website) Assess(_ *kaos.Subject, seen *kaos.Observation) kaos.Report {
	rollout := seen.Rollout("Deployment")
	report := kaos.Report{Phase: "Pending", Message: fmt.Sprintf("%d replicas available", rollout.Available)}
	switch seen.Outcome.(type) {
	// If a plan sets GatesHold, its gates can hold back a change while the pods of an earlier plan still serve.
	case kaos.Applied, kaos.Gated:
		if rollout.Serves() {
			report.Ready, report.Phase = true, "Ready"
		}
	case kaos.Refused, kaos.Failed:
		report.Phase = "Failed"
	}
	return report
}

func website(spec kaos.Map) kaos.Map {
	metadata := kaos.Map{"name": "blog", "namespace": "default"}
	return kaos.Map{"apiVersion": apiVersion, "kind": "Website", "metadata": metadata, "spec": spec}
}
