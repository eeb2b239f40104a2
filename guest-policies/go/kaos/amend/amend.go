// Package amend has functions with which an overlay changes the plan of the policy below.
//
// An overlay may change children and add children. It must not drop or rename children, or change their selectors.
package amend

import (
	"iter"
	"slices"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// Child is a child of the plan below.
type Child struct {
	// Manifest is the manifest of the child. A change to it is also a change to the plan.
	Manifest kaos.Map

	plan     *kaos.Plan
	position uint32
}

// Declare records `source` as the origin of the value at `path` of the manifest, and of all values below that path,
// like the method Origin of [kaos.Manifest].
func (c *Child) Declare(path, source string) {
	c.plan.Origins = append(c.plan.Origins, kaos.Origin{Manifest: c.position, Path: path, From: source})
}

// Children returns the children of the plan. The loop over them may change each child. A child that the loop does not
// change keeps its JSON text.
func Children(plan *kaos.Plan) iter.Seq[*Child] {
	return func(yield func(*Child) bool) {
		// The loop does not visit the children that its body adds.
		for position, text := range slices.Clone(plan.Manifests) {
			manifest, ok := kaos.Parse(text).(kaos.Map)
			if !ok {
				continue
			}
			child := &Child{Manifest: manifest, plan: plan, position: uint32(position)}
			before := kaos.Text(manifest)
			more := yield(child)
			if after := kaos.Text(child.Manifest); after != before {
				plan.Manifests[position] = after
			}
			if !more {
				return
			}
		}
	}
}

// PodTemplates returns the pod template of each workload of the plan. The loop over them may change each template.
func PodTemplates(plan *kaos.Plan) iter.Seq[kaos.Map] {
	return func(yield func(kaos.Map) bool) {
		for child := range Children(plan) {
			if template := PodTemplate(child.Manifest); template != nil && !yield(template) {
				return
			}
		}
	}
}

// Add adds a child to the plan.
func Add(plan *kaos.Plan, child *kaos.Manifest) {
	added := kaos.NewPlan(nil, child)
	for _, origin := range added.Origins {
		origin.Manifest = uint32(len(plan.Manifests))
		plan.Origins = append(plan.Origins, origin)
	}
	plan.Manifests = append(plan.Manifests, added.Manifests...)
}
