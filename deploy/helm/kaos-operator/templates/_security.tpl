{{- /* The protection of objects, from the values of KAOS's chart. */ -}}

{{- /* Whether these values protect objects, so that the operator creates SecurityPolicies and NetworkPolicies. */ -}}
{{- define "kaos-operator.protects" -}}
{{- if (include "kaos-operator.cases" . | fromJson).protected -}}true{{- end -}}
{{- end }}

{{- /* The host of the Gateway: the value, or the first address of the Gateway in the cluster. */ -}}
{{- define "kaos-operator.gateway-host" -}}
{{- $host := dig "gatewayHost" "" (.Values.security | default dict) -}}
{{- if not $host -}}
{{- $addresses := dig "status" "addresses" list (include "kaos-operator.gateway" . | fromJson) -}}
{{- if $addresses }}{{ $host = (first $addresses).value }}{{ end -}}
{{- end -}}
{{- $host -}}
{{- end }}

{{- /* Fails if a value is missing that other values need. */ -}}
{{- define "kaos-operator.complete" -}}
{{- $security := .Values.security | default dict -}}
{{- $cases := include "kaos-operator.cases" . | fromJson -}}
{{- $environment := include "kaos-operator.environment" . | fromJson -}}
{{- $found := list -}}
{{- range $row := .Files.Get "files/variables.yaml" | fromYamlArray -}}
{{- $is := not (empty $row.needed) -}}
{{- range $row.needed -}}
{{- if hasKey $cases . -}}
{{- $is = and $is (get $cases .) -}}
{{- else -}}
{{- $text := include "kaos-operator.text" (dict "values" $.Values "path" (trimPrefix "not " .)) -}}
{{- $is = and $is (eq $text (ternary "false" "true" (hasPrefix "not " .))) -}}
{{- end -}}
{{- end -}}
{{- $text := include "kaos-operator.text" (dict "values" $.Values "path" ($row.value | default "")) -}}
{{- with $row.variable }}{{ $text = get $environment . }}{{ end -}}
{{- $isSwitch := kindIs "bool" (include "kaos-operator.at" (dict "values" $.Values "path" ($row.value | default "")) | fromJson).it -}}
{{- if and $is (ternary (not (include "kaos-operator.on" $text)) (empty $text) $isSwitch) -}}
{{- $found = append $found (printf "%s is %s, but %s: %s" $row.value (ternary "false" "empty" $isSwitch) $row.because $row.set) -}}
{{- end -}}
{{- end -}}
{{- if $cases.projected -}}
{{- $namespace := dig "agentAuth" "projection" "policyConfigMap" "namespace" "" $security -}}
{{- if and $namespace (ne $namespace .Release.Namespace) -}}
{{- $found = append $found (printf "security.agentAuth.projection.policyConfigMap.namespace is %s, but the operator writes the ConfigMap into the release's namespace %s, where the decision point reads it: set the value to %s, or leave it empty" $namespace .Release.Namespace .Release.Namespace) -}}
{{- end -}}
{{- if and .Values.watchNamespaces (not (has .Release.Namespace .Values.watchNamespaces)) -}}
{{- $found = append $found (printf "watchNamespaces lacks %s, the namespace of the AuthorizationPolicy: add this namespace" .Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- with $found -}}
{{- fail (printf "the values are incomplete:\n  - %s\nNothing was changed" (join "\n  - " .)) -}}
{{- end -}}
{{- end }}
