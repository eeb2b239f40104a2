package main

import (
	"fmt"
	"slices"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// lists names a pod spec's lists of containers. A container's name must be unique across both lists.
var lists = []string{"containers", "initContainers"}

func itemsOf(value any, field string) []any {
	members, _ := value.(kaos.Map)
	items, _ := members[field].([]any)
	return items
}

// place returns the path of a field of the container with this name in the user's pod spec.
func place(podSpec any, list, name, field string) string {
	for _, list := range append([]string{list}, lists...) {
		items := itemsOf(podSpec, list)
		for at := len(items) - 1; at >= 0; at-- {
			if nameOf(items[at]) == name {
				return fmt.Sprintf("%s.%s[%d].%s", podSpecPath, list, at, field)
			}
		}
	}
	return podSpecPath + "." + list
}

// checkPod checks the merged pod spec for mistakes because of which an API server would refuse it.
func checkPod(pod kaos.Map, podSpec any) error {
	if !slices.ContainsFunc(itemsOf(pod, "containers"), func(it any) bool { return nameOf(it) == ownContainer }) {
		message := fmt.Sprintf("the pod must keep the container `%s`: remove the patch that deletes it", ownContainer)
		return kaos.Invalid{{Path: podSpecPath + ".containers", Message: message}}
	}
	names := map[string]bool{}
	for _, list := range lists {
		for _, item := range itemsOf(pod, list) {
			name := nameOf(item)
			at := func(field string) string { return place(podSpec, list, name, field) }
			hasImage := false
			for _, written := range itemsOf(podSpec, list) {
				if members, _ := written.(kaos.Map); nameOf(written) == name {
					_, hasImage = members["image"]
				}
			}
			if err := checkContainer(item, hasImage, at); err != nil {
				return err
			}
			if names[name] {
				message := fmt.Sprintf("two containers are named `%s`: choose another name", kaos.Shown(name, 63))
				return kaos.Invalid{{Path: at("name"), Message: message}}
			}
			names[name] = true
		}
	}
	return nil
}

func checkContainer(container any, hasImage bool, at func(field string) string) error {
	members, _ := container.(kaos.Map)
	image, _ := members["image"].(string)
	name := nameOf(container)
	switch {
	case name == "":
		return kaos.Invalid{{Path: at("name"), Message: "is required; it is the container's name"}}
	case image == "" && name != ownContainer:
		message := fmt.Sprintf("container `%s` needs an image; to change the container of this kind instead, name it `%s`",
			kaos.Shown(name, 63),
			ownContainer)
		return kaos.Invalid{{Path: at("image"), Message: message}}
	case image == "" && hasImage:
		return kaos.Invalid{{Path: at("image"), Message: "removes the container's image: set an image, or remove this field"}}
	case image == "":
		const message = "no image is set: set it here, or set the default image of the operator"
		return kaos.Invalid{{Path: containerPath + ".image", Message: message}}
	}
	seen := map[string]bool{}
	for _, port := range itemsOf(container, "ports") {
		name := nameOf(port)
		if name != "" && seen[name] {
			message := fmt.Sprintf("two ports are named `%s`, since ports merge by number: choose another name, or set the "+
				"policy setting containerPort to change the port", kaos.Shown(name, 15))
			return kaos.Invalid{{Path: at("ports"), Message: message}}
		}
		seen[name] = true
	}
	return nil
}
