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

{{- /* Completes the values before a template reads them. `helm upgrade --reuse-values` keeps the values of the earlier chart,
also in later upgrades, so values that only this chart has are missing: adds them. Then chooses the preset and the images.
All templates get the same values. */ -}}
{{- define "kaos-operator.carried" -}}
{{- if not (hasKey .Values "recorded") -}}
{{- $defaults := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- /* No chart of KAOS has this value. */ -}}
{{- $isCarried := not (hasKey .Values "chartOfValues") -}}
{{- /* KAOS of January 2026 had no memory service. */ -}}
{{- $from := ternary "kaos-0.8" "kaos-0.1" (or (not $isCarried) (hasKey (.Values.defaultImages | default dict) "memoryService")) -}}
{{- if $isCarried }}{{ include "kaos-operator.fill" (dict "into" .Values "from" $defaults) }}{{ end -}}
{{- /* Helm removes a value that is null. A null at the top level means the chart's defaults. */ -}}
{{- range $name, $value := $defaults -}}
{{- if kindIs "invalid" (ternary (get $.Values $name) nil (hasKey $.Values $name)) }}{{ $_ := set $.Values $name $value }}{{ end -}}
{{- end -}}
{{- include "kaos-operator.own-image" (dict "root" . "defaults" $defaults "isCarried" $isCarried) -}}
{{- $annotations := include "kaos-operator.earlier-annotations" . | fromJson -}}
{{- $before := get $annotations "kaos.tools/compatibility" | default (include "kaos-operator.earlier-preset-name" .) -}}
{{- if and (not $before) $isCarried }}{{ $before = $from }}{{ end -}}
{{- $preset := .Values.compatibility | default $before | default $from -}}
{{- $_ := set .Values "compatibility" $preset -}}
{{- $recorded := dict "images" (dict) "told" (list) -}}
{{- include "kaos-operator.carried-images" (dict "root" . "into" $recorded "defaults" $defaults "isCarried" $isCarried "from" $from "preset" $preset "annotations" $annotations) -}}
{{- if and $before (ne $before $preset) -}}
{{- $text := printf "The preset is %s, and was %s. So pods are replaced. To return, set compatibility to %s, or run `helm rollback`." $preset $before $before -}}
{{- $_ := set $recorded "told" (append $recorded.told $text) -}}
{{- end -}}
{{- $_ := set .Values "recorded" $recorded -}}
{{- end -}}
{{- end }}

{{- /* Replaces the image of KAOS's operator, if it comes from the values of the earlier chart. Also knows a copy of this image in
another registry: by its name, or because it runs now, and no release of this chart was installed. An image with the name
of this operator's image is never KAOS's. */ -}}
{{- define "kaos-operator.own-image" -}}
{{- $image := .root.Values.controllerManager.manager.image -}}
{{- $repository := $image.repository | default "" -}}
{{- $isOurs := eq (base $repository) (base .defaults.controllerManager.manager.image.repository) -}}
{{- $runs := and $repository (not $isOurs) (include "kaos-operator.is-of-go" .root) (eq $repository (include "kaos-operator.earlier-image" .root)) -}}
{{- if not .isCarried -}}
{{- if $runs }}{{ include "kaos-operator.refused-image" $repository }}{{ end -}}
{{- else if or $runs (include "kaos-operator.of-go" $image) (hasSuffix "/kaos-operator" (printf "/%s" $repository)) -}}
{{- $_ := set .root.Values.controllerManager.manager "image" .defaults.controllerManager.manager.image -}}
{{- end -}}
{{- end }}

{{- /* Adds the images with which the release took over KAOS's operator, where the values name no image, and finds the images
to record for the preset. Values of a chart of another preset have the images of that preset: these do not count. */ -}}
{{- define "kaos-operator.carried-images" -}}
{{- $name := "kaos.tools/default-images" -}}
{{- $images := .root.Values.defaultImages -}}
{{- if and .isCarried (ne .from .preset) -}}
{{- $usual := include "kaos-operator.images-of" (dict "root" .root "preset" .from) | fromJsonArray -}}
{{- range $name, $image := $images }}{{ if has $image $usual }}{{ $_ := set $images $name "" }}{{ end }}{{ end -}}
{{- end -}}
{{- $recorded := get .annotations $name | default "{}" | fromJson -}}
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

{{- /* Returns whether an image is the image of the Go operator. */ -}}
{{- define "kaos-operator.of-go" -}}
{{- if regexMatch "(^|/)axsau(ze|cedo)/kaos-operator$" (.repository | default "") -}}true{{- end -}}
{{- end }}

{{- /* Fails because the values name the image of the Go operator. */ -}}
{{- define "kaos-operator.refused-image" -}}
{{- fail (printf "controllerManager.manager.image.repository is %s, the image of KAOS's Go operator, which comes from the values of the Go operator's chart: remove controllerManager.manager.image, with its tag, from the values" .) -}}
{{- end }}

{{- /* Whether this chart was installed before. After a rollback to KAOS's chart, this is no longer true. */ -}}
{{- define "kaos-operator.is-recorded" -}}
{{- $annotations := include "kaos-operator.earlier-annotations" . | fromJson -}}
{{- if or (hasKey $annotations "kaos.tools/compatibility") (include "kaos-operator.earlier-preset" . | fromJson) }}true{{ end -}}
{{- end }}

{{- /* Whether KAOS's operator works now: nothing was upgraded yet, or its release came back. */ -}}
{{- define "kaos-operator.is-of-go" -}}
{{- $isOfGo := include "kaos-operator.of-go" (dict "repository" (include "kaos-operator.earlier-image" .)) -}}
{{- $earlier := include "kaos-operator.earlier" . | fromJson -}}
{{- if or $isOfGo (and $earlier (not (include "kaos-operator.is-recorded" .))) }}true{{ end -}}
{{- end }}
