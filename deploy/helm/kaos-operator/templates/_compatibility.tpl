{{- /* Returns the chosen preset as JSON, with the settings that come from values of KAOS's chart. */ -}}
{{- define "kaos-operator.preset" -}}
{{- $text := .Files.Get (printf "files/compatibility/%s.yaml" .Values.compatibility) -}}
{{- if not $text -}}
{{- $names := list -}}
{{- range $path, $_ := .Files.Glob "files/compatibility/*.yaml" }}{{ $names = append $names (base $path | trimSuffix ".yaml") }}{{ end -}}
{{- fail (printf "compatibility is %s, but the chart has no such preset: use one of %s" .Values.compatibility (join ", " $names)) -}}
{{- end -}}
{{- $preset := $text | fromYaml -}}
{{- $security := .Values.security | default dict -}}
{{- $provider := dig "agentAuth" "identity" "provider" "" $security -}}
{{- if $provider -}}
{{- $_ := set $preset.agent.serviceAccount "enabled" (eq $provider "serviceaccount") -}}
{{- end -}}
{{- /* KAOS's operator has no variable for this value. */ -}}
{{- if not (dig "agentAuth" "gatewayJwtOptional" true $security) -}}
{{- range $policy := list "agent" "mcpserver" "modelapi" "memorystore" -}}
{{- $_ := mergeOverwrite (get $preset $policy) (dict "security" (dict "jwtOptional" false)) -}}
{{- end -}}
{{- end -}}
{{- toJson $preset -}}
{{- end }}

{{- /* `helm upgrade --reuse-values` keeps the values of the earlier chart, so values that only this chart has are missing.
This template adds the missing values. If the values have no `compatibility`, they come from an earlier chart. */ -}}
{{- define "kaos-operator.carried" -}}
{{- $defaults := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- if not (hasKey .Values "compatibility") -}}
{{- /* KAOS of January 2026 had no memory service. */ -}}
{{- $preset := ternary "kaos-0.8" "kaos-0.1" (hasKey (.Values.defaultImages | default dict) "memoryService") -}}
{{- $image := dig "manager" "image" dict (.Values.controllerManager | default dict) -}}
{{- if include "kaos-operator.of-go" $image -}}
{{- $_ := set .Values.controllerManager.manager "image" $defaults.controllerManager.manager.image -}}
{{- end -}}
{{- include "kaos-operator.fill" (dict "into" .Values "from" $defaults) -}}
{{- $_ := set .Values "compatibility" $preset -}}
{{- end -}}
{{- /* Helm removes a value that is null. A null at the top level means the chart's defaults. */ -}}
{{- range $name, $value := $defaults -}}
{{- if kindIs "invalid" (ternary (get $.Values $name) nil (hasKey $.Values $name)) }}{{ $_ := set $.Values $name $value }}{{ end -}}
{{- end -}}
{{- end }}

{{- /* Copies the keys of `from` that `into` lacks. sprig's merge would also replace false, 0 and empty texts. */ -}}
{{- define "kaos-operator.fill" -}}
{{- $into := .into -}}
{{- range $name, $value := .from -}}
{{- if not (hasKey $into $name) -}}
{{- $_ := set $into $name $value -}}
{{- else if and (kindIs "map" $value) (kindIs "map" (get $into $name)) -}}
{{- include "kaos-operator.fill" (dict "into" (get $into $name) "from" $value) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Returns whether an image is the image of the Go operator. */ -}}
{{- define "kaos-operator.of-go" -}}
{{- if regexMatch "(^|/)axsau(ze|cedo)/kaos-operator$" (.repository | default "") -}}true{{- end -}}
{{- end }}
