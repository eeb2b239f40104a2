{{- /* Fails if KAOS's chart secured the cluster with a feature that this operator does not support, or if the values turn off
protection that the earlier release had. So an upgrade changes who has access only if security.acceptUnserved names the
change. Values that are incomplete always fail. */ -}}
{{- define "kaos-operator.secured" -}}
{{- include "kaos-operator.uncontradicted" . -}}
{{- include "kaos-operator.complete" . -}}
{{- $accepted := include "kaos-operator.accepted" . | fromJsonArray -}}
{{- $text := "" -}}
{{- $names := list -}}
{{- range include "kaos-operator.secured-found" . | fromJsonArray -}}
{{- if not (has .name $accepted) }}{{ $text = printf "%s  - %s: %s\n" $text .name .text }}{{ $names = append $names .name }}{{ end -}}
{{- end -}}
{{- if $names -}}
{{- $list := concat $accepted $names | uniq | join "," -}}
{{- fail (printf "the upgrade would change the protection that the earlier release had:\n%sNothing was changed. `kaos-operator upgrade-check` lists the objects. Follow docs/guide/upgrade-from-kaos.md, or accept exactly these changes with --set 'security.acceptUnserved={%s}'" $text $list) -}}
{{- end -}}
{{- end }}

{{- /* The changes of protection, as JSON: the name and a text for each. */ -}}
{{- define "kaos-operator.secured-found" -}}
{{- $found := list -}}
{{- range $part := list "unserved" "weaker" "tokens" "gateway" "objects" -}}
{{- $found = concat $found (include (printf "kaos-operator.secured-%s" $part) $ | fromJsonArray) -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* The names in security.acceptUnserved that accept nothing in this upgrade, as JSON. Leaves out the changes that need
objects of the cluster, because the chart reads no objects for changes that the user accepts. */ -}}
{{- define "kaos-operator.stale" -}}
{{- $stale := without (include "kaos-operator.accepted" . | fromJsonArray) "NetworkPolicy" "SecurityPolicy" "gatewayAPI.createGateway" "security.agentAuth.gatewayJwtOptional" -}}
{{- range include "kaos-operator.secured-found" . | fromJsonArray }}{{ $stale = without $stale .name }}{{ end -}}
{{- toJson $stale -}}
{{- end }}

{{- /* The names of the changes that the user accepts, as JSON. */ -}}
{{- define "kaos-operator.accepted" -}}
{{- $accepted := dig "acceptUnserved" list (.Values.security | default dict) -}}
{{- /* An earlier release of this chart had true or false here. */ -}}
{{- if kindIs "bool" $accepted -}}
{{- if $accepted -}}
{{- fail "security.acceptUnserved is true, but it must be a list of the changes that you accept: set it to [], and if the chart then stops, to the list in its message, such as --set 'security.acceptUnserved={security.pdp.enabled,NetworkPolicy}'" -}}
{{- end -}}
{{- $accepted = list -}}
{{- end -}}
{{- $accepted | default list | toJson -}}
{{- end }}

{{- /* Whether the user accepts the change `name`. Then the chart reads no objects for it. */ -}}
{{- define "kaos-operator.accepts" -}}
{{- if has .name (include "kaos-operator.accepted" .root | fromJsonArray) }}true{{ end -}}
{{- end }}

{{- /* The features that this operator lacks, without those that the user accepted in an earlier upgrade. */ -}}
{{- define "kaos-operator.secured-unserved" -}}
{{- $recorded := include "kaos-operator.recorded-unserved" . | fromJsonArray -}}
{{- $found := list -}}
{{- range include "kaos-operator.unserved" . | fromJsonArray -}}
{{- if not (has .record $recorded) }}{{ $found = append $found . }}{{ end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* The features that the user accepted to lose in an earlier upgrade, as JSON: each as NAME=TEXT. */ -}}
{{- define "kaos-operator.recorded-unserved" -}}
{{- $recorded := list -}}
{{- if not (include "kaos-operator.is-of-go" .) -}}
{{- with get (include "kaos-operator.earlier-annotations" . | fromJson) "kaos.tools/accepted" }}{{ $recorded = splitList "," . }}{{ end -}}
{{- end -}}
{{- toJson $recorded -}}
{{- end }}

{{- /* The features to record: those in these values that the user accepts to lose now, or accepted earlier. */ -}}
{{- define "kaos-operator.accepted-unserved" -}}
{{- $recorded := include "kaos-operator.recorded-unserved" . | fromJsonArray -}}
{{- $accepted := include "kaos-operator.accepted" . | fromJsonArray -}}
{{- $names := list -}}
{{- range include "kaos-operator.unserved" . | fromJsonArray -}}
{{- if or (has .name $accepted) (has .record $recorded) }}{{ $names = append $names .record }}{{ end -}}
{{- end -}}
{{- $names | uniq | join "," -}}
{{- end }}

