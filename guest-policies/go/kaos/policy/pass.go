// Package policy exports a policy as a component.
package policy

import (
	"errors"
	"fmt"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

var exported kaos.Policy

// Export makes this policy the policy of the component. Call it in main's init, because the host never calls main.
func Export(policy kaos.Policy) { exported = policy }

// noSettings is the schema of a policy without settings.
const noSettings = `{"additionalProperties":false,"type":"object"}`

func describe(policy kaos.Policy) kaos.Descriptor {
	descriptor := policy.Describe()
	if descriptor.SettingsSchema == "" {
		descriptor.SettingsSchema = noSettings
	} else if schema := kaos.Parse(descriptor.SettingsSchema); schema != nil {
		descriptor.SettingsSchema = kaos.Text(schema)
	}
	return descriptor
}

// pass is one pass over one object.
type pass struct {
	policy  kaos.Policy
	subject *kaos.Subject
}

func (p *pass) needs(found []kaos.Found) []kaos.Need {
	p.subject.Add(found)
	if needer, ok := p.policy.(kaos.Needer); ok {
		return needer.Needs(p.subject)
	}
	return nil
}

func (p *pass) mapEnv(base []kaos.EnvVar) ([]kaos.EnvVar, kaos.Refusal) {
	mapper, ok := p.policy.(kaos.EnvMapper)
	if !ok {
		return base, nil
	}
	env, err := mapper.MapEnv(p.subject, base)
	return env, refusal("MapEnv", err)
}

func (p *pass) translate(env []kaos.EnvVar) (kaos.Plan, kaos.Refusal) {
	plan, err := p.policy.Translate(p.subject, env)
	if refused := refusal("Translate", err); refused != nil {
		return kaos.Plan{}, refused
	}
	if plan == nil {
		panic("Translate returned neither a plan nor a refusal")
	}
	return *plan, nil
}

func (p *pass) assess(seen kaos.Observation) kaos.Report {
	if assessor, ok := p.policy.(kaos.Assessor); ok {
		return assessor.Assess(p.subject, &seen)
	}
	return kaos.DefaultReport(&seen)
}

// refusal returns the refusal in an error. Any other error is a mistake of the policy.
func refusal(question string, err error) kaos.Refusal {
	if err == nil {
		return nil
	}
	var refused kaos.Refusal
	if errors.As(err, &refused) {
		return refused
	}
	panic(fmt.Sprintf("%s returned an error that is no refusal: %v", question, err))
}
