package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

const (
	gatewayPolicyAPI  = "gateway.envoyproxy.io/v1alpha1"
	gatewayPolicyKind = "SecurityPolicy"
	networkPolicyAPI  = "networking.k8s.io/v1"
	networkPolicyKind = "NetworkPolicy"
	agentHeader       = "x-agent-authorization"
)

func (s *Security) isOn() bool { return s.PDP || s.Authorizer != "" }

// authorizer returns the address of the decision point.
func (s *Security) authorizer(subject *kaos.Subject) string {
	if s.Authorizer != "" {
		return s.Authorizer
	}
	return fmt.Sprintf("kaos-pdp.%s.svc:9191", subject.Cluster.OperatorNamespace)
}

// protection builds the objects that protect a server: a SecurityPolicy at its route, and a NetworkPolicy around its pods.
// If the cluster does not serve such a type, the policy refuses the server, because its requests would not be checked.
func (r *request) protection(subject *kaos.Subject, hasRoute bool) ([]kaos.Map, error) {
	security := &r.settings.Security
	var manifests []kaos.Map
	if hasRoute && security.isOn() {
		if err := require(subject, gatewayPolicyAPI, gatewayPolicyKind); err != nil {
			return nil, err
		}
		policy, err := r.gatewayPolicy(subject)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, policy)
	}
	if security.isOn() && !security.NetworkPolicy.Disabled || security.Strict {
		if err := require(subject, networkPolicyAPI, networkPolicyKind); err != nil {
			return nil, err
		}
		manifests = append(manifests, r.networkPolicy(subject))
	}
	return manifests, nil
}

func require(subject *kaos.Subject, apiVersion, kind string) error {
	if subject.Serves(apiVersion, kind) {
		return nil
	}
	return kaos.Unsupported(fmt.Sprintf("the operator cannot create a %s of %s, so this object would be open to every "+
		"caller: install this type and remove it from the operator's flag --without, or turn off the setting `security`",
		kind, apiVersion))
}

// gatewayPolicy builds the SecurityPolicy of Envoy Gateway. It refuses incomplete settings.
func (r *request) gatewayPolicy(subject *kaos.Subject) (kaos.Map, error) {
	security := &r.settings.Security
	agents := security.Agents
	var wrong kaos.Violations
	name, namespace, port := service(security.authorizer(subject))
	wrong.Require(name != "", "settings.security.authorizer", "is not the address of a Service: write name.namespace.svc:port")
	const unset = "is not set, so the Gateway cannot check the tokens of Agents: in the settings for the cluster, set it to " +
		"the output of "
	wrong.Require(agents.Issuer != "", "settings.security.agents.issuer",
		unset+"`kubectl get --raw /.well-known/openid-configuration`, field issuer")
	wrong.Require(agents.JWKS != "", "settings.security.agents.jwks", unset+"`kubectl get --raw /openid/v1/jwks`")
	wrong.Require(agents.Audience != "", "settings.security.agents.audience", "is not set, so the Gateway would accept every "+
		"token of the cluster: in the settings for the cluster, set it to the audience of the Agents' tokens, for example "+
		"kaos-gateway")
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}
	providers := []any{kaos.Map{
		"name": "agent", "issuer": agents.Issuer, "audiences": []any{agents.Audience},
		"localJWKS":      kaos.Map{"type": "Inline", "inline": agents.JWKS},
		"extractFrom":    kaos.Map{"headers": []any{kaos.Map{"name": agentHeader, "valuePrefix": "Bearer "}}},
		"claimToHeaders": []any{claim("sub", "x-agent-claim-sub")},
	}}
	if users := security.Users; users.Issuer != "" {
		keys := users.JWKSURI
		if keys == "" {
			keys = strings.TrimRight(users.Issuer, "/") + "/protocol/openid-connect/certs"
		}
		provider := kaos.Map{
			"name": "user", "issuer": users.Issuer, "remoteJWKS": kaos.Map{"uri": keys},
			"claimToHeaders": []any{claim("sub", "x-user-claim-sub"), claim("preferred_username", "x-user-claim-username")},
		}
		if users.Audience != "" {
			provider["audiences"] = []any{users.Audience}
		}
		providers = append(providers, provider)
	}
	tokens := kaos.Map{"providers": providers}
	if security.JWTOptional {
		tokens["optional"] = true
	}
	target := kaos.Map{"group": "gateway.networking.k8s.io", "kind": routeKind, "name": r.workload.routeName()}
	backend := kaos.Map{"name": name, "namespace": namespace, "port": port}
	return kaos.Map{
		"apiVersion": gatewayPolicyAPI, "kind": gatewayPolicyKind,
		"metadata": r.workload.metadata(r.workload.routeName(), r.settings),
		"spec": kaos.Map{
			"targetRefs": []any{target}, "jwt": tokens,
			"extAuth": kaos.Map{
				"failOpen": false, "headersToExtAuth": []any{"authorization", agentHeader},
				"grpc": kaos.Map{"backendRefs": []any{backend}},
			},
		},
	}, nil
}