{{- /* Features that this operator lacks, in the values, in extraConfig, or in the earlier release. */ -}}
{{- define "kaos-operator.unserved" -}}
{{- $earlier := include "kaos-operator.earlier" . | fromJson -}}
{{- $found := list -}}
{{- range $row := .Files.Get "files/variables.yaml" | fromYamlArray -}}
{{- if $row.unserved -}}
{{- $name := $row.variable | default "" -}}
{{- $before := get $earlier $name -}}
{{- range $row.impliedBy }}{{ if get $earlier . }}{{ $before = $before | default $row.implied }}{{ end }}{{ end -}}
{{- $own := include "kaos-operator.text" (dict "values" $.Values "path" $row.value) -}}
{{- $by := $row.value -}}
{{- if not $own -}}
{{- range $row.impliedByValues -}}
{{- if include "kaos-operator.text" (dict "values" $.Values "path" .) }}{{ $own = $row.implied }}{{ $by = printf "empty and %s is set, so it" . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $places := list
  (list $by $own)
  (list (printf "extraConfig.%s" $name) (include "kaos-operator.extra" (dict "root" $ "name" $name)))
  (list (printf "%s in ConfigMap kaos-operator-config of the earlier release" $name) $before)
-}}
{{- range $places -}}
{{- if has (last .) $row.unserved -}}
{{- $text := printf "%s is %q, but %s: %s" (first .) (last .) $row.effect $row.do -}}
{{- $found = append $found (dict "name" $row.value "text" $text "record" (printf "%s=%s" $row.value (last .))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* Variables of the earlier release that protect more than those of these values. */ -}}
{{- define "kaos-operator.secured-weaker" -}}
{{- $found := list -}}
{{- $earlier := include "kaos-operator.earlier" . | fromJson -}}
{{- if $earlier -}}
{{- $environment := include "kaos-operator.environment" . | fromJson -}}
{{- $rows := .Files.Get "files/variables.yaml" | fromYamlArray -}}
{{- $usual := ternary "kaos-authz-policy" "" (not (empty (include "kaos-operator.on" $earlier.SECURITY_PDP_ENABLED))) -}}
{{- $cases := include "kaos-operator.cases-of" (dict "variables" $earlier "projection" ($earlier.AUTHZ_POLICY_CONFIGMAP_NAME | default $usual)) | fromJson -}}
{{- $own := printf "kaos-pdp.%s" .Release.Namespace -}}
{{- $switches := list -}}
{{- range $rows }}{{ if eq (.weaker | default "") "off" }}{{ $switches = append $switches .variable }}{{ end }}{{ end -}}
{{- $before := include "kaos-operator.decision-point" (dict "variables" $earlier "home" .Release.Namespace) -}}
{{- $after := include "kaos-operator.decision-point" (dict "variables" $environment "home" .Release.Namespace) -}}
{{- $isMoved := and $environment.SECURITY_AGENT_AUTH_EXT_AUTHZ_URL (ne $before $after) -}}
{{- range $row := $rows -}}
{{- if $row.weaker -}}
{{- $from := get $earlier $row.variable -}}
{{- $to := get $environment $row.variable -}}
{{- $was := get $cases (ternary $row.when "secured" (hasKey $cases ($row.when | default ""))) -}}
{{- $excused := and $row.movable $isMoved -}}
{{- range $row.unless -}}
{{- $text := toString (get $environment .) -}}
{{- if has . $switches -}}
{{- if include "kaos-operator.on" $text }}{{ $excused = true }}{{ end -}}
{{- else if not (has (include "kaos-operator.service" $text) (list "" $own)) -}}
{{- $excused = true -}}
{{- end -}}
{{- end -}}
{{- if and (not $excused) (include "kaos-operator.weakens" (dict "row" $row "from" $from "to" $to "was" $was)) -}}
{{- $text := printf "%s in ConfigMap kaos-operator-config of the earlier release is %q, but these values set it to %q: %s; %s" $row.variable $from $to $row.effect $row.do -}}
{{- $found = append $found (dict "name" $row.value "text" $text) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* SecurityPolicies that refuse requests without a valid token. KAOS's operator has no variable for this, so its
SecurityPolicies tell it. */ -}}
{{- define "kaos-operator.secured-tokens" -}}
{{- $found := list -}}
{{- $name := "security.agentAuth.gatewayJwtOptional" -}}
{{- $text := "%s, but with these values, such requests reach the decision point; set the value to false" -}}
{{- $isOpen := not (include "kaos-operator.accepts" (dict "root" . "name" $name)) -}}
{{- if and $isOpen (include "kaos-operator.protects" .) (dig "agentAuth" "gatewayJwtOptional" true (.Values.security | default dict)) -}}
{{- $closed := list -}}
{{- range include "kaos-operator.security-policies" . | fromJsonArray -}}
{{- $object := . -}}
{{- $ours := hasKey (.metadata.annotations | default dict) "kaos.tools/applied-digest" -}}
{{- if and (not $ours) (dig "spec" "jwt" "providers" list $object) (not (dig "spec" "jwt" "optional" false $object)) -}}
{{- range .metadata.ownerReferences -}}
{{- if hasPrefix "kaos.tools/" .apiVersion }}{{ $closed = append $closed (printf "%s/%s" $object.metadata.namespace $object.metadata.name) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $closed -}}
{{- $routes := printf "the Gateway refuses requests without a valid token at %d routes, such as %s" (len $closed) (first $closed) -}}
{{- $found = append $found (dict "name" $name "text" (printf $text $routes)) -}}
{{- else if not (dig "agent" "security" "jwtOptional" true (include "kaos-operator.earlier-preset" . | fromJson)) -}}
{{- $found = append $found (dict "name" $name "text" (printf $text "the Gateway refuses requests without a valid token")) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* A Gateway of the earlier release with TLS. The Gateway of this chart has only an HTTP listener. Without createGateway,
Helm deletes a Gateway that the earlier release created. Reads the Gateway only if the user installs it or installs the
operator for all namespaces, because other users possibly have no right to read it. */ -}}
{{- define "kaos-operator.secured-gateway" -}}
{{- $found := list -}}
{{- $name := "gatewayAPI.createGateway" -}}
{{- $isRead := or .Values.gatewayAPI.createGateway (and .Values.rbac.create (not .Values.watchNamespaces)) -}}
{{- if include "kaos-operator.accepts" (dict "root" . "name" $name) }}{{ $isRead = false }}{{ end -}}
{{- with ternary .Values.gatewayAPI dict (not (empty $isRead)) -}}
{{- $gateway := include "kaos-operator.gateway" $ | fromJson -}}
{{- $annotations := dig "metadata" "annotations" dict $gateway -}}
{{- $isKept := eq (get $annotations "helm.sh/resource-policy") "keep" -}}
{{- $isOurs := eq (get $annotations "meta.helm.sh/release-name") $.Release.Name -}}
{{- if or .createGateway (and $isOurs (not $isKept)) -}}
{{- range dig "spec" "listeners" list $gateway -}}
{{- if or (has .protocol (list "HTTPS" "TLS")) .tls -}}
{{- $text := printf "the upgrade removes the listener %s (%s) of Gateway %s/%s, so its clients lose their encrypted connection; create a Gateway of another name with this listener, and set gatewayAPI.createGateway=false and gatewayAPI.gatewayName" .name .protocol $gateway.metadata.namespace $gateway.metadata.name -}}
{{- $found = append $found (dict "name" $name "text" $text) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* Objects that protect, and that no operator updates after the upgrade. If the new release protects objects, the operator
takes over these objects. The user needs the right to list them, which the operator does not get without protection. If
the earlier release of this chart protected no objects, this upgrade changes nothing about objects that are left. */ -}}
{{- define "kaos-operator.secured-objects" -}}
{{- $found := list -}}
{{- $earlier := include "kaos-operator.earlier" . | fromJson -}}
{{- $was := (include "kaos-operator.cases-of" (dict "variables" $earlier "projection" "") | fromJson).protected -}}
{{- $isLeft := and (include "kaos-operator.is-recorded" .) (not (include "kaos-operator.is-of-go" .)) (not $was) -}}
{{- if not (or $isLeft (include "kaos-operator.protects" .)) -}}
{{- range $kind, $reader := dict "NetworkPolicy" "network-policies" "SecurityPolicy" "security-policies" -}}
{{- if not (include "kaos-operator.accepts" (dict "root" $ "name" $kind)) -}}
{{- $left := list -}}
{{- range include (printf "kaos-operator.%s" $reader) $ | fromJsonArray -}}
{{- $object := . -}}
{{- /* Skips objects with this annotation: this operator created them and keeps managing them. */ -}}
{{- $ours := hasKey (.metadata.annotations | default dict) "kaos.tools/applied-digest" -}}
{{- range ternary list .metadata.ownerReferences $ours -}}
{{- if hasPrefix "kaos.tools/" .apiVersion }}{{ $left = append $left (printf "%s/%s" $object.metadata.namespace $object.metadata.name) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with $left -}}
{{- $found = append $found (dict "name" $kind "text" (printf "no operator would update the %d objects of kind %s that belong to KAOS objects, such as %s" (len .) $kind (first .))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}
