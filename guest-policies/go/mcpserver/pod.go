package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos/patch"
)

const (
	podPath       = "spec.template.spec"
	containerPath = "spec.container"
	podSpecPath   = "spec.podSpec"
)

// deployment builds the Deployment. It merges the object's `container` and then the object's `podSpec` into the
// policy's own pod. It also returns the mapping of the merged pod.
func (r *request) deployment(env []kaos.EnvVar, notes *[]kaos.Note) (*kaos.Manifest, []kaos.EnvVar, error) {
	overrides, older := r.container()
	pod, err := r.pod(overrides)
	if err != nil {
		return nil, nil, err
	}
	planned := setEnv(pod, env)
	podSpec := r.object.At("spec", "podSpec")
	if podSpec != nil {
		if err := kaos.CheckPatch(podSpec, podSpecPath); err != nil {
			return nil, nil, err
		}
		if pod, err = patch.PodSpec(pod, podSpec, ownContainer, podSpecPath); err != nil {
			return nil, nil, err
		}
	}
	addEnv(pod, env, planned, notes)
	oneValueAName(pod, notes)
	withoutVoidHandlers(pod)
	*notes = append(*notes, repeatedEnv(overrides)...)
	if err := checkPod(pod, podSpec); err != nil {
		return nil, nil, err
	}
	mapping, err := kaos.EnvOfPodSpec(pod, env, podSpecPath)
	if err != nil {
		return nil, nil, err
	}
	spec := kaos.Map{
		"selector": kaos.Map{"matchLabels": r.workload.selector()},
		"template": kaos.Map{"metadata": r.settings.extra(r.workload.selector()), "spec": pod},
	}
	if r.spec.Replicas != nil {
		spec["replicas"] = *r.spec.Replicas
	}
	child := r.settings.child(kaos.Map{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec,
		"metadata": r.workload.metadata(r.workload.childName(), r.settings),
	})
	r.declare(child, overrides, older, podSpec)
	return child, mapping, nil
}

// declare adds the origins of the Deployment's values. The settings for a container have the same names as the fields
// of the container, so one origin covers all of these settings.
func (r *request) declare(child *kaos.Manifest, overrides kaos.Map, older bool, podSpec any) {
	main := fmt.Sprintf("%s.containers[name=%q]", podPath, ownContainer)
	child.Origin("spec.replicas", "spec.replicas")
	r.settings.declare(child, "spec.template.")
	child.Origin(main, "settings")
	if overrides != nil {
		if older {
			child.Origin(main+".resources", "spec.resources")
		}
		child.Origin(main, containerPath)
	}
	if len(r.settings.PodSecurityContext) > 0 {
		child.Origin(podPath+".securityContext", "settings.podSecurityContext")
	}
	if r.spec.ServiceAccountName != "" {
		child.Origin(podPath+".serviceAccountName", "spec.serviceAccountName")
	}
	if podSpec != nil {
		child.Origin(podPath, podSpecPath)
	}
}

// container returns `spec.container`. If `spec.container` has no resources, it gets the resources of the older field.
func (r *request) container() (own kaos.Map, older bool) {
	own = r.object.Object("spec", "container").Members()
	resources := r.object.At("spec", "resources")
	if resources == nil {
		return own, false
	}
	if own == nil {
		own = kaos.Map{}
	}
	if own["resources"] != nil {
		return own, false
	}
	own["resources"] = resources
	return own, true
}

// pod builds the policy's own pod.
func (r *request) pod(overrides kaos.Map) (kaos.Map, error) {
	settings := r.settings
	port := kaos.Map{"name": settings.PortName, "containerPort": settings.ContainerPort, "protocol": "TCP"}
	main := kaos.Map{
		"name": ownContainer, "image": r.launch.image, "imagePullPolicy": settings.ImagePullPolicy, "ports": []any{port},
	}
	for field, probe := range map[string]Probe{
		"livenessProbe": settings.LivenessProbe, "readinessProbe": settings.ReadinessProbe,
	} {
		if manifest := probe.manifest(settings.ContainerPort); manifest != nil {
			main[field] = manifest
		}
	}
	own := r.spec.Container
	if own == nil {
		own = &Container{}
	}
	putWords(main, "command", r.launch.command, own.Command)
	putWords(main, "args", r.launch.args, own.Args)
	putMap(main, "resources", settings.Resources)
	putMap(main, "securityContext", settings.SecurityContext)
	if overrides != nil {
		kept := kaos.Map{}
		for _, field := range []string{
			"image", "command", "args", "resources", "securityContext", "workingDir", "volumeMounts",
		} {
			// An empty field counts as absent, because typed clients omit empty fields.
			if value := overrides[field]; !isVoid(value) {
				kept[field] = value
			}
		}
		var err error
		if main, err = patch.Container(main, kept, containerPath); err != nil {
			return nil, err
		}
	}
	pod := kaos.Map{"containers": []any{main}}
	if r.spec.ServiceAccountName != "" {
		pod["serviceAccountName"] = r.spec.ServiceAccountName
	}
	putMap(pod, "securityContext", settings.PodSecurityContext)
	if settings.AutomountServiceAccountToken != nil {
		pod["automountServiceAccountToken"] = *settings.AutomountServiceAccountToken
	}
	return pod, nil
}