func claim(claim, header string) kaos.Map { return kaos.Map{"claim": claim, "header": header} }

// networkPolicy builds the NetworkPolicy around the pods.
func (r *request) networkPolicy(subject *kaos.Subject) kaos.Map {
	security := &r.settings.Security
	trusted := []string{orElse(security.GatewayNamespace, "envoy-gateway-system")}
	if operator := orElse(security.OperatorNamespace, subject.Cluster.OperatorNamespace); operator != trusted[0] {
		trusted = append(trusted, operator)
	}
	spec := kaos.Map{
		"podSelector": kaos.Map{"matchLabels": r.workload.selector()}, "policyTypes": []any{"Ingress"},
		"ingress": []any{kaos.Map{"from": namespaces(trusted...)}},
	}
	if security.NetworkPolicy.Egress {
		others := []string{namespaceOf(security.Users.Issuer), namespaceOf(security.Users.JWKSURI)}
		if security.isOn() {
			others = append(others, namespaceOfService(security.authorizer(subject)))
		}
		for _, namespace := range others {
			if namespace != "" && !slices.Contains(trusted, namespace) {
				trusted = append(trusted, namespace)
			}
		}
		ports := []any{kaos.Map{"protocol": "UDP", "port": 53}, kaos.Map{"protocol": "TCP", "port": 53}}
		spec["policyTypes"] = []any{"Ingress", "Egress"}
		spec["egress"] = []any{
			kaos.Map{"to": namespaces("kube-system"), "ports": ports}, kaos.Map{"to": namespaces(trusted...)},
		}
	}
	return kaos.Map{
		"apiVersion": networkPolicyAPI, "kind": networkPolicyKind, "spec": spec,
		"metadata": r.workload.metadata(r.workload.routeName(), r.settings),
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// namespaces returns the peers of a NetworkPolicy rule that match all pods of these namespaces.
func namespaces(names ...string) []any {
	var peers []any
	for _, name := range names {
		labels := kaos.Map{"kubernetes.io/metadata.name": name}
		peers = append(peers, kaos.Map{"namespaceSelector": kaos.Map{"matchLabels": labels}})
	}
	return peers
}

// host returns the host and the port of a URL. The scheme and the port are optional.
func host(url string) (host, port string) {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	if end := strings.IndexAny(url, "/?#"); end >= 0 {
		url = url[:end]
	}
	url = url[strings.LastIndexByte(url, '@')+1:]
	if at := strings.LastIndexByte(url, ':'); at >= 0 {
		return url[:at], url[at+1:]
	}
	return url, ""
}

// service parses name.namespace.svc:port. The text can also have a scheme and the rest of the domain. For any other
// text, the returned name is empty.
func service(url string) (name, namespace string, port uint64) {
	host, digits := host(url)
	labels := strings.Split(host, ".")
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || len(labels) < 2 || labels[0] == "" || labels[1] == "" || len(labels) > 2 && labels[2] != "svc" {
		return "", "", 0
	}
	return labels[0], labels[1], port
}

// namespaceOf returns the namespace in the URL of a Service, or the empty text for a host outside of the cluster.
func namespaceOf(url string) string {
	host, _ := host(url)
	if labels := strings.Split(host, "."); len(labels) > 2 && labels[2] == "svc" {
		return labels[1]
	}
	return ""
}

// namespaceOfService returns the namespace in the address of a Service. The address can lack .svc or the port.
func namespaceOfService(address string) string {
	if _, namespace, _ := service(address); namespace != "" {
		return namespace
	}
	return namespaceOf(address)
}
