package main

import (
	"fmt"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// telemetry is the effective telemetry of one object. Each field that the object does not set comes from the settings.
type telemetry struct {
	enabled                       bool
	endpoint                      string
	enabledOrigin, endpointOrigin string
	path                          string
}

func (r *request) telemetry() telemetry {
	settings, path := r.settings.Telemetry, r.wanted.telemetryPath
	t := telemetry{settings.Enabled, settings.Endpoint, "settings.telemetry.enabled", "settings.telemetry.endpoint", path}
	own := r.wanted.telemetry
	if own != nil && own.Enabled != nil {
		t.enabled, t.enabledOrigin = *own.Enabled, path+".enabled"
	}
	if own != nil && own.Endpoint != "" {
		t.endpoint, t.endpointOrigin = own.Endpoint, path+".endpoint"
	}
	return t
}

// setEnv sets the variables of Python's OpenTelemetry SDK.
func (t telemetry) setEnv(env kaos.EnvOfContainer, workload workload, excludedURLs string) {
	if !t.enabled {
		return
	}
	env.Set("OTEL_SDK_DISABLED", "false", t.enabledOrigin).Set("OTEL_SERVICE_NAME", workload.name, t.enabledOrigin)
	if t.endpoint != "" {
		// Kubernetes expands variables in the endpoint, such as http://$(HOST_IP):4317.
		env.Bind("OTEL_EXPORTER_OTLP_ENDPOINT", kaos.Literal(t.endpoint), t.endpointOrigin)
	}
	attributes := fmt.Sprintf("service.namespace=%s,kaos.resource.name=%s", workload.namespace, workload.name)
	env.Set("OTEL_RESOURCE_ATTRIBUTES", attributes, t.enabledOrigin)
	env.SetSome("OTEL_PYTHON_FASTAPI_EXCLUDED_URLS", excludedURLs, "settings.telemetry.excludedUrls")
}

func (t telemetry) notes() []kaos.Note {
	if !t.enabled || t.endpoint != "" {
		return nil
	}
	return []kaos.Note{warning(t.path+".endpoint", "TelemetryWithoutEndpoint", "telemetry is enabled without an endpoint: the "+
		"pods export nothing; set the endpoint, or DEFAULT_TELEMETRY_ENDPOINT for the operator")}
}

func (t telemetry) conditions() []kaos.Condition {
	const of = "TelemetryConfigured"
	switch {
	case !t.enabled:
		return nil
	case t.endpoint != "":
		return []kaos.Condition{condition(of, kaos.TruthYes, "Configured", "exported to "+t.endpoint)}
	}
	return []kaos.Condition{condition(of, kaos.TruthNo, "NoEndpoint", "telemetry is enabled without an endpoint")}
}
