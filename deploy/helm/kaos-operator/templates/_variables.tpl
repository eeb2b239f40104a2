{{- /* The table files/variables.yaml: the operator's environment, from the values. */ -}}

{{- /* The value at a path with dots, as {it: value}. The value is "" if a part of the path is missing or null. */ -}}
{{- define "kaos-operator.at" -}}
{{- $value := .values -}}
{{- range splitList "." .path -}}
{{- $value = ternary (get (ternary $value dict (kindIs "map" $value)) .) "" (kindIs "map" $value) -}}
{{- end -}}
{{- toJson (dict "it" $value) -}}
{{- end }}

{{- /* A value as the text of a variable. A list becomes a text with commas. 0 and null become an empty text. */ -}}
{{- define "kaos-operator.text" -}}
{{- $value := (include "kaos-operator.at" . | fromJson).it -}}
{{- if kindIs "slice" $value -}}
{{- join "," $value -}}
{{- else if kindIs "float64" $value -}}
{{- with int64 $value }}{{ . }}{{ end -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $value -}}
{{- end -}}
{{- end }}

{{- /* Whether the text of a variable turns something on. */ -}}
{{- define "kaos-operator.on" -}}
{{- if has (lower (toString .)) (list "true" "1") -}}true{{- end -}}
{{- end }}

{{- /* An entry of extraConfig as text. Empty if the entry is missing or null. */ -}}
{{- define "kaos-operator.extra" -}}
{{- $value := get (.root.Values.extraConfig | default dict) .name -}}
{{- if kindIs "string" $value }}{{ $value }}{{ else if not (kindIs "invalid" $value) }}{{ toJson $value }}{{ end -}}
{{- end }}

{{- /* The variables that come from values, as JSON. Without variables whose text is empty. */ -}}
{{- define "kaos-operator.variables" -}}
{{- $cases := include "kaos-operator.cases" . | fromJson -}}
{{- $variables := dict -}}
{{- range $row := .Files.Get "files/variables.yaml" | fromYamlArray -}}
{{- if and $row.variable $row.value (not $row.unserved) -}}
{{- $text := include "kaos-operator.text" (dict "values" $.Values "path" $row.value) -}}
{{- if $row.negated }}{{ $text = ternary "true" "" (eq $text "false") }}{{ end -}}
{{- if eq $row.variable "DEFAULT_LOG_LEVEL" -}}
{{- $text = upper $text -}}
{{- else if eq $row.variable "GATEWAY_NAMESPACE" -}}
{{- $text = $text | default $.Release.Namespace -}}
{{- else if and $cases.routed (eq $row.variable "SECURITY_GATEWAY_HOST") -}}
{{- $text = include "kaos-operator.gateway-host" $ -}}
{{- else if eq $row.variable "AUTHZ_POLICY_CONFIGMAP_NAME" -}}
{{- $text = include "kaos-operator.projection" $ -}}
{{- else if eq $row.variable "AUTHZ_PROJECTION_NAMESPACES" -}}
{{- $text = nospace $text | default (join "," $.Values.watchNamespaces) -}}
{{- else if eq $row.variable "AUTHZ_POLICY_CONFIGMAP_NAMESPACE" -}}
{{- $text = $text | default $.Release.Namespace -}}
{{- else if eq $row.variable "TAKEOVER_TIME" -}}
{{- $text = include "kaos-operator.takeover-time" $ -}}
{{- end -}}
{{- $written := true -}}
{{- if hasKey $cases ($row.when | default "") -}}
{{- $written = and (get $cases $row.when) (ne $text "false") -}}
{{- else if $row.when -}}
{{- $written = include "kaos-operator.on" (include "kaos-operator.text" (dict "values" $.Values "path" $row.when)) -}}
{{- end -}}
{{- if and $written $text }}{{ $_ := set $variables $row.variable $text }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $variables -}}
{{- end }}

