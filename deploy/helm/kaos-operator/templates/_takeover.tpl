{{- /* The time of the upgrade from KAOS's operator. Proxies of older ModelAPIs run without the variable that LiteLLM 1.104
needs, and keep their pods. All times are those of the API server, because clocks of other machines can be wrong. */ -}}

{{- /* Returns the time: the value, or the time that an earlier upgrade recorded, or the time that this upgrade finds. Empty
if the preset's own time is enough, and in `helm template`, which has no cluster. All templates get the same time. */ -}}
{{- define "kaos-operator.takeover-time" -}}
{{- if not (hasKey .Values "takeover") -}}
{{- $takeover := dict "time" (.Values.takeoverTime | default "") "told" "" -}}
{{- $given := include "kaos-operator.extra" (dict "root" . "name" "TAKEOVER_TIME") | default $takeover.time -}}
{{- if $given }}{{ include "kaos-operator.real-time" $given }}{{ end -}}
{{- $settings := (include "kaos-operator.preset" . | fromJson).modelapi.proxyConfig -}}
{{- $isOfGo := not (empty (include "kaos-operator.is-of-go" .)) -}}
{{- $models := include "kaos-operator.models" . | fromJsonArray -}}
{{- $recorded := (include "kaos-operator.earlier" . | fromJson).TAKEOVER_TIME | default "" -}}
{{- $facts := dict "models" $models "since" $settings.withoutMasterKeySince "isOfGo" $isOfGo -}}
{{- if $given -}}
{{- $late := include "kaos-operator.late" (merge (dict "time" $given) $facts) | fromJson -}}
{{- if and $late.time $settings.withoutMasterKey (not $late.contested) -}}
{{- fail (printf "takeoverTime is %s, but KAOS's operator created ModelAPIs later, such as %s: this upgrade would replace the pods of their proxies; remove the value, so that the chart finds the time, or set it to %s" $given $late.name $late.time) -}}
{{- end -}}
{{- else if and (include "kaos-operator.is-recorded" .) (not $isOfGo) -}}
{{- $_ := set $takeover "time" $recorded -}}
{{- $late := include "kaos-operator.late" (merge (dict "time" $recorded) $facts) | fromJson -}}
{{- if $late.contested -}}
{{- fail (printf "TAKEOVER_TIME in ConfigMap kaos-operator-config is %s. KAOS's operator created ModelAPIs later, such as %s, and this operator created ModelAPIs before those, such as %s: each time replaces pods of proxies. Set takeoverTime to %s to keep the pods of those of KAOS's operator, or to %s to keep the pods of the others" (quote $recorded) $late.name $late.contested $late.time ($recorded | default $settings.withoutMasterKeySince)) -}}
{{- else if $late.time -}}
{{- $_ := set $takeover "time" $late.time -}}
{{- $_ := set $takeover "told" (printf "KAOS's operator created ModelAPIs after the recorded takeover, such as %s. So the chart sets TAKEOVER_TIME to %s, and the pods of their proxies stay." $late.name $late.time) -}}
{{- end -}}
{{- else -}}
{{- $_ := set $takeover "time" (include "kaos-operator.found-takeover" $facts) -}}
{{- if and $isOfGo (not .Values.rbac.create) -}}
{{- $_ := set $takeover "time" (dateInZone "2006-01-02T15:04:05Z" now "UTC") -}}
{{- end -}}
{{- end -}}
{{- $_ := set .Values "takeover" $takeover -}}
{{- end -}}
{{- .Values.takeover.time -}}
{{- end }}

{{- /* Returns the earliest time that keeps the pods of all proxies without the variable. Proxies with the variable must keep
it, too, if this operator created them, and only its release is gone. The preset's own time keeps the pods of older
proxies, so these tell nothing: settings of the user decide about them. */ -}}
{{- define "kaos-operator.found-takeover" -}}
{{- $isOfGo := .isOfGo -}}
{{- $oldest := "" -}}
{{- $newest := "" -}}
{{- range .models -}}
{{- if ge .created $.since -}}
{{- if gt .created $newest }}{{ $newest = .created }}{{ end -}}
{{- if and (not $isOfGo) (or (not $oldest) (lt .created $oldest)) (include "kaos-operator.is-permitted" .) }}{{ $oldest = .created }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if $oldest -}}
{{- $oldest -}}
{{- else if $newest -}}
{{- include "kaos-operator.second-after" $newest -}}
{{- end -}}
{{- end }}

{{- /* Returns the newest proxy of KAOS's operator that a time leaves out, as JSON: its name, the time that keeps its pods, and
a proxy with the variable that this later time would take the variable from. Such proxies exist if the pods of a first
upgrade never started, after a rollback, and if watchNamespaces gains a namespace of another release of KAOS. Reads
Deployments only if there is such a proxy. */ -}}
{{- define "kaos-operator.late" -}}
{{- $late := dict "time" "" "name" "" "contested" "" -}}
{{- $from := ternary .since .time (gt .since .time) -}}
{{- $newest := "" -}}
{{- range .models -}}
{{- if and (or $.isOfGo (not .ours)) (ge .created $from) (gt .created $newest) -}}
{{- $newest = .created -}}
{{- $_ := set $late "name" .name -}}
{{- end -}}
{{- end -}}
{{- if $newest -}}
{{- $_ := set $late "time" (include "kaos-operator.second-after" $newest) -}}
{{- range .models -}}
{{- if and (not $.isOfGo) (not $late.contested) (ge .created $from) (le .created $newest) (include "kaos-operator.is-permitted" .) -}}
{{- $_ := set $late "contested" .name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $late -}}
{{- end }}

{{- /* The variable that LiteLLM 1.104 needs without a master key. */ -}}
{{- define "kaos-operator.permission" -}}LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY{{- end }}

{{- /* Whether this operator, and not the user, gave a proxy the variable. Reads the Deployment only if the answer needs it. */ -}}
{{- define "kaos-operator.is-permitted" -}}
{{- if and .ours (not .set) }}{{ include "kaos-operator.has-permission" .name }}{{ end -}}
{{- end }}

{{- define "kaos-operator.second-after" -}}
{{- dateInZone "2006-01-02T15:04:05Z" (toDate "2006-01-02T15:04:05Z07:00" . | dateModify "1s") "UTC" -}}
{{- end }}

{{- /* Fails if a text is no time of a calendar, or if the time is far in the future: until then, new proxies would get no
variable. */ -}}
{{- define "kaos-operator.real-time" -}}
{{- $layout := "2006-01-02T15:04:05Z" -}}
{{- if ne . (dateInZone $layout (toDate "2006-01-02T15:04:05Z07:00" .) "UTC") -}}
{{- fail (printf "takeoverTime is %s, which is no time: use the form 2026-12-01T08:00:00Z" .) -}}
{{- else if gt . (dateInZone $layout (now | dateModify "24h") "UTC") -}}
{{- fail (printf "takeoverTime is %s, which is in the future: until then, LiteLLM 1.104 would not start for new ModelAPIs; set the time of the upgrade" .) -}}
{{- end -}}
{{- end }}

{{- /* Fails if a rollback to KAOS's chart would delete the definitions with all objects. */ -}}
{{- define "kaos-operator.can-return" -}}
{{- if and .Values.crds.install (not .Values.crds.keep) (include "kaos-operator.is-of-go" .) -}}
{{- fail "crds.keep is false, but a rollback to KAOS's chart would then delete the definitions with all Agents, ModelAPIs, MCPServers and MemoryStores: set crds.keep to true until you will not return to KAOS's operator" -}}
{{- end -}}
{{- end }}
