{{- /* The protection of objects, from the values of KAOS's chart. */ -}}

{{- /* Whether these values protect objects, so that the operator creates SecurityPolicies and NetworkPolicies. */ -}}
{{- define "kaos-operator.protects" -}}
{{- $security := .Values.security | default dict -}}
{{- $extra := .Values.extraConfig | default dict -}}
{{- $is := or (include "kaos-operator.decides" .) (dig "strictGatewayApi" "enabled" false $security) -}}
{{- range $variable := list "SECURITY_PDP_ENABLED" "SECURITY_STRICT_GATEWAY_API_ENABLED" -}}
{{- $is = or $is (eq (toString (get $extra $variable)) "true") -}}
{{- end -}}
{{- if or $is (get $extra "SECURITY_AGENT_AUTH_EXT_AUTHZ_URL") -}}true{{- end -}}
{{- end }}

{{- /* Whether Agents call through the Gateway. */ -}}
{{- define "kaos-operator.routes" -}}
{{- $security := .Values.security | default dict -}}
{{- if or (dig "gatewayRouting" "enabled" false $security) (dig "strictGatewayApi" "enabled" false $security) -}}true{{- end -}}
{{- end }}

{{- /* The host of the Gateway: the value, or the first address of the Gateway in the cluster. */ -}}
{{- define "kaos-operator.gateway-host" -}}
{{- $host := dig "gatewayHost" "" (.Values.security | default dict) -}}
{{- if not $host -}}
{{- with .Values.gatewayAPI -}}
{{- $gateway := lookup "gateway.networking.k8s.io/v1" "Gateway" (.gatewayNamespace | default $.Release.Namespace) .gatewayName -}}
{{- $addresses := dig "status" "addresses" list ($gateway | default dict) -}}
{{- if $addresses }}{{ $host = (first $addresses).value }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $host -}}
{{- end }}

{{- /* The variables of kaos-operator-config about security, as JSON. The chart leaves out empty variables later. */ -}}
{{- define "kaos-operator.security" -}}
{{- $security := .Values.security | default dict -}}
{{- $variables := dict -}}
{{- if or (include "kaos-operator.protects" .) (include "kaos-operator.routes" .) -}}
{{- $account := dig "agentAuth" "identity" "serviceAccount" dict $security -}}
{{- $on := dict "true" "true" -}}
{{- $variables = dict
  "SECURITY_PDP_ENABLED" (get $on (toString (dig "pdp" "enabled" false $security)))
  "SECURITY_AGENT_AUTH_EXT_AUTHZ_URL" (dig "agentAuth" "extAuthzUrl" "" $security)
  "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_ISSUER" $account.issuer
  "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_JWKS" $account.jwks
  "SECURITY_USER_AUTH_ISSUER" (dig "userAuth" "issuer" "" $security)
  "SECURITY_USER_AUTH_AUDIENCE" (dig "userAuth" "audience" "" $security)
  "SECURITY_USER_AUTH_JWKS_URI" (dig "userAuth" "jwksUri" "" $security)
  "SECURITY_USER_AUTH_JWKS" (dig "userAuth" "jwks" "" $security)
  "SECURITY_GATEWAY_NAMESPACE" (dig "gatewayNamespace" "" $security)
  "SECURITY_NETWORK_POLICY_DISABLED" (ternary "" "true" (dig "networkPolicy" "enabled" true $security))
  "SECURITY_NETWORK_POLICY_EGRESS_ENABLED" (get $on (toString (dig "networkPolicy" "egress" "enabled" false $security)))
  "SECURITY_GATEWAY_ROUTING_ENABLED" (get $on (toString (dig "gatewayRouting" "enabled" false $security)))
  "SECURITY_STRICT_GATEWAY_API_ENABLED" (get $on (toString (dig "strictGatewayApi" "enabled" false $security)))
-}}
{{- with include "kaos-operator.projection" . -}}
{{- $_ := set $variables "AUTHZ_POLICY_CONFIGMAP_NAME" . -}}
{{- $_ := set $variables "AUTHZ_PROJECTION_NAMESPACES" (include "kaos-operator.projected" $) -}}
{{- $_ := set $variables "SECURITY_AUTHORIZATION_POLICY_DATA_SOURCE" (dig "agentAuth" "authorization" "policyDataSource" "" $security) -}}
{{- $_ := set $variables "SECURITY_AUTHORIZATION_POLICY_REGO_OVERRIDE" (get $on (toString (dig "agentAuth" "authorization" "policyRegoOverride" false $security))) -}}
{{- end -}}
{{- if include "kaos-operator.routes" . -}}
{{- $_ := set $variables "SECURITY_GATEWAY_HOST" (include "kaos-operator.gateway-host" .) -}}
{{- end -}}
{{- end -}}
{{- toJson $variables -}}
{{- end }}