{{- /* The variables of the ConfigMap: those of values, and the entries of extraConfig, which win. */ -}}
{{- define "kaos-operator.environment" -}}
{{- $variables := include "kaos-operator.variables" . | fromJson -}}
{{- range $name, $value := .Values.extraConfig | default dict -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $variables $name (include "kaos-operator.extra" (dict "root" $ "name" $name)) -}}
{{- end -}}
{{- end -}}
{{- toJson $variables -}}
{{- end }}

{{- /* The cases of the table, as JSON: whether each holds with these values and with extraConfig. */ -}}
{{- define "kaos-operator.cases" -}}
{{- $given := dict -}}
{{- range $row := .Files.Get "files/variables.yaml" | fromYamlArray -}}
{{- if and $row.variable $row.value -}}
{{- $extra := include "kaos-operator.extra" (dict "root" $ "name" $row.variable) -}}
{{- $_ := set $given $row.variable ($extra | default (include "kaos-operator.text" (dict "values" $.Values "path" $row.value))) -}}
{{- end -}}
{{- end -}}
{{- $cases := include "kaos-operator.cases-of" (dict "variables" $given "projection" (include "kaos-operator.projection" .)) | fromJson -}}
{{- $preset := .Files.Get (printf "files/compatibility/%s.yaml" .Values.compatibility) | fromYaml -}}
{{- $_ := set $cases "anonymous" (empty (dig "agent" "serviceAccount" "audience" "" $preset)) -}}
{{- toJson $cases -}}
{{- end }}

{{- /* The cases that hold with these variables, as JSON. `projection` is the ConfigMap that the operator writes. */ -}}
{{- define "kaos-operator.cases-of" -}}
{{- $given := .variables -}}
{{- $decided := or (include "kaos-operator.on" $given.SECURITY_PDP_ENABLED) $given.SECURITY_AGENT_AUTH_EXT_AUTHZ_URL -}}
{{- $strict := include "kaos-operator.on" $given.SECURITY_STRICT_GATEWAY_API_ENABLED -}}
{{- $routed := or $strict (include "kaos-operator.on" $given.SECURITY_GATEWAY_ROUTING_ENABLED) -}}
{{- $cases := dict
  "decided" $decided
  "protected" (or $decided $strict)
  "routed" $routed
  "secured" (or $decided $routed)
  "projected" (and (or $decided $routed) .projection)
  "users" $given.SECURITY_USER_AUTH_ISSUER
  "automated" (ne (toString $given.SECURITY_AUTHORIZATION_POLICY_DATA_SOURCE) "manual")
-}}
{{- range $name, $holds := $cases }}{{ $_ := set $cases $name (not (empty $holds)) }}{{ end -}}
{{- toJson $cases -}}
{{- end }}

{{- /* The Service in an address such as pdp.authz.svc:9191, as name.namespace. Another text stays as it is. */ -}}
{{- define "kaos-operator.service" -}}
{{- regexReplaceAll "^([^/?#]*://)?([^/?#@]*@)?([^./:?#@]+)[.]([^./:?#@]+)([.]svc([.][^:/?#]*)?)?:[0-9]+([/?#].*)?$" (lower .) "${3}.${4}" -}}
{{- end }}

{{- /* The decision point that these variables name: its Service, and whether the release has it. Empty without one. */ -}}
{{- define "kaos-operator.decision-point" -}}
{{- $isServed := include "kaos-operator.on" .variables.SECURITY_PDP_ENABLED -}}
{{- $own := printf "kaos-pdp.%s" .home -}}
{{- $service := include "kaos-operator.service" (toString (.variables.SECURITY_AGENT_AUTH_EXT_AUTHZ_URL | default (ternary (printf "%s:9191" $own) "" (not (empty $isServed))))) -}}
{{- $service }}{{ if and $isServed (eq $service $own) }} of the release{{ end -}}
{{- end }}

