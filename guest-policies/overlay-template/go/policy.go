// An overlay that changes the registry of every image.
//
// An overlay changes the answer of the policy below it: its variables (MapEnv), its plan (Amend), or both. These
// functions are pure: they get everything as arguments, and use no clock, network or randomness. Use this overlay as
// the start for your own overlay.
package main

import (
	_ "embed"

	"mirror-overlay/kaos"
	"mirror-overlay/kaos/amend"
	"mirror-overlay/kaos/overlay"
)

// kinds are the kinds whose plans the overlay changes.
var kinds = []kaos.ResourceType{
	{APIVersion: "kaos.tools/v1alpha1", Kind: "Agent"},
	{APIVersion: "kaos.tools/v1alpha1", Kind: "MCPServer"},
	{APIVersion: "kaos.tools/v1alpha1", Kind: "MemoryStore"},
	{APIVersion: "kaos.tools/v1alpha1", Kind: "ModelAPI"},
}

//go:embed settings.schema.json
var schema string

func init() { overlay.Export(Mirror{}) }

func main() {}

// Settings are the settings that settings.schema.json declares. The host fills in the defaults and checks the values.
type Settings struct {
	Registry string `json:"registry"`
}

// Mirror is the overlay.
type Mirror struct{}

// Describe returns the name and the claims of the overlay.
func (Mirror) Describe() kaos.Descriptor {
	descriptor := kaos.Descriptor{Name: "mirror", Version: "0.1.0", SettingsSchema: kaos.JSON(schema)}
	for _, kind := range kinds {
		descriptor.Claims = append(descriptor.Claims, kaos.Claim{
			Primary: kind,
			// The types of the children that the overlay changes or adds.
			Emits: []kaos.ResourceType{{APIVersion: "apps/v1", Kind: "Deployment"}},
			// The gate asks the overlay to amend a small Deployment for this object.
			Samples: []kaos.Sample{{Name: "any", Object: kaos.Text(object(kind))}},
		})
	}
	return descriptor
}

// Amend returns the plan of the policy below, with other images.
func (Mirror) Amend(subject *kaos.Subject, below *kaos.Plan) (*kaos.Plan, error) {
	var settings Settings
	if err := subject.ReadSettings(&settings); err != nil {
		return nil, err
	}
	for template := range amend.PodTemplates(below) {
		for _, container := range amend.Containers(template) {
			if image, ok := container["image"].(string); ok {
				container["image"] = amend.OnRegistry(image, settings.Registry)
			}
		}
	}
	return below, nil
}

func object(of kaos.ResourceType) kaos.Map {
	metadata := kaos.Map{"name": "any", "namespace": "default"}
	return kaos.Map{"apiVersion": of.APIVersion, "kind": of.Kind, "metadata": metadata, "spec": kaos.Map{}}
}
