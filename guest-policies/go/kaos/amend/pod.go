package amend

import (
	"strings"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// PodTemplate returns the pod template of a workload, or nil. For a Pod, it returns the manifest itself.
func PodTemplate(manifest kaos.Map) kaos.Map {
	for _, path := range [][]string{nil, {"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		template := manifest
		for _, name := range path {
			template, _ = template[name].(kaos.Map)
		}
		spec, _ := template["spec"].(kaos.Map)
		if _, has := spec["containers"].([]any); has {
			return template
		}
	}
	return nil
}

// Containers returns all containers of a pod template, including the init containers.
func Containers(template kaos.Map) []kaos.Map {
	spec, _ := template["spec"].(kaos.Map)
	var containers []kaos.Map
	for _, list := range []string{"initContainers", "containers"} {
		items, _ := spec[list].([]any)
		for _, item := range items {
			if container, ok := item.(kaos.Map); ok {
				containers = append(containers, container)
			}
		}
	}
	return containers
}

// AddLabels adds labels to a manifest or to a pod template. Existing labels keep their values: selectors may use them.
func AddLabels(to kaos.Map, labels map[string]string) {
	existing := member(member(to, "metadata"), "labels")
	for key, value := range labels {
		if _, exists := existing[key]; !exists {
			existing[key] = value
		}
	}
}

// Push appends an item to a list of a pod template's spec, such as containers, tolerations or volumes.
func Push(template kaos.Map, list string, item any) {
	spec := member(template, "spec")
	items, _ := spec[list].([]any)
	spec[list] = append(items, item)
}

// OnRegistry replaces the registry of an image. A registry is a host, which can have a path: mirror.example.com/hub. An
// image without a registry is an image of Docker Hub, so nginx becomes mirror.example.com/hub/library/nginx. An image
// that is already on `registry` stays as it is. If `registry` is empty, every image stays as it is.
func OnRegistry(image, registry string) string {
	const hub = "docker.io"
	registry = strings.TrimRight(registry, "/")
	if registry == "" || strings.HasPrefix(image, registry+"/") {
		return image
	}
	host, path, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host, path = hub, image
	}
	if host == hub && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return registry + "/" + path
}

// member returns a member of a map as an object. If the member is missing or not an object, it becomes an empty object.
func member(of kaos.Map, name string) kaos.Map {
	own, ok := of[name].(kaos.Map)
	if !ok {
		own = kaos.Map{}
		of[name] = own
	}
	return own
}