{{- /* A list of names in one order, so that two lists with the same names are equal. */ -}}
{{- define "kaos-operator.sorted" -}}
{{- splitList "," (nospace .) | sortAlpha | uniq | join "," -}}
{{- end }}

{{- /* Whether the change of a variable from one text to another weakens protection. `was` tells whether objects were
protected before. */ -}}
{{- define "kaos-operator.weakens" -}}
{{- $usual := .row.usual | default "" -}}
{{- $from := toString .from -}}
{{- $to := toString .to -}}
{{- $is := false -}}
{{- if eq .row.weaker "off" -}}
{{- $is = and (include "kaos-operator.on" $from) (not (include "kaos-operator.on" $to)) -}}
{{- else if eq .row.weaker "on" -}}
{{- $is = and .was (not (include "kaos-operator.on" $from)) (include "kaos-operator.on" $to) -}}
{{- else if eq .row.weaker "empty" -}}
{{- $is = and .was (not (has $from (list "" $usual))) (has $to (list "" $usual)) -}}
{{- else if eq .row.weaker "other" -}}
{{- $before := $from | default $usual -}}
{{- $is = and .was $before (ne (include "kaos-operator.sorted" $before) (include "kaos-operator.sorted" ($to | default $usual))) -}}
{{- end -}}
{{- if $is }}true{{ end -}}
{{- end }}

{{- /* Whether the text of an entry undoes the text `own` of a variable, or sets a variable that only a value can set
completely. */ -}}
{{- define "kaos-operator.contradicts" -}}
{{- $usual := .row.usual | default "" -}}
{{- $undoes := include "kaos-operator.weakens" (dict "row" .row "from" .own "to" .text "was" true) -}}
{{- $differs := ne (include "kaos-operator.sorted" (.own | default $usual)) (include "kaos-operator.sorted" (.text | default $usual)) -}}
{{- if and $differs (or .own $undoes (eq (.row.when | default "") "projected")) }}true{{ end -}}
{{- end }}

{{- /* Refuses an entry of extraConfig or a variable of the operator's pods that undoes a value of security, or that only a
value can set completely. A variable of the pods wins over the ConfigMap. */ -}}
{{- define "kaos-operator.uncontradicted" -}}
{{- $variables := include "kaos-operator.variables" . | fromJson -}}
{{- $environment := include "kaos-operator.environment" . | fromJson -}}
{{- range $row := .Files.Get "files/variables.yaml" | fromYamlArray -}}
{{- if and $row.value $row.weaker -}}
{{- $entry := get ($.Values.extraConfig | default dict) $row.variable -}}
{{- if and (hasKey ($.Values.extraConfig | default dict) $row.variable) (not (kindIs "invalid" $entry)) -}}
{{- $own := get $variables $row.variable -}}
{{- $text := include "kaos-operator.extra" (dict "root" $ "name" $row.variable) -}}
{{- if include "kaos-operator.contradicts" (dict "row" $row "own" $own "text" $text) -}}
{{- fail (printf "extraConfig.%s is %q, but the value %s sets this variable to %q: an entry of extraConfig must not undo protection; remove the entry, and set the value instead" $row.variable $text $row.value $own) -}}
{{- end -}}
{{- end -}}
{{- range dig "manager" "env" list ($.Values.controllerManager | default dict) -}}
{{- if eq .name $row.variable -}}
{{- $own := get $environment $row.variable -}}
{{- $text := toString (.value | default "") -}}
{{- if .valueFrom -}}
{{- fail (printf "%s in controllerManager.manager.env has valueFrom, so the chart cannot compare it with the value %s: a variable of the pods must not undo protection; remove the variable, and set the value instead" $row.variable $row.value) -}}
{{- else if include "kaos-operator.contradicts" (dict "row" $row "own" $own "text" $text) -}}
{{- fail (printf "%s in controllerManager.manager.env is %q, but the value %s sets this variable to %q: a variable of the pods must not undo protection; remove the variable, and set the value instead" $row.variable $text $row.value $own) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