{{- /* Fails if a value of security needs another value that is not set. */ -}}
{{- define "kaos-operator.complete" -}}
{{- $security := .Values.security | default dict -}}
{{- $found := list -}}
{{- $account := dig "agentAuth" "identity" "serviceAccount" dict $security -}}
{{- $extra := .Values.extraConfig | default dict -}}
{{- if include "kaos-operator.decides" . -}}
{{- if not (or $account.issuer (get $extra "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_ISSUER")) -}}
{{- $found = append $found "security.agentAuth.identity.serviceAccount.issuer is empty: set it to `issuer` of `kubectl get --raw /.well-known/openid-configuration`" -}}
{{- end -}}
{{- if not (or $account.jwks (get $extra "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_JWKS")) -}}
{{- $found = append $found "security.agentAuth.identity.serviceAccount.jwks is empty: kubectl get --raw /openid/v1/jwks >jwks.json, and --set-file security.agentAuth.identity.serviceAccount.jwks=jwks.json" -}}
{{- end -}}
{{- end -}}
{{- $isProjected := include "kaos-operator.projection" . -}}
{{- if $isProjected -}}
{{- $namespace := dig "agentAuth" "projection" "policyConfigMap" "namespace" "" $security -}}
{{- if and $namespace (ne $namespace .Release.Namespace) -}}
{{- $found = append $found (printf "security.agentAuth.projection.policyConfigMap.namespace is %s: the operator writes the ConfigMap in the release's namespace %s, where the decision point reads it; set it to %s, or leave it empty" $namespace .Release.Namespace .Release.Namespace) -}}
{{- end -}}
{{- if and .Values.watchNamespaces (not (has .Release.Namespace .Values.watchNamespaces)) -}}
{{- $found = append $found (printf "watchNamespaces lacks %s, where the AuthorizationPolicy lies: add it" .Release.Namespace) -}}
{{- end -}}
{{- $isManual := eq "manual" (dig "agentAuth" "authorization" "policyDataSource" "" $security) -}}
{{- if and (dig "userAuth" "issuer" "" $security) (not $isManual) (not (or (dig "userAuth" "jwks" "" $security) (get $extra "SECURITY_USER_AUTH_JWKS"))) -}}
{{- $found = append $found "security.userAuth.jwks is empty, so the decision point could check no token of a user: download jwksUri of the issuer, and --set-file security.userAuth.jwks=FILE" -}}
{{- end -}}
{{- end -}}
{{- if and (dig "userAuth" "issuer" "" $security) (not (dig "strictGatewayApi" "enabled" false $security)) -}}
{{- $found = append $found "security.userAuth.issuer needs security.strictGatewayApi.enabled=true: calls that bypass the Gateway carry no token of a user" -}}
{{- end -}}
{{- if include "kaos-operator.routes" . -}}
{{- if not .Values.gatewayAPI.enabled -}}
{{- $found = append $found "gatewayAPI.enabled is false, and Agents call through the Gateway: set it to true" -}}
{{- else if not (or (include "kaos-operator.gateway-host" .) (get $extra "SECURITY_GATEWAY_HOST")) -}}
{{- $found = append $found "security.gatewayHost is empty, and the cluster has no Gateway with an address: set it to the host of the Gateway" -}}
{{- end -}}
{{- end -}}
{{- with $found -}}
{{- fail (printf "the values of security are incomplete:\n  - %s\nNothing was changed" (join "\n  - " .)) -}}
{{- end -}}
{{- end }}
