{{- /* The decision point of the release, and the projection that the operator writes for it. */ -}}

{{- /* The values of the decision point as JSON. `helm upgrade --reuse-values` may keep values that lack some of them. */ -}}
{{- define "kaos-operator.pdp" -}}
{{- $pdp := deepCopy (dig "pdp" dict (.Values.security | default dict)) -}}
{{- $defaults := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- include "kaos-operator.fill" (dict "into" $pdp "from" $defaults.security.pdp) -}}
{{- toJson $pdp -}}
{{- end }}

{{- /* The name of the ConfigMap with the rules and the data, or nothing if the operator writes none. */ -}}
{{- define "kaos-operator.projection" -}}
{{- $security := .Values.security | default dict -}}
{{- $usual := ternary "kaos-authz-policy" "" (dig "pdp" "enabled" false $security) -}}
{{- dig "agentAuth" "projection" "policyConfigMap" "name" "" $security | default $usual -}}
{{- end }}

{{- /* The namespaces of the projection, separated by commas. KAOS's chart accepts a list and a text. */ -}}
{{- define "kaos-operator.projected" -}}
{{- $namespaces := dig "agentAuth" "projection" "namespaces" list (.Values.security | default dict) -}}
{{- if kindIs "slice" $namespaces -}}
{{- join "," $namespaces -}}
{{- else -}}
{{- $namespaces | default "" | nospace -}}
{{- end -}}
{{- end }}

{{- /* The labels by which the Deployment and the Service select the pods, as JSON. The selector of a Deployment is immutable,
so an existing Deployment keeps its own. */ -}}
{{- define "kaos-operator.pdp-labels" -}}
{{- $labels := (include "kaos-operator.pdp" . | fromJson).matchLabels -}}
{{- if not $labels -}}
{{- $labels = dig "spec" "selector" "matchLabels" dict (lookup "apps/v1" "Deployment" .Release.Namespace "kaos-pdp" | default dict) -}}
{{- end -}}
{{- toJson ($labels | default (dict "app.kubernetes.io/name" "kaos-pdp" "app.kubernetes.io/instance" .Release.Name)) -}}
{{- end }}
