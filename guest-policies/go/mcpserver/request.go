package main

import (
	"fmt"
	"strings"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// The fixed names of the kind. They are not settings, because existing children on a cluster already have these names.
const (
	app          = "mcpserver"
	prefix       = "mcpserver"
	ownContainer = "mcp-server"
	routePrefix  = "mcp"

	// registryID is the id of the need for the registry.
	registryID = "registry"
)

// request has all decoded inputs of the policy for one MCPServer.
type request struct {
	object   kaos.Object
	spec     *Spec
	settings *Settings
	wanted   *wanted
	launch   *launch
	workload workload
}

func requestOf(subject *kaos.Subject) (*request, error) {
	settings, err := settingsOf(subject)
	if err != nil {
		return nil, err
	}
	spec, err := specOf(subject)
	if err != nil {
		return nil, err
	}
	wanted, err := wantedOf(spec)
	if err != nil {
		return nil, err
	}
	launch, err := launchOf(wanted.source, settings, subject, spec.Container)
	if err != nil {
		return nil, err
	}
	return &request{subject.Get(), spec, settings, wanted, launch, workloadOf(subject)}, nil
}

// specOf decodes the spec. It refuses lists that are too long.
func specOf(subject *kaos.Subject) (*Spec, error) {
	object := subject.Get()
	for _, list := range []struct {
		path string
		most int
	}{
		{"spec.container.env", 12_000}, {"spec.podSpec.containers", 100}, {"spec.podSpec.initContainers", 100},
		{"spec.podSpec.volumes", 2_000},
	} {
		if count := len(object.List(strings.Split(list.path, ".")...)); count > list.most {
			const remedy = "split the object, or move long content to ConfigMaps or Secrets"
			message := fmt.Sprintf("has %d entries, but the limit is %d: %s", count, list.most, remedy)
			return nil, kaos.Invalid{{Path: list.path, Message: message}}
		}
	}
	spec := &Spec{}
	return spec, subject.Read("spec", spec)
}

// workload computes the names and addresses of an object's children.
type workload struct{ name, namespace, domain string }

func workloadOf(subject *kaos.Subject) workload {
	object := subject.Get()
	return workload{object.Name(), object.Namespace(), subject.Cluster.Domain}
}

func (w workload) childName() string { return prefix + "-" + w.name }
func (w workload) routeName() string { return routePrefix + "-" + w.name }

// selector returns the labels that select the pods. Every child has these labels, too.
func (w workload) selector() kaos.Map { return kaos.Map{"app": app, app: w.name} }

func (w workload) selectorText() string { return fmt.Sprintf("app=%s,%s=%s", app, app, w.name) }

func (w workload) endpoint(port uint16) string {
	return fmt.Sprintf("http://%s.%s.svc.%s:%d", w.childName(), w.namespace, w.domain, port)
}

func (w workload) metadata(name string, settings *Settings) kaos.Map {
	metadata := settings.extra(w.selector())
	metadata["name"], metadata["namespace"] = name, w.namespace
	return metadata
}

// checkName returns why the children's names would be invalid. The rules for the names of Services are the strictest.
func (w workload) checkName() kaos.Violations {
	const most = 63
	longest := most - len(prefix) - 1
	var wrong kaos.Violations
	switch {
	case len(w.name) > longest:
		wrong.Add("metadata.name", fmt.Sprintf("the name has %d characters, but the limit is %d: the Service is named `%s-` "+
			"plus this name, and names of Services have at most %d characters; choose a shorter name", len(w.name), longest,
			prefix, most))
	case w.name == "" || w.name[0] == '-' || kaos.DNS1035Label(w.childName()) != "":
		wrong.Add("metadata.name", fmt.Sprintf("`%s` cannot be part of a Service name: use at most %d lower-case letters, "+
			"digits and `-` (no dots), with a letter or digit at the beginning and at the end", kaos.Shown(w.name, 253),
			longest))
	}
	return wrong
}
