{{- /* Fails if KAOS's chart secured the cluster with a feature that this operator does not support, or if the values turn off
protection that the earlier release had. So an upgrade changes who has access only if security.acceptUnserved allows
this. */ -}}
{{- define "kaos-operator.secured" -}}
{{- $security := .Values.security | default dict -}}
{{- if not (dig "acceptUnserved" false $security) -}}
{{- $found := concat (include "kaos-operator.secured-by-values" . | fromJsonArray) (include "kaos-operator.secured-by-cluster" . | fromJsonArray) -}}
{{- with $found -}}
{{- $text := "the cluster is secured with features that this release would not support:\n" -}}
{{- range . }}{{ $text = printf "%s  - %s\n" $text . }}{{ end -}}
{{- fail (printf "%sNothing was changed. `kaos-operator upgrade-check` lists the objects. Replace these features first, as docs/guide/upgrade-from-kaos.md describes, and remove the values; or upgrade without these features with security.acceptUnserved=true" $text) -}}
{{- end -}}
{{- include "kaos-operator.complete" . -}}
{{- end -}}
{{- end }}

{{- define "kaos-operator.secured-by-values" -}}
{{- $security := .Values.security | default dict -}}
{{- $found := list -}}
{{- $provider := dig "agentAuth" "identity" "provider" "" $security -}}
{{- if has $provider (list "oidc" "aib") -}}
{{- $found = append $found (printf "security.agentAuth.identity.provider: Agents lose the credentials of %s, and their clients stay at this provider; this operator supports only serviceaccount" $provider) -}}
{{- end -}}
{{- if dig "tls" "mode" "" $security -}}
{{- $found = append $found "security.tls.mode: the Gateway of this chart has no HTTPS listener; set createGateway=false, and create a Gateway with such a listener" -}}
{{- end -}}
{{- if not (dig "agentAuth" "projection" "prune" true $security) -}}
{{- $found = append $found "security.agentAuth.projection.prune: the operator always writes all data again, so grants and Agents that are gone lose their entries; it supports only true" -}}
{{- end -}}
{{- if dig "tokenExchange" "enabled" false $security -}}
{{- $found = append $found "security.tokenExchange.enabled: nothing exchanges tokens for Agents" -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* Finds these features by the objects in the cluster, if the values do not show them. `helm template` has no cluster and
finds nothing. */ -}}
{{- define "kaos-operator.secured-by-cluster" -}}
{{- $found := list -}}
{{- $config := (lookup "v1" "ConfigMap" .Release.Namespace "kaos-operator-config").data | default dict -}}
{{- /* The variables that the new release still sets. */ -}}
{{- $still := merge (include "kaos-operator.security" . | fromJson) (.Values.extraConfig | default dict) -}}
{{- range $variable := list "SECURITY_PDP_ENABLED" "SECURITY_GATEWAY_ROUTING_ENABLED" "SECURITY_STRICT_GATEWAY_API_ENABLED" "SECURITY_NETWORK_POLICY_EGRESS_ENABLED" "TOKEN_EXCHANGE_ENABLED" -}}
{{- if and (eq (get $config $variable) "true") (ne (toString (get $still $variable)) "true") -}}
{{- $found = append $found (printf "%s in ConfigMap kaos-operator-config of the earlier release is set, but not in these values" $variable) -}}
{{- end -}}
{{- end -}}
{{- range $variable := list "SECURITY_AGENT_AUTH_EXT_AUTHZ_URL" "SECURITY_USER_AUTH_ISSUER" "SECURITY_USER_AUTH_AUDIENCE" -}}
{{- if and (get $config $variable) (not (get $still $variable)) -}}
{{- $found = append $found (printf "%s in ConfigMap kaos-operator-config of the earlier release is set, but not in these values" $variable) -}}
{{- end -}}
{{- end -}}
{{- /* Reads the objects of all namespaces, if the user installs the operator for all namespaces. If the new release protects
objects, the operator takes over these objects. */ -}}
{{- if and .Values.rbac.create (not .Values.watchNamespaces) (not (include "kaos-operator.protects" .)) -}}
{{- $kinds := dict "NetworkPolicy" "networking.k8s.io/v1" "SecurityPolicy" "gateway.envoyproxy.io/v1alpha1" -}}
{{- range $kind, $version := $kinds -}}
{{- if $.Capabilities.APIVersions.Has $version -}}
{{- $left := list -}}
{{- range (lookup $version $kind "" "").items -}}
{{- $object := . -}}
{{- /* Skips objects with this annotation: this operator created them and keeps managing them. */ -}}
{{- $ours := hasKey (.metadata.annotations | default dict) "kaos.tools/applied-digest" -}}
{{- range ternary list .metadata.ownerReferences $ours -}}
{{- if hasPrefix "kaos.tools/" .apiVersion }}{{ $left = append $left (printf "%s/%s" $object.metadata.namespace $object.metadata.name) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with $left -}}
{{- $found = append $found (printf "%d objects of kind %s that belong to KAOS objects, such as %s, and that no operator updates any more" (len .) $kind (first .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}
