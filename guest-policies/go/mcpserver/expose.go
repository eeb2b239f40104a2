package main

import (
	"fmt"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

const (
	routeAPI  = "gateway.networking.k8s.io/v1"
	routeKind = "HTTPRoute"
)

// service builds the Service.
func (r *request) service() *kaos.Manifest {
	settings := r.settings
	port := kaos.Map{
		"name": settings.PortName, "port": settings.ServicePort, "targetPort": settings.ContainerPort, "protocol": "TCP",
	}
	return settings.child(kaos.Map{
		"apiVersion": "v1", "kind": "Service", "metadata": r.workload.metadata(r.workload.childName(), settings),
		"spec": kaos.Map{"type": settings.ServiceType, "selector": r.workload.selector(), "ports": []any{port}},
	}).
		Origin("spec.type", "settings.serviceType").
		Origin("spec.ports[0].port", "settings.servicePort").
		Origin("spec.ports[0].targetPort", "settings.containerPort")
}

// entrance builds the HTTPRoute, and the objects that protect the server. It refuses the object if the operator cannot
// create one of the protecting objects.
func (r *request) entrance(subject *kaos.Subject, notes *[]kaos.Note) ([]*kaos.Manifest, error) {
	route, err := r.route(subject, notes)
	if err != nil {
		return nil, err
	}
	protection, err := r.protection(subject, route != nil)
	if err != nil {
		return nil, err
	}
	var children []*kaos.Manifest
	for _, manifest := range protection {
		children = append(children, r.settings.child(manifest))
	}
	if route != nil {
		_, path := r.timeout()
		children = append(children, r.settings.child(route).
			Origin("spec.parentRefs[0]", "settings.gateway").Origin("spec.rules[0].timeouts.request", path))
	}
	return children, nil
}

// route builds the HTTPRoute if routes are enabled. It adds a note instead if the settings name no Gateway, or if the
// cluster does not serve the kind.
func (r *request) route(subject *kaos.Subject, notes *[]kaos.Note) (kaos.Map, error) {
	text, path := r.timeout()
	spelled, err := forGateway(text)
	if err == errNoTimeout {
		message := fmt.Sprintf("`%s` is not a timeout: write up to four numbers with a unit h, m, s or ms, for example 1h30m",
			kaos.Shown(text, 40))
		return nil, kaos.Invalid{{Path: path, Message: message}}
	}
	gateway := r.settings.Gateway
	switch {
	case !gateway.Enabled:
		return nil, nil
	case gateway.Name == "":
		*notes = append(*notes, warning("", "GatewayUnnamed", "routes are enabled and no Gateway is named, so there is no "+
			"HTTPRoute: set GATEWAY_NAME for the operator"))
		return nil, nil
	case !subject.Serves(routeAPI, routeKind):
		*notes = append(*notes, warning("", "GatewayUnserved", "routes are enabled and this cluster does not serve HTTPRoute "+
			"of gateway.networking.k8s.io/v1, so there is no HTTPRoute: install the Gateway API, or set GATEWAY_API_ENABLED to "+
			"false for the operator"))
		return nil, nil
	}
	rule := kaos.Map{
		"matches": []any{kaos.Map{"path": kaos.Map{
			"type": "PathPrefix", "value": fmt.Sprintf("/%s/%s/%s", r.workload.namespace, routePrefix, r.workload.name),
		}}},
		"filters":     r.filters(),
		"backendRefs": []any{kaos.Map{"kind": "Service", "name": r.workload.childName(), "port": r.settings.ServicePort}},
	}
	if text != "0s" {
		if err != nil {
			message := fmt.Sprintf("`%s` is longer than the Gateway API allows (99999h): write a shorter timeout, or 0s for "+
				"none", kaos.Shown(text, 40))
			return nil, kaos.Invalid{{Path: path, Message: message}}
		}
		if spelled != text {
			message := fmt.Sprintf("`%s` is written `%s` in the HTTPRoute: the Gateway API allows at most five digits in a "+
				"number", text,
				spelled)
			*notes = append(*notes, kaos.Note{Reason: "TimeoutRespelled", Message: message, Path: path})
		}
		rule["timeouts"] = kaos.Map{"request": spelled}
	}
	parent := kaos.Map{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gateway.Name}
	if gateway.Namespace != "" {
		parent["namespace"] = gateway.Namespace
	}
	return kaos.Map{
		"apiVersion": routeAPI, "kind": routeKind, "metadata": r.workload.metadata(r.workload.routeName(), r.settings),
		"spec": kaos.Map{"parentRefs": []any{parent}, "rules": []any{rule}},
	}, nil
}

func (r *request) filters() []any {
	rewrite := kaos.Map{"path": kaos.Map{"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
	filters := []any{kaos.Map{"type": "URLRewrite", "urlRewrite": rewrite}}
	if r.settings.Security.TargetHeader {
		value := fmt.Sprintf("kaos://%s/%s/%s", app, r.workload.namespace, r.workload.name)
		set := kaos.Map{"set": []any{kaos.Map{"name": "x-kaos-target-resource", "value": value}}}
		filters = append([]any{kaos.Map{"type": "RequestHeaderModifier", "requestHeaderModifier": set}}, filters...)
	}
	return filters
}

// timeout returns the timeout that the object or else the settings set, and the path of this value.
func (r *request) timeout() (text, path string) {
	if own := r.object.String("spec", "gatewayRoute", "timeout"); own != "" {
		return own, "spec.gatewayRoute.timeout"
	}
	return r.settings.Gateway.Timeout, "settings.gateway.timeout"
}
