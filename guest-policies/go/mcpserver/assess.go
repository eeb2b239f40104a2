package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// Assess builds the status: phase, endpoint, tools and conditions.
func (MCPServer) Assess(subject *kaos.Subject, seen *kaos.Observation) kaos.Report {
	settings, err := settingsOf(subject)
	if err != nil {
		settings = &Settings{}
	}
	spec := &Spec{}
	if err := subject.Read("spec", spec); err != nil {
		spec = &Spec{}
	}
	workload := workloadOf(subject)
	report, fields := assessed(workload, settings.ServicePort, spec.Replicas, seen)
	request, err := requestOf(subject)
	if err == nil {
		if tools := request.availableTools(seen.Env); len(tools) > 0 {
			fields["availableTools"] = tools
		}
		report.Conditions = append(report.Conditions, request.telemetry().conditions()...)
	}
	report.Conditions = append(report.Conditions, runtimeResolved(seen.Outcome, err == nil)...)
	for _, warned := range [][3]string{
		{paramsUnused, "ParamsApplied", "NoVariable"}, {requiredEnvMissing, "EnvironmentComplete", "Missing"},
		{"CommandIsFlags", "CommandUsable", "BeginsWithFlag"},
	} {
		at := slices.IndexFunc(seen.Notes, func(note kaos.Note) bool { return note.Reason == warned[0] })
		if at >= 0 {
			report.Conditions = append(report.Conditions, condition(warned[1], kaos.TruthNo, warned[2], seen.Notes[at].Message))
		}
	}
	// An object that waits for another object also gets the condition `Deprecated`.
	wanted, err := wantedOf(spec)
	if request != nil {
		wanted, err = request.wanted, nil
	}
	if err == nil {
		report.Conditions = append(report.Conditions, deprecatedCondition(wanted.notes)...)
	}
	report.Fields = kaos.Text(fields)
	return report
}

// availableTools returns the functions in the container's Python source, or else the registry's list of tools.
func (r *request) availableTools(env []kaos.EnvVar) []string {
	if !r.launch.paramsArePython || r.launch.paramsEnvVar == "" {
		return r.launch.tools
	}
	for _, variable := range env {
		if variable.Container == ownContainer && variable.Name == r.launch.paramsEnvVar {
			if source, ok := variable.Source.(kaos.Literal); ok {
				return topLevelFunctions(string(source))
			}
			return r.launch.tools
		}
	}
	if params := r.wanted.params; params != nil && params.secret == nil {
		return topLevelFunctions(params.text)
	}
	return r.launch.tools
}

// runtimeResolved returns the condition that shows whether the registry has a valid entry for the runtime.
func runtimeResolved(outcome kaos.Outcome, resolved bool) []kaos.Condition {
	const of = "RuntimeResolved"
	if resolved {
		return []kaos.Condition{condition(of, kaos.TruthYes, "Resolved", "the runtime is known")}
	}
	refused, _ := outcome.(kaos.Refused)
	switch refusal := refused.Refusal.(type) {
	case kaos.Invalid:
		for _, violation := range refusal {
			if violation.Path == "spec.runtime" || violation.Path == "spec.container.image" {
				return []kaos.Condition{condition(of, kaos.TruthNo, "Unknown", violation.Message)}
			}
		}
	case kaos.Waiting:
		if len(refusal) > 0 {
			return []kaos.Condition{condition(of, kaos.TruthNo, refusal[0].Reason, refusal[0].Message)}
		}
	}
	return nil
}

// assessed builds the report on a workload from its live children. `replicas` is the wanted number of pods if the
// Deployment does not exist.
func assessed(w workload, port uint16, replicas *int32, seen *kaos.Observation) (kaos.Report, kaos.Map) {
	rollout := rolloutOf(live(seen, "apps/v1", "Deployment", w.childName()), replicas)
	report := kaos.Report{}
	report.Phase, report.Message = verdict(seen, rollout)
	report.Ready = report.Phase == "Ready"
	fields := kaos.Map{"replicas": rollout.replicas, "selector": w.selectorText()}
	switch seen.Outcome.(type) {
	case kaos.Applied, kaos.Gated:
		fields["endpoint"] = w.endpoint(port)
	default:
		// Other objects can use the server's address. So the address stays in the status while the Service exists, even if
		// the policy refuses the object.
		service := live(seen, "v1", "Service", w.childName())
		if ports := service.List("spec", "ports"); len(ports) > 0 {
			first, _ := ports[0].(kaos.Map)
			if port := kaos.ParseObject(kaos.Text(first)).Int("port"); 0 < port && port < 1<<16 {
				fields["endpoint"] = w.endpoint(uint16(port))
			}
		}
	}
	if rollout.status != nil {
		fields["deployment"] = rollout.status
	}
	report.Conditions = routed(seen, live(seen, routeAPI, routeKind, w.routeName()))
	return report, fields
}

