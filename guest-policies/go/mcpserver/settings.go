package main

import "github.com/kaos-tools/policy-operator/guest-policies/go/kaos"

// Settings are the settings that settings.schema.json declares. The host fills in the defaults and checks the values.
type Settings struct {
	Registry struct {
		ConfigMap string `json:"configMap"`
		Key       string `json:"key"`
	} `json:"registry"`
	Runtimes                     kaos.Map          `json:"runtimes"`
	CommandFlagsAsArgs           bool              `json:"commandFlagsAsArgs"`
	PackageImage                 string            `json:"packageImage"`
	LogLevel                     string            `json:"logLevel"`
	ImagePullPolicy              string            `json:"imagePullPolicy"`
	ContainerPort                uint16            `json:"containerPort"`
	ServicePort                  uint16            `json:"servicePort"`
	PortName                     string            `json:"portName"`
	ServiceType                  string            `json:"serviceType"`
	LivenessProbe                Probe             `json:"livenessProbe"`
	ReadinessProbe               Probe             `json:"readinessProbe"`
	Resources                    kaos.Map          `json:"resources"`
	SecurityContext              kaos.Map          `json:"securityContext"`
	PodSecurityContext           kaos.Map          `json:"podSecurityContext"`
	AutomountServiceAccountToken *bool             `json:"automountServiceAccountToken"`
	ExtraLabels                  kaos.Map          `json:"extraLabels"`
	ExtraAnnotations             kaos.Map          `json:"extraAnnotations"`
	Gateway                      Gateway           `json:"gateway"`
	Security                     Security          `json:"security"`
	Telemetry                    TelemetrySettings `json:"telemetry"`
	Finalizer                    string            `json:"finalizer"`
}

// Probe is one probe of the main container.
type Probe struct {
	Handler             string  `json:"handler"`
	Path                string  `json:"path"`
	Port                *uint16 `json:"port"`
	Scheme              string  `json:"scheme"`
	InitialDelaySeconds uint32  `json:"initialDelaySeconds"`
	PeriodSeconds       uint32  `json:"periodSeconds"`
	TimeoutSeconds      uint32  `json:"timeoutSeconds"`
	FailureThreshold    uint32  `json:"failureThreshold"`
	SuccessThreshold    uint32  `json:"successThreshold"`
}

// Gateway is the Gateway that routes to the servers.
type Gateway struct {
	Enabled   bool   `json:"enabled"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Timeout   string `json:"timeout"`
}

// TelemetrySettings apply to objects that do not configure telemetry themselves.
type TelemetrySettings struct {
	Enabled      bool   `json:"enabled"`
	Endpoint     string `json:"endpoint"`
	ExcludedURLs string `json:"excludedUrls"`
}

// Security has the settings that protect objects at the Gateway and in the network.
type Security struct {
	TargetHeader bool   `json:"targetHeader"`
	PDP          bool   `json:"pdp"`
	Authorizer   string `json:"authorizer"`
	JWTOptional  bool   `json:"jwtOptional"`
	Agents       struct {
		Issuer   string `json:"issuer"`
		JWKS     string `json:"jwks"`
		Audience string `json:"audience"`
	} `json:"agents"`
	Users struct {
		Issuer   string `json:"issuer"`
		Audience string `json:"audience"`
		JWKSURI  string `json:"jwksUri"`
	} `json:"users"`
	Strict        bool `json:"strict"`
	NetworkPolicy struct {
		Disabled bool `json:"disabled"`
		Egress   bool `json:"egress"`
	} `json:"networkPolicy"`
	GatewayNamespace  string `json:"gatewayNamespace"`
	OperatorNamespace string `json:"operatorNamespace"`
}

func settingsOf(subject *kaos.Subject) (*Settings, error) {
	// If no settings layer sets a value below `security`, it is null. So the default of jwtOptional must be here.
	settings := &Settings{Security: Security{JWTOptional: true}}
	return settings, subject.ReadSettings(settings)
}

// extra returns a `metadata` with these labels, extraLabels and extraAnnotations. These labels win over extraLabels.
func (s *Settings) extra(labels kaos.Map) kaos.Map {
	all := kaos.Map{}
	for name, value := range s.ExtraLabels {
		all[name] = value
	}
	for name, value := range labels {
		all[name] = value
	}
	metadata := kaos.Map{"labels": all}
	if len(s.ExtraAnnotations) > 0 {
		metadata["annotations"] = s.ExtraAnnotations
	}
	return metadata
}

// child returns a child with this manifest. It adds the origins of the extra labels and annotations.
func (s *Settings) child(manifest kaos.Map) *kaos.Manifest {
	child := kaos.NewManifest(manifest)
	s.declare(child, "")
	return child
}

// declare adds the origins of the extra metadata. `above` is the path above `metadata`, with a dot at its end.
func (s *Settings) declare(child *kaos.Manifest, above string) {
	if len(s.ExtraLabels) > 0 {
		child.Origin(above+"metadata.labels", "settings.extraLabels")
	}
	if len(s.ExtraAnnotations) > 0 {
		child.Origin(above+"metadata.annotations", "settings.extraAnnotations")
	}
}

// manifest returns the probe in Kubernetes' format, or nil if the settings turn the probe off.
func (p Probe) manifest(port uint16) kaos.Map {
	if p.Port != nil {
		port = *p.Port
	}
	probe := kaos.Map{
		"initialDelaySeconds": p.InitialDelaySeconds, "periodSeconds": p.PeriodSeconds, "timeoutSeconds": p.TimeoutSeconds,
		"failureThreshold": p.FailureThreshold, "successThreshold": p.SuccessThreshold,
	}
	switch p.Handler {
	case "httpGet":
		probe["httpGet"] = kaos.Map{"path": p.Path, "port": port, "scheme": p.Scheme}
	case "tcpSocket":
		probe["tcpSocket"] = kaos.Map{"port": port}
	default:
		return nil
	}
	return probe
}
