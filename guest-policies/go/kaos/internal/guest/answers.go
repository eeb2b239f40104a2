// Package guest has the code that is the same in the exported functions of policies and of overlays.
package guest

import (
	"errors"
	"fmt"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// NoSettings is the schema of a policy without settings.
const NoSettings = `{"additionalProperties":false,"type":"object"}`

// Describe returns the descriptor of a policy or an overlay, with the settings schema as canonical JSON.
func Describe(of interface{ Describe() kaos.Descriptor }) kaos.Descriptor {
	descriptor := of.Describe()
	if descriptor.SettingsSchema == "" {
		descriptor.SettingsSchema = NoSettings
	} else if schema := kaos.Parse(descriptor.SettingsSchema); schema != nil {
		descriptor.SettingsSchema = kaos.Text(schema)
	}
	return descriptor
}

// Needs adds the answers of the host to the subject, and returns the needs.
func Needs(of any, subject *kaos.Subject, found []kaos.Found) []kaos.Need {
	subject.Add(found)
	if needer, ok := of.(kaos.Needer); ok {
		return needer.Needs(subject)
	}
	return nil
}

// MapEnv returns the mapping, or a refusal.
func MapEnv(of any, subject *kaos.Subject, base []kaos.EnvVar) ([]kaos.EnvVar, kaos.Refusal) {
	mapper, ok := of.(kaos.EnvMapper)
	if !ok {
		return base, nil
	}
	env, err := mapper.MapEnv(subject, base)
	return env, Refusal("MapEnv", err)
}

// Plan returns the plan, or a refusal. `method` is the policy's method that returned it, for the text of a panic.
func Plan(method string, plan *kaos.Plan, err error) (kaos.Plan, kaos.Refusal) {
	if refused := Refusal(method, err); refused != nil {
		return kaos.Plan{}, refused
	}
	if plan == nil {
		panic(method + " returned neither a plan nor a refusal")
	}
	return *plan, nil
}

// Refusal returns `err` as a refusal. If `err` is another error, the policy has a bug, so Refusal panics.
func Refusal(method string, err error) kaos.Refusal {
	if err == nil {
		return nil
	}
	var refused kaos.Refusal
	if errors.As(err, &refused) {
		return refused
	}
	panic(fmt.Sprintf("%s returned an error that is no refusal: %v", method, err))
}
