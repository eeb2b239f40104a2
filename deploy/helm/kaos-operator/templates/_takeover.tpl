{{- /* The time of the upgrade from KAOS's operator. Proxies of older ModelAPIs run without the variable that LiteLLM 1.104
needs, and keep their pods. */ -}}

{{- /* Returns the time: the value, or the time that an earlier upgrade recorded, or the time that this upgrade finds. Empty
if no ModelAPI is older than this operator, and in `helm template`, which has no cluster. All templates get the same time. */ -}}
{{- define "kaos-operator.takeover-time" -}}
{{- if not (hasKey .Values "takeover") -}}
{{- $earlier := include "kaos-operator.earlier" . | fromJson -}}
{{- $isRecorded := not (empty (include "kaos-operator.earlier-preset" . | fromJson)) -}}
{{- /* KAOS's operator still works if an earlier upgrade failed, or if nothing was upgraded yet. */ -}}
{{- $isOfGo := or (include "kaos-operator.of-go" (dict "repository" (include "kaos-operator.earlier-image" .))) (and $earlier (not $isRecorded)) -}}
{{- $time := .Values.takeoverTime -}}
{{- if and (not $time) $isRecorded (not $isOfGo) -}}
{{- $time = $earlier.TAKEOVER_TIME -}}
{{- else if not $time -}}
{{- $time = include "kaos-operator.found-takeover" (dict "isOfGo" $isOfGo "models" (include "kaos-operator.models" . | fromJsonArray)) -}}
{{- end -}}
{{- $_ := set .Values "takeover" (dict "time" ($time | default "")) -}}
{{- end -}}
{{- .Values.takeover.time -}}
{{- end }}

{{- /* Returns a time that is later than each ModelAPI without the variable. If this operator created proxies before, and only
its release is gone, some proxies have the variable and must keep it. */ -}}
{{- define "kaos-operator.found-takeover" -}}
{{- $layout := "2006-01-02T15:04:05Z" -}}
{{- $oldest := "" -}}
{{- $newest := "" -}}
{{- range .models -}}
{{- if gt .created $newest }}{{ $newest = .created }}{{ end -}}
{{- if and .permitted (or (not $oldest) (lt .created $oldest)) }}{{ $oldest = .created }}{{ end -}}
{{- end -}}
{{- $now := dateInZone $layout now "UTC" -}}
{{- if and $oldest (not .isOfGo) -}}
{{- $oldest -}}
{{- else if and $newest (ge $newest $now) -}}
{{- /* This machine's clock is slow. */ -}}
{{- dateInZone $layout (toDate "2006-01-02T15:04:05Z07:00" $newest | dateModify "1s") "UTC" -}}
{{- else if or $newest .isOfGo -}}
{{- $now -}}
{{- end -}}
{{- end }}

{{- /* The image of the operator that works now, without tag and digest. */ -}}
{{- define "kaos-operator.earlier-image" -}}
{{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace (printf "%s-controller-manager" (include "kaos-operator.fullname" .)) -}}
{{- range dig "spec" "template" "spec" "containers" list ($deployment | default dict) -}}
{{- if eq .name "manager" }}{{ regexReplaceAll "(:[^/@]*)?(@.*)?$" .image "" }}{{ end -}}
{{- end -}}
{{- end }}

{{- /* The ModelAPIs of the cluster, as JSON: when each was created, and whether this operator gave its proxy the variable. Reads
them only if the user installs rights of the operator, because other users possibly have no right to read them. */ -}}
{{- define "kaos-operator.models" -}}
{{- $variable := "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY" -}}
{{- $models := list -}}
{{- if and .Values.rbac.create (.Capabilities.APIVersions.Has "kaos.tools/v1alpha1/ModelAPI") -}}
{{- range $namespace := .Values.watchNamespaces | default (list "") -}}
{{- range (lookup "kaos.tools/v1alpha1" "ModelAPI" $namespace "").items -}}
{{- /* An object without a phase has no pods yet. */ -}}
{{- if dig "status" "phase" "" . -}}
{{- $permitted := false -}}
{{- /* KAOS's operator writes no conditions. */ -}}
{{- if and (dig "status" "conditions" list .) (not (contains $variable (toJson .spec))) -}}
{{- $deployment := lookup "apps/v1" "Deployment" .metadata.namespace (printf "modelapi-%s" .metadata.name) -}}
{{- $permitted = contains $variable (toJson $deployment) -}}
{{- end -}}
{{- $models = append $models (dict "created" .metadata.creationTimestamp "permitted" $permitted) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $models -}}
{{- end }}
