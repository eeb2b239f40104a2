// Package policy exports a policy as a component.
package policy

import (
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos/internal/guest"
)

var exported kaos.Policy

// Export sets the policy of the component. Call it in an init function of main, because the host never calls main.
func Export(policy kaos.Policy) { exported = policy }

// pass is one pass over one object.
type pass struct {
	policy  kaos.Policy
	subject *kaos.Subject
}

func (p *pass) needs(found []kaos.Found) []kaos.Need { return guest.Needs(p.policy, p.subject, found) }

func (p *pass) mapEnv(base []kaos.EnvVar) ([]kaos.EnvVar, kaos.Refusal) {
	return guest.MapEnv(p.policy, p.subject, base)
}

func (p *pass) translate(env []kaos.EnvVar) (kaos.Plan, kaos.Refusal) {
	plan, err := p.policy.Translate(p.subject, env)
	return guest.Plan("Translate", plan, err)
}

func (p *pass) assess(seen kaos.Observation) kaos.Report {
	if assessor, ok := p.policy.(kaos.Assessor); ok {
		return assessor.Assess(p.subject, &seen)
	}
	return kaos.DefaultReport(&seen)
}
