// Package overlay exports an overlay as a component.
package overlay

import (
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos/internal/guest"
)

var exported kaos.Overlay

// Export sets the overlay of the component. Call it in an init function of main, because the host never calls main.
func Export(overlay kaos.Overlay) { exported = overlay }

// pass is one pass over one object.
type pass struct {
	overlay kaos.Overlay
	subject *kaos.Subject
}

func (p *pass) needs(found []kaos.Found) []kaos.Need { return guest.Needs(p.overlay, p.subject, found) }

func (p *pass) mapEnv(base []kaos.EnvVar) ([]kaos.EnvVar, kaos.Refusal) {
	return guest.MapEnv(p.overlay, p.subject, base)
}

func (p *pass) amend(below kaos.Plan) (kaos.Plan, kaos.Refusal) {
	plan, err := p.overlay.Amend(p.subject, &below)
	return guest.Plan("Amend", plan, err)
}