// putWords puts a list of the registry into the container. But an empty list in the object removes the registry's list.
// A strategic merge would keep the registry's list.
func putWords(main kaos.Map, field string, words, own *[]string) {
	if words == nil || len(*words) == 0 || own != nil && len(*own) == 0 {
		return
	}
	items := make([]any, len(*words))
	for i, word := range *words {
		items[i] = word
	}
	main[field] = items
}

// putMap sets the field to a copy of `members`, because a merge changes its base.
func putMap(target kaos.Map, field string, members kaos.Map) {
	if len(members) > 0 {
		target[field] = kaos.Parse(kaos.Text(members))
	}
}

func isVoid(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case kaos.Map:
		return len(value) == 0
	}
	return false
}

// containers visits the containers and then the init containers of a pod.
func containers(pod kaos.Map, visit func(container kaos.Map)) {
	for _, list := range []string{"containers", "initContainers"} {
		items, _ := pod[list].([]any)
		for _, item := range items {
			if container, ok := item.(kaos.Map); ok {
				visit(container)
			}
		}
	}
}

func nameOf(item any) string {
	members, _ := item.(kaos.Map)
	name, _ := members["name"].(string)
	return name
}

// setEnv sets the variables of each container of the policy's own pod. It returns the names of these containers.
func setEnv(pod kaos.Map, vars []kaos.EnvVar) []string {
	var planned []string
	containers(pod, func(container kaos.Map) {
		planned = append(planned, nameOf(container))
		if list := kaos.ContainerEnv(vars, nameOf(container)); len(list) > 0 {
			container["env"] = plainList(list)
		}
	})
	return planned
}

// plainList returns the list with the types that kaos.Parse uses.
func plainList(list []any) []any {
	plain, _ := kaos.Parse(kaos.Text(list)).([]any)
	return plain
}

// addEnv adds variables to the containers that only `podSpec` defines. Overlays set these variables.
func addEnv(pod kaos.Map, vars []kaos.EnvVar, planned []string, notes *[]kaos.Note) {
	others := map[string]bool{}
	for _, variable := range vars {
		if !slices.Contains(planned, variable.Container) {
			others[variable.Container] = true
		}
	}
	for _, other := range slices.Sorted(maps.Keys(others)) {
		var found kaos.Map
		containers(pod, func(container kaos.Map) {
			if found == nil && nameOf(container) == other {
				found = container
			}
		})
		if found == nil {
			message := fmt.Sprintf("the pod has no container `%s`, so the plan leaves out the variables of this container", other)
			*notes = append(*notes, warning("", "UnknownContainer", message))
			continue
		}
		list, ok := found["env"].([]any)
		if _, has := found["env"]; has && !ok {
			continue
		}
		for _, variable := range plainList(kaos.ContainerEnv(vars, other)) {
			if !slices.ContainsFunc(list, func(own any) bool { return nameOf(own) == nameOf(variable) }) {
				list = append(list, variable)
			}
		}
		found["env"] = list
	}
}

// oneValueAName removes duplicate variables of each container. As in Kubernetes, the last value wins.
func oneValueAName(pod kaos.Map, notes *[]kaos.Note) {
	containers(pod, func(container kaos.Map) {
		list, ok := container["env"].([]any)
		if !ok {
			return
		}
		kept, repeated := kaos.EachOnce(list)
		if repeated {
			container["env"] = kept
			message := fmt.Sprintf("container `%s` sets a variable more than once: the last value wins", nameOf(container))
			*notes = append(*notes, kaos.Note{Reason: "DuplicateEnv", Message: message, Path: podSpecPath})
		}
	})
}

// repeatedEnv returns the note about the first variable that `spec.container.env` contains more than once.
func repeatedEnv(overrides kaos.Map) []kaos.Note {
	seen := map[string]bool{}
	list, _ := overrides["env"].([]any)
	for _, item := range list {
		members, _ := item.(kaos.Map)
		name, ok := members["name"].(string)
		if ok && seen[name] {
			message := fmt.Sprintf("`%s` occurs more than once: the last value wins", kaos.Shown(name, 63))
			return []kaos.Note{{Reason: "DuplicateEnv", Message: message, Path: containerPath + ".env"}}
		}
		seen[name] = ok
	}
	return nil
}

// withoutVoidHandlers removes probes and hooks that a patch has made empty, because an API server refuses them.
func withoutVoidHandlers(pod kaos.Map) {
	isEmpty := func(value any) bool {
		members, ok := value.(kaos.Map)
		return ok && len(members) == 0
	}
	containers(pod, func(container kaos.Map) {
		maps.DeleteFunc(container, func(field string, value any) bool {
			return strings.HasSuffix(field, "Probe") && isEmpty(value)
		})
		if hooks, ok := container["lifecycle"].(kaos.Map); ok {
			maps.DeleteFunc(hooks, func(_ string, hook any) bool { return isEmpty(hook) })
		}
	})
}
