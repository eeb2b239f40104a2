// The default policy of the kind MCPServer, in Go. The operator ships the same policy in Rust, and a test compares both
// policies' answers to every recorded case. This example shows how a policy of realistic size looks in Go.
//
//	the fields of the object, older forms included   wanted.go
//	the registry of runtimes                          registry.go
//	the start of the container                        launch.go
//	everything about one subject                      request.go
//	manifests                                         translate.go, pod.go, expose.go, security.go
//	status                                            assess.go, with the tools that python.go finds
package main

import (
	_ "embed"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos/policy"
)

const apiVersion = "kaos.tools/v1alpha1"

var (
	//go:embed settings.schema.json
	schema string
	//go:embed samples/registry.json
	registrySample string
	//go:embed samples/python-string.json
	pythonSample string
	//go:embed samples/custom.json
	customSample string
)

func init() { policy.Export(MCPServer{}) }

func main() {}

// MCPServer is the policy.
type MCPServer struct{}

// Describe returns the claim on the kind MCPServer.
func (MCPServer) Describe() kaos.Descriptor {
	route := kaos.ResourceType{APIVersion: routeAPI, Kind: routeKind}
	gateway := kaos.ResourceType{APIVersion: gatewayPolicyAPI, Kind: gatewayPolicyKind}
	network := kaos.ResourceType{APIVersion: networkPolicyAPI, Kind: networkPolicyKind}
	return kaos.Descriptor{
		Name:    "mcpserver",
		Version: "0.1.0",
		Claims: []kaos.Claim{{
			Primary: kaos.ResourceType{APIVersion: apiVersion, Kind: "MCPServer"},
			Emits: []kaos.ResourceType{
				{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "v1", Kind: "Service"}, route, gateway, network,
			},
			Reads:  []kaos.ResourceType{{APIVersion: "v1", Kind: "ConfigMap"}},
			Wishes: []kaos.ResourceType{route, gateway, network},
			Samples: []kaos.Sample{
				{Name: "python-string", Object: kaos.JSON(pythonSample), Beside: []kaos.JSON{kaos.JSON(registrySample)}},
				{Name: "custom", Object: kaos.JSON(customSample)},
			},
		}},
		SettingsSchema: kaos.JSON(schema),
	}
}

// Needs returns the need for the registry, if the object names a runtime. The need is optional if the settings contain the
// runtime.
func (MCPServer) Needs(subject *kaos.Subject) []kaos.Need {
	settings, err := settingsOf(subject)
	if err != nil {
		return nil
	}
	spec, err := specOf(subject)
	if err != nil {
		return nil
	}
	wanted, err := wantedOf(spec)
	if err != nil || wanted.source.runtime == "" {
		return nil
	}
	on := registryReference(settings, subject)
	need := kaos.Need{ID: registryID, Target: kaos.Named(on)}.Reading(kaos.Key("data", settings.Registry.Key))
	if _, known := settings.Runtimes[wanted.source.runtime]; known {
		need = need.IfPresent()
	}
	return []kaos.Need{need}
}

// MapEnv maps the variables: parameters, the user's variables, telemetry, log level.
func (MCPServer) MapEnv(subject *kaos.Subject, base []kaos.EnvVar) ([]kaos.EnvVar, error) {
	request, err := requestOf(subject)
	if err != nil {
		return nil, err
	}
	mapping := kaos.EnvOver(base)
	env := mapping.Container(ownContainer)
	// The registry names this variable for the parameters, so the parameters replace the policy's own value of the
	// variable.
	if variable, params := request.launch.paramsEnvVar, request.wanted.params; variable != "" && params != nil {
		env.Hold(variable, params.source(), params.path)
	}
	for _, path := range [][]string{{"spec", "config", "env"}, {"spec", "container", "env"}} {
		if err := env.User(request.object.List(path...), path[0]+"."+path[1]+"."+path[2]); err != nil {
			return nil, err
		}
	}
	request.telemetry().setEnv(env, request.workload, request.settings.Telemetry.ExcludedURLs)
	env.Set("LOG_LEVEL", request.settings.LogLevel, "settings.logLevel")
	return mapping.Vars(), nil
}
