{{- /* The objects that the chart reads from the cluster. `helm template` has no cluster, so there all of them are empty. Helm
fails if the user has no right to read an object. So the chart reads objects of other namespaces only if the user installs
rights of the operator, and a value can replace each of these readings. */ -}}

{{- /* Whether Helm can read the cluster. Each namespace has this ConfigMap. */ -}}
{{- define "kaos-operator.sees-cluster" -}}
{{- if lookup "v1" "ConfigMap" .Release.Namespace "kube-root-ca.crt" }}true{{ end -}}
{{- end }}

{{- /* The variables of the earlier release, as JSON. */ -}}
{{- define "kaos-operator.earlier" -}}
{{- (lookup "v1" "ConfigMap" .Release.Namespace "kaos-operator-config").data | default dict | toJson -}}
{{- end }}

{{- /* The annotations of the ConfigMap with these variables, as JSON. This chart records the preset and the images there. */ -}}
{{- define "kaos-operator.earlier-annotations" -}}
{{- dig "metadata" "annotations" dict (lookup "v1" "ConfigMap" .Release.Namespace "kaos-operator-config" | default dict) | toJson -}}
{{- end }}

{{- /* The preset of the earlier release of this chart, as JSON. */ -}}
{{- define "kaos-operator.earlier-preset" -}}
{{- $preset := dict -}}
{{- range (lookup "v1" "ConfigMap" .Release.Namespace "kaos-operator-compatibility").data }}{{ $preset = . | fromYaml }}{{ end -}}
{{- toJson $preset -}}
{{- end }}

{{- /* The name of this preset. Several names, with commas, if a user left the file of another preset there. */ -}}
{{- define "kaos-operator.earlier-preset-name" -}}
{{- $names := list -}}
{{- range $file, $_ := (lookup "v1" "ConfigMap" .Release.Namespace "kaos-operator-compatibility").data -}}
{{- $names = append $names (trimSuffix ".yaml" $file) -}}
{{- end -}}
{{- join ", " $names -}}
{{- end }}

{{- /* The image of the operator that works now. */ -}}
{{- define "kaos-operator.earlier-image" -}}
{{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace (printf "%s-controller-manager" (include "kaos-operator.fullname" .)) -}}
{{- range dig "spec" "template" "spec" "containers" list ($deployment | default dict) -}}
{{- if eq .name "manager" }}{{ .image }}{{ end -}}
{{- end -}}
{{- end }}

{{- /* The proxies of the cluster, as JSON: the name, when the ModelAPI was created, whether this operator ever worked on it,
and whether the ModelAPI itself sets the variable. Reads them only if the user installs rights of the operator: other users
possibly have no right to read ModelAPIs. */ -}}
{{- define "kaos-operator.models" -}}
{{- $models := list -}}
{{- if and .Values.rbac.create (.Capabilities.APIVersions.Has "kaos.tools/v1alpha1/ModelAPI") -}}
{{- range $namespace := .Values.watchNamespaces | default (list "") -}}
{{- range (lookup "kaos.tools/v1alpha1" "ModelAPI" $namespace "").items -}}
{{- /* An object without a phase has no pods yet. A hosted model has no proxy. */ -}}
{{- if and (dig "status" "phase" "" .) (ne (dig "spec" "mode" "" .) "Hosted") -}}
{{- /* KAOS's operator writes no conditions. */ -}}
{{- $isOurs := not (empty (dig "status" "conditions" list .)) -}}
{{- $isSet := contains (include "kaos-operator.permission" .) (toJson .spec) -}}
{{- $name := printf "%s/%s" .metadata.namespace .metadata.name -}}
{{- $models = append $models (dict "name" $name "created" .metadata.creationTimestamp "ours" $isOurs "set" $isSet) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $models -}}
{{- end }}

{{- /* Whether the Deployment of a proxy, NAMESPACE/NAME, has the variable. Reads the Deployment, so ask for few proxies. */ -}}
{{- define "kaos-operator.has-permission" -}}
{{- $parts := splitList "/" . -}}
{{- $deployment := lookup "apps/v1" "Deployment" (first $parts) (printf "modelapi-%s" (last $parts)) -}}
{{- if contains (include "kaos-operator.permission" .) (toJson $deployment) }}true{{ end -}}
{{- end }}

{{- /* The Gateway in the cluster, as JSON; {} if there is none. */ -}}
{{- define "kaos-operator.gateway" -}}
{{- $gateway := dict -}}
{{- if .Capabilities.APIVersions.Has "gateway.networking.k8s.io/v1/Gateway" -}}
{{- with .Values.gatewayAPI -}}
{{- $gateway = lookup "gateway.networking.k8s.io/v1" "Gateway" (.gatewayNamespace | default $.Release.Namespace) .gatewayName -}}
{{- end -}}
{{- end -}}
{{- $gateway | default dict | toJson -}}
{{- end }}

{{- /* The SecurityPolicies of all namespaces, as JSON, if the user installs the operator for all namespaces. */ -}}
{{- define "kaos-operator.security-policies" -}}
{{- $policies := list -}}
{{- if and .Values.rbac.create (not .Values.watchNamespaces) (.Capabilities.APIVersions.Has "gateway.envoyproxy.io/v1alpha1") -}}
{{- $policies = (lookup "gateway.envoyproxy.io/v1alpha1" "SecurityPolicy" "" "").items | default list -}}
{{- end -}}
{{- toJson $policies -}}
{{- end }}

{{- /* The NetworkPolicies of all namespaces, as JSON, if the user installs the operator for all namespaces. */ -}}
{{- define "kaos-operator.network-policies" -}}
{{- $policies := list -}}
{{- if and .Values.rbac.create (not .Values.watchNamespaces) -}}
{{- $policies = (lookup "networking.k8s.io/v1" "NetworkPolicy" "" "").items | default list -}}
{{- end -}}
{{- toJson $policies -}}
{{- end }}
