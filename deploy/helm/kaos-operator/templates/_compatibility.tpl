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
{{- /* An empty provider is no missing provider: KAOS then uses the broker, and gives Agents no ServiceAccounts. */ -}}
{{- $provider := dig "agentAuth" "identity" "provider" nil $security -}}
{{- if kindIs "string" $provider -}}
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

{{- /* Completes the values before a template reads them. `helm upgrade --reuse-values` keeps the values of the earlier chart,
also in later upgrades, so values that only this chart has are missing: adds them. Then chooses the preset and the images.
All templates get the same values. */ -}}
{{- define "kaos-operator.carried" -}}
{{- if not (hasKey .Values "recorded") -}}
{{- $defaults := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- $annotations := include "kaos-operator.earlier-annotations" . | fromJson -}}
{{- /* No chart of KAOS has this value. */ -}}
{{- $isCarried := not (hasKey .Values "chartOfValues") -}}
{{- $version := include "kaos-operator.version-of-go" . -}}
{{- if and (not $version) $isCarried }}{{ $version = include "kaos-operator.version-of-values" . }}{{ end -}}
{{- $from := $version | default "kaos-0.8" -}}
{{- if $isCarried }}{{ include "kaos-operator.fill" (dict "into" .Values "from" $defaults) }}{{ end -}}
{{- /* Helm removes a value that is null. A null at the top level means the chart's defaults. */ -}}
{{- range $name, $value := $defaults -}}
{{- if kindIs "invalid" (ternary (get $.Values $name) nil (hasKey $.Values $name)) }}{{ $_ := set $.Values $name $value }}{{ end -}}
{{- end -}}
{{- $recorded := dict "images" (dict) "told" (list) "replaced" "" -}}
{{- include "kaos-operator.own-image" (dict "root" . "into" $recorded "defaults" $defaults "isCarried" $isCarried) -}}
{{- $before := get $annotations "kaos.tools/compatibility" | default (include "kaos-operator.earlier-preset-name" .) -}}
{{- if contains "," $before -}}
{{- fail (printf "ConfigMap kaos-operator-compatibility has several presets: %s. Remove all but one of these files from it, or name the preset in the annotation kaos.tools/compatibility of ConfigMap kaos-operator-config" $before) -}}
{{- end -}}
{{- $before = $before | default $version -}}
{{- $preset := .Values.compatibility | default $before | default $from -}}
{{- $_ := set .Values "compatibility" $preset -}}
{{- include "kaos-operator.carried-images" (dict "root" . "into" $recorded "defaults" $defaults "isCarried" $isCarried "from" $from "preset" $preset "annotations" $annotations) -}}
{{- if and $before (ne $before $preset) -}}
{{- $text := printf "The preset is %s, and was %s. So pods are replaced. To return, set compatibility to %s, or run `helm rollback`." $preset $before $before -}}
{{- $_ := set $recorded "told" (append $recorded.told $text) -}}
{{- end -}}
{{- $_ := set .Values "recorded" $recorded -}}
{{- end -}}
{{- end }}

{{- /* The preset for the version of KAOS's operator that works now, by its ConfigMap. KAOS of January 2026 had no memory service
and no security. Empty if no ConfigMap tells the version. */ -}}
{{- define "kaos-operator.version-of-go" -}}
{{- $earlier := include "kaos-operator.earlier" . | fromJson -}}
{{- if and (hasKey $earlier "DEFAULT_AGENT_IMAGE") (include "kaos-operator.is-of-go" .) (not (include "kaos-operator.is-recorded" .)) -}}
{{- $isNewer := hasKey $earlier "DEFAULT_MEMORY_SERVICE_IMAGE" -}}
{{- range $variable, $_ := $earlier }}{{ if hasPrefix "SECURITY_" $variable }}{{ $isNewer = true }}{{ end }}{{ end -}}
{{- ternary "kaos-0.8" "kaos-0.1" $isNewer -}}
{{- end -}}
{{- end }}

{{- /* The preset for the version of KAOS's chart that these values come from. KAOS of January 2026 had none of these values. A
user can have removed some of them with null. */ -}}
{{- define "kaos-operator.version-of-values" -}}
{{- $isNewer := hasKey .Values "harnessRuntimes" -}}
{{- range list "memoryService" "harnessPi" "mcpPctxCodemode" "mcpFastmcpCodemode" -}}
{{- if hasKey ($.Values.defaultImages | default dict) . }}{{ $isNewer = true }}{{ end -}}
{{- end -}}
{{- ternary "kaos-0.8" "kaos-0.1" $isNewer -}}
{{- end }}

