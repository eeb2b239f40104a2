package main

import (
	"slices"
	"strings"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

const (
	paramsUnused       = "ParamsUnused"
	requiredEnvMissing = "RequiredEnvMissing"
)

// Translate builds the plan: a Deployment, its Service, and, if enabled, an HTTPRoute and the protecting objects.
func (MCPServer) Translate(subject *kaos.Subject, env []kaos.EnvVar) (*kaos.Plan, error) {
	wrong := workloadOf(subject).checkName()
	request, err := requestOf(subject)
	var plan *kaos.Plan
	if err == nil {
		plan, err = request.plan(subject, env)
	}
	if err := wrong.Collect(err); err != nil {
		return nil, err
	}
	return plan, wrong.Refusal()
}

func (r *request) plan(subject *kaos.Subject, env []kaos.EnvVar) (*kaos.Plan, error) {
	notes := slices.Concat(r.wanted.notes, r.launch.notes)
	var wrong kaos.Violations
	deployment, mapping, err := r.deployment(env, &notes)
	if err := wrong.Collect(err); err != nil {
		return nil, err
	}
	entrance, err := r.entrance(subject, &notes)
	if err := wrong.Collect(err); err != nil {
		return nil, err
	}
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}
	notes = append(notes, r.missingEnv(deployment)...)
	children := append([]*kaos.Manifest{deployment, r.service()}, entrance...)
	notes = append(notes, r.telemetry().notes()...)
	notes = append(notes, r.unusedParams()...)
	plan := kaos.NewPlan(mapping, children...)
	plan.Notes, plan.Finalizer = notes, r.settings.Finalizer
	return plan, nil
}

// unusedParams returns a note on parameters if the runtime has no variable for them.
func (r *request) unusedParams() []kaos.Note {
	if r.wanted.params == nil || r.launch.paramsEnvVar != "" {
		return nil
	}
	return []kaos.Note{warning(r.wanted.params.path, paramsUnused, "this runtime names no variable for parameters, so the "+
		"container does not get the parameters: set the container's variables in container.env, or set paramsEnvVar in "+
		"the registry")}
}

// missingEnv returns a note on variables that the runtime requires and the container lacks.
func (r *request) missingEnv(deployment *kaos.Manifest) []kaos.Note {
	manifest, _ := deployment.Object.(kaos.Map)
	spec, _ := manifest["spec"].(kaos.Map)
	template, _ := spec["template"].(kaos.Map)
	for _, container := range itemsOf(template["spec"], "containers") {
		if nameOf(container) != ownContainer || len(itemsOf(container, "envFrom")) > 0 {
			continue
		}
		var missing []string
		for _, required := range r.launch.requiredEnv {
			if !slices.ContainsFunc(itemsOf(container, "env"), func(it any) bool { return nameOf(it) == required }) {
				missing = append(missing, required)
			}
		}
		if len(missing) > 0 {
			message := "in container.env, the variables are missing that this runtime needs: " + strings.Join(missing, ", ")
			return []kaos.Note{warning("spec.container.env", requiredEnvMissing, message)}
		}
	}
	return nil
}
