package kaos

import "fmt"

// Live returns the first live child of a kind.
func (o *Observation) Live(kind string) Object {
	for _, child := range o.Children {
		if child.Identity.Kind == kind && child.Live != "" {
			return ParseObject(child.Live)
		}
	}
	return Object{}
}

// Rollout counts the pods of the first live child of a kind, Deployment or StatefulSet.
func (o *Observation) Rollout(kind string) Rollout { return RolloutOf(o.Live(kind)) }

// Rollout counts the pods of a Deployment or a StatefulSet.
type Rollout struct {
	// Wanted is the number of pods that the workload wants.
	Wanted int64
	// Replicas is the number of all pods, including the pods of earlier generations.
	Replicas int64
	// Ready is the number of ready pods, including the pods of earlier generations.
	Ready int64
	// Available is the number of available pods of the current generation.
	Available int64

	isLive bool
}

// RolloutOf reads a live Deployment or StatefulSet. If the object does not exist, all counts are 0.
func RolloutOf(live Object) Rollout {
	if !live.Exists() {
		return Rollout{}
	}
	count := func(field string) int64 { return max(live.Int("status", field), 0) }
	rollout := Rollout{Wanted: 1, Replicas: count("replicas"), Ready: count("readyReplicas"), isLive: true}
	if live.At("spec", "replicas") != nil {
		rollout.Wanted = live.Int("spec", "replicas")
	}
	if live.Int("status", "observedGeneration") >= live.Generation() {
		// Even if all old pods are available, this many of the available pods are new.
		old := max(count("replicas")-count("updatedReplicas"), 0)
		rollout.Available = max(count("availableReplicas")-old, 0)
	}
	return rollout
}

// Serves reports whether a pod of the current generation is available.
func (r Rollout) Serves() bool { return r.Available > 0 }

// IsComplete reports whether all wanted pods are available and of the current generation, and no other pods are left.
func (r Rollout) IsComplete() bool {
	return r.isLive && r.Available == r.Wanted && r.Replicas == r.Wanted
}

// DefaultReport is the status of a policy without its own Assess. The object is ready if all children exist, and each
// workload has an available pod of the current generation or wants no pods. The object stays ready while plan gates
// hold back a change of its children.
func DefaultReport(seen *Observation) Report {
	all, up, exist := 0, 0, true
	for _, child := range seen.Children {
		exist = exist && child.Live != ""
		if kind := child.Identity.Kind; kind != "Deployment" && kind != "StatefulSet" {
			continue
		}
		all++
		if child.Live != "" {
			if rollout := RolloutOf(ParseObject(child.Live)); rollout.Serves() || rollout.Wanted == 0 {
				up++
			}
		}
	}
	report := Report{Phase: "Pending", Message: fmt.Sprintf("%d of %d workloads available", up, all)}
	accepted := false
	switch seen.Outcome.(type) {
	case Applied:
		accepted = true
	case Gated:
		// If the object has no children, the host has applied no earlier plan.
		accepted = len(seen.Children) > 0
	case Refused, Failed:
		report.Phase = "Failed"
	}
	if accepted && exist && up == all {
		report.Ready, report.Phase = true, "Ready"
	}
	return report
}