{{- /* Adds the images with which the release took over KAOS's operator, where the values name no image, and finds the images
to record for the preset. */ -}}
{{- define "kaos-operator.carried-images" -}}
{{- $images := .root.Values.defaultImages -}}
{{- $recorded := include "kaos-operator.recorded-images" .annotations | fromJson -}}
{{- if and .isCarried (ne .from .preset) -}}
{{- include "kaos-operator.left-images" (dict "root" .root "into" .into "from" .from "preset" .preset "recorded" $recorded) -}}
{{- end -}}
{{- if and (not $recorded) (or .isCarried (include "kaos-operator.is-of-go" .root)) -}}
{{- $first := dict -}}
{{- range $name, $image := $images }}{{ if $image }}{{ $_ := set $first $name $image }}{{ end }}{{ end -}}
{{- $_ := set $recorded .preset $first -}}
{{- end -}}
{{- $into := .into -}}
{{- $usual := .defaults.defaultImages -}}
{{- range $name, $image := get $recorded .preset | default dict -}}
{{- $given := get $images $name -}}
{{- if has $given (list "" (get $usual $name)) -}}
{{- $_ := set $images $name $image -}}
{{- else if ne $given $image -}}
{{- $text := printf "defaultImages.%s is %s. This release took over KAOS's operator with the image %s." $name $given $image -}}
{{- $_ := set $into "told" (append $into.told $text) -}}
{{- end -}}
{{- end -}}
{{- $_ := set .into "images" $recorded -}}
{{- end }}

{{- /* Removes images of the preset that is left from values of KAOS's chart: those of this chart's preset, and those of the
chart of another KAOS 0.8, which have the same names with other tags. If the chart recorded the images of the takeover, only
these count. An image of another name is the user's, and stays. */ -}}
{{- define "kaos-operator.left-images" -}}
{{- $into := .into -}}
{{- $images := .root.Values.defaultImages -}}
{{- $usual := include "kaos-operator.images-of" (dict "root" .root "preset" .from) | fromJsonArray -}}
{{- $repositories := list -}}
{{- range $usual }}{{ $repositories = append $repositories (include "kaos-operator.repository" .) }}{{ end -}}
{{- $left := get .recorded .from | default dict -}}
{{- $text := printf "defaultImages.%%s stays %%s, with which this release took over KAOS's operator under the preset %s. Set it if the preset %s needs another image." .from .preset -}}
{{- range $name, $image := $images -}}
{{- $isRecorded := and $image (eq $image (get $left $name)) -}}
{{- $isOfKaos := has (include "kaos-operator.repository" ($image | default "")) $repositories -}}
{{- if or (has $image $usual) (and $isOfKaos (or $isRecorded (not $left))) -}}
{{- $_ := set $images $name "" -}}
{{- /* The image for MCPServers without a runtime has no effect. */ -}}
{{- else if and $isRecorded (ne $name "mcpServer") -}}
{{- $_ := set $into "told" (append $into.told (printf $text $name $image)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* The images that the chart recorded for each preset, as JSON. Fails if a user damaged the annotation: without the images,
pods would be replaced. */ -}}
{{- define "kaos-operator.recorded-images" -}}
{{- $name := "kaos.tools/default-images" -}}
{{- $images := get . $name | default "{}" | fromJson -}}
{{- $isDamaged := hasKey $images "Error" -}}
{{- range $images -}}
{{- if not (kindIs "map" .) }}{{ $isDamaged = true }}{{ end -}}
{{- range ternary . dict (kindIs "map" .) }}{{ if not (kindIs "string" .) }}{{ $isDamaged = true }}{{ end }}{{ end -}}
{{- end -}}
{{- if $isDamaged -}}
{{- fail (printf "the annotation %s of ConfigMap kaos-operator-config is damaged: correct it to the form {\"kaos-0.8\": {\"agentRuntime\": \"axsauze/kaos-agent:0.8.2\"}}, or set it to {} to use the images of the preset" $name) -}}
{{- end -}}
{{- toJson $images -}}
{{- end }}

{{- /* The images of a preset, as JSON. Empty if the chart lacks the preset. */ -}}
{{- define "kaos-operator.images-of" -}}
{{- $preset := .root.Files.Get (printf "files/compatibility/%s.yaml" .preset) | fromYaml -}}
{{- $images := list (dig "agent" "image" "" $preset) (dig "memorystore" "image" "" $preset) (dig "modelapi" "proxy" "image" "" $preset) (dig "modelapi" "hosted" "image" "" $preset) -}}
{{- range dig "mcpserver" "runtimes" dict $preset }}{{ $images = append $images .image }}{{ end -}}
{{- $images | toJson -}}
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

{{- /* Whether this chart was installed before. After a rollback to KAOS's chart, this is no longer true. */ -}}
{{- define "kaos-operator.is-recorded" -}}
{{- $annotations := include "kaos-operator.earlier-annotations" . | fromJson -}}
{{- if or (hasKey $annotations "kaos.tools/compatibility") (include "kaos-operator.earlier-preset" . | fromJson) }}true{{ end -}}
{{- end }}

{{- /* Whether KAOS's operator works now: nothing was upgraded yet, its release came back, or the first upgrade failed before it
replaced the Deployment. */ -}}
{{- define "kaos-operator.is-of-go" -}}
{{- $image := include "kaos-operator.earlier-image" . -}}
{{- $replaced := get (include "kaos-operator.earlier-annotations" . | fromJson) "kaos.tools/replaced-image" -}}
{{- $isOfGo := or (include "kaos-operator.of-go" (dict "repository" (include "kaos-operator.repository" $image))) (and $image (eq $image $replaced)) -}}
{{- $earlier := include "kaos-operator.earlier" . | fromJson -}}
{{- if or $isOfGo (and $earlier (not (include "kaos-operator.is-recorded" .))) }}true{{ end -}}
{{- end }}