// verdict returns the phase and the message. If an object waits for another object but already has pods that serve, its
// pods decide the phase.
func verdict(seen *kaos.Observation, rollout rollout) (phase, message string) {
	byPods := func() (string, string) {
		if rollout.serves() {
			return "Ready", rollout.message()
		}
		return "Pending", rollout.message()
	}
	waits := func(on []kaos.Blocker) (string, string) {
		switch {
		case rollout.serves():
			return byPods()
		case len(on) == 0:
			return "Waiting", "waiting"
		}
		return "Waiting", on[0].Message
	}
	switch outcome := seen.Outcome.(type) {
	case kaos.Gated:
		return waits(seen.Gates)
	case kaos.Failed:
		return "Failed", string(outcome)
	case kaos.Refused:
		if waiting, ok := outcome.Refusal.(kaos.Waiting); ok {
			return waits(waiting)
		}
		return "Failed", outcome.Refusal.Error()
	}
	return byPods()
}

func live(seen *kaos.Observation, apiVersion, kind, name string) kaos.Object {
	for _, child := range seen.Children {
		identity := child.Identity
		if identity.APIVersion == apiVersion && identity.Kind == kind && identity.Name == name && child.Live != "" {
			return kaos.ParseObject(child.Live)
		}
	}
	return kaos.Object{}
}

// routed returns a condition: what the Gateway's controller reports on the route, or why an enabled route is missing.
func routed(seen *kaos.Observation, route kaos.Object) []kaos.Condition {
	const of = "Routed"
	for _, note := range seen.Notes {
		if strings.HasPrefix(note.Reason, "Gateway") {
			return []kaos.Condition{condition(of, kaos.TruthNo, note.Reason, note.Message)}
		}
	}
	if !route.Exists() {
		return nil
	}
	accepted := false
	for _, parent := range route.List("status", "parents") {
		for _, item := range itemsOf(parent, "conditions") {
			members, _ := item.(kaos.Map)
			text := func(name string) string {
				text, _ := members[name].(string)
				return text
			}
			if text("status") == "False" {
				return []kaos.Condition{condition(of, kaos.TruthNo, text("reason"), text("message"))}
			}
			accepted = accepted || text("type") == "Accepted" && text("status") == "True"
		}
	}
	if accepted {
		return []kaos.Condition{condition(of, kaos.TruthYes, "Accepted", "the Gateway accepted the route")}
	}
	return []kaos.Condition{condition(of, kaos.TruthUnknown, "Pending", "no Gateway has accepted the route yet")}
}

// rollout has the numbers of a live Deployment's pods. If there is no Deployment yet, only `wanted` is set.
type rollout struct {
	wanted, ready, replicas, available, updated int64
	observed                                    bool
	trouble                                     string
	status                                      kaos.Map
}

func rolloutOf(live kaos.Object, replicas *int32) rollout {
	if !live.Exists() {
		if replicas != nil {
			return rollout{wanted: int64(*replicas)}
		}
		return rollout{wanted: 1}
	}
	count := func(field string) int64 { return live.Int("status", field) }
	r := rollout{
		wanted: 1, ready: count("readyReplicas"), replicas: count("replicas"), available: count("availableReplicas"),
		updated: count("updatedReplicas"), observed: count("observedGeneration") >= live.Generation(), status: kaos.Map{},
	}
	if live.At("spec", "replicas") != nil {
		r.wanted = live.Int("spec", "replicas")
	}
	for _, cause := range [][2]string{{"ReplicaFailure", "True"}, {"Progressing", "False"}} {
		if found := live.Condition(cause[0]); found.Exists() && found.String("status") == cause[1] {
			r.trouble = found.String("message")
			break
		}
	}
	for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "updatedReplicas"} {
		if number := count(field); number != 0 {
			r.status[field] = number
		}
	}
	var conditions []any
	for _, item := range live.List("status", "conditions") {
		members, _ := item.(kaos.Map)
		text := func(name string) string {
			text, _ := members[name].(string)
			return text
		}
		if text("type") == "" || text("status") == "" {
			continue
		}
		own := kaos.Map{
			"type": text("type"), "status": text("status"), "reason": orElse(text("reason"), "Unknown"), "message": text("message"),
		}
		if since, has := members["lastTransitionTime"]; has {
			own["lastTransitionTime"] = since
		}
		conditions = append(conditions, own)
	}
	if len(conditions) > 0 {
		r.status["conditions"] = conditions
	}
	return r
}

// serves reports whether pods of the current generation serve. If more pods are available than there are old pods, at
// least one available pod is new.
func (r rollout) serves() bool {
	return r.observed && r.wanted > 0 && r.updated > 0 && r.available > max(r.replicas-r.updated, 0)
}

func (r rollout) message() string {
	message := fmt.Sprintf("Deployment ready replicas: %d/%d", r.ready, r.wanted)
	if r.wanted == 0 && r.status != nil {
		message += " (scaled to zero)"
	}
	if r.trouble != "" && !r.serves() {
		message += "; " + r.trouble
	}
	return message
}
