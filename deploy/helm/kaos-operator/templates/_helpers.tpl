{{- define "kaos-operator.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* This name is also the name of a Service. Helm accepts release names that a Service cannot have. Without this
check, an installation would fail in the middle. */ -}}
{{- define "kaos-operator.fullname" -}}
{{- $name := include "kaos-operator.name" . -}}
{{- $full := .Release.Name -}}
{{- if .Values.fullnameOverride -}}
{{- $full = .Values.fullnameOverride -}}
{{- else if not (contains $name .Release.Name) -}}
{{- $full = printf "%s-%s" .Release.Name $name -}}
{{- end -}}
{{- $full = $full | trunc 43 | trimSuffix "-" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $full) -}}
{{- fail (printf "%s is not a valid beginning for names of objects, because it contains a dot or does not begin with a lower-case letter: choose another name for the release, or set fullnameOverride" $full) -}}
{{- end -}}
{{- $full }}
{{- end }}

{{- /* The same labels as in KAOS's chart, because the selector of a Deployment is immutable. */ -}}
{{- define "kaos-operator.selector" -}}
app.kubernetes.io/name: {{ include "kaos-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kaos-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "kaos-operator.selector" . }}
{{- end }}

{{- define "kaos-operator.podLabels" -}}
app.kubernetes.io/managed-by: kustomize
control-plane: controller-manager
{{ include "kaos-operator.selector" . }}
{{- end }}

{{- define "kaos-operator.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "kaos-operator.fullname" .) }}
{{- else -}}
{{- .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* The chart of a release names its image with the digest in an annotation. The chart uses this image unless the values
name another image or a tag. */ -}}
{{- define "kaos-operator.image" -}}
{{- $released := index ($.Chart.Annotations | default dict) "kaos.tools/image" | default "" -}}
{{- with .Values.controllerManager.manager.image -}}
{{- if include "kaos-operator.of-go" . -}}
{{- include "kaos-operator.refused-image" .repository -}}
{{- end -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest }}
{{- else if and (not .tag) (hasPrefix (printf "%s@" .repository) $released) -}}
{{- $released }}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Refuses a variable if the chart has a value for it. If the chart also sets the flag, the variable would have no effect.
If the chart does not set the flag, the variable could make the operator use rights that it does not have. */ -}}
{{- define "kaos-operator.free" -}}
{{- range .root.Files.Get "files/variables.yaml" | fromYamlArray -}}
{{- if and .instead (eq .variable $.name) -}}
{{- fail (printf "%s is not allowed, remove it: %s" $.place .instead) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* The identity and the placement of pods, for the operator and for the release hook. */ -}}
{{- define "kaos-operator.pod" -}}
{{- $pod := dict "serviceAccountName" (include "kaos-operator.account" .) "securityContext" .Values.controllerManager.podSecurityContext -}}
{{- range $field, $value := pick .Values.controllerManager "imagePullSecrets" "priorityClassName" "nodeSelector" "tolerations" "affinity" -}}
{{- if $value -}}{{- $_ := set $pod $field $value -}}{{- end -}}
{{- end -}}
{{- toYaml $pod }}
{{- end }}

{{- /* The image and the environment of the containers of the operator and of the release hook. */ -}}
{{- define "kaos-operator.container" -}}
{{- with .Values.controllerManager.manager -}}
image: {{ include "kaos-operator.image" $ }}
imagePullPolicy: {{ .imagePullPolicy }}
env:
# The value comes from the pod and not from the ConfigMap, so that kustomize can change the namespace.
- name: SYSTEM_NAMESPACE
  valueFrom:
    fieldRef: {fieldPath: metadata.namespace}
# The memory limit of the container or, if it has none, of the pod. The operator cannot read the pod's limit itself.
- name: OPERATOR_MEMORY_LIMIT
  valueFrom:
    resourceFieldRef: {resource: limits.memory}
- name: KUBERNETES_CLUSTER_DOMAIN
  value: {{ $.Values.kubernetesClusterDomain | quote }}
{{- range .env }}
{{- include "kaos-operator.free" (dict "root" $ "name" .name "place" (printf "%s in controllerManager.manager.env" .name)) }}
{{- end }}
{{- with .env }}
{{ toYaml . }}
{{- end }}
resources:
  {{- toYaml .resources | nindent 2 }}
securityContext:
  {{- toYaml .containerSecurityContext | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Flags of `run` from the values `args` and `extraArgs`. The chart adds further flags. Refuses a flag that wins over the
values of security. */ -}}
{{- define "kaos-operator.flags" -}}
{{- $rows := .Files.Get "files/variables.yaml" | fromYamlArray -}}
{{- with .Values.controllerManager.manager -}}
{{- range $place, $flags := dict "args" .args "extraArgs" .extraArgs -}}
{{- range $flag := $flags -}}
{{- range $row := $rows -}}
{{- if and $row.flag (eq $row.flag (toString $flag | splitList "=" | first)) -}}
{{- fail (printf "%s in controllerManager.manager.%s is not allowed, because a flag must not undo protection: remove it, and set %s instead" $row.flag $place ($row.value | default "security")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- concat (.args | default list) (.extraArgs | default list) | toJson }}
{{- end }}
{{- end }}

{{- /* Returns whether the operator uses the Lease. If the flag is repeated, the last value wins. */ -}}
{{- define "kaos-operator.elects" -}}
{{- $elects := "" -}}
{{- range include "kaos-operator.flags" . | fromJsonArray -}}
{{- if has . (list "--leader-elect" "--leader-elect=true") -}}{{- $elects = "true" -}}
{{- else if hasPrefix "--leader-elect=" . -}}{{- $elects = "" -}}
{{- end -}}
{{- end -}}
{{- $elects }}
{{- end }}

{{- /* The rights of `kaos-operator rbac`, as JSON: {working, operator}. Without protection, the operator runs with --without,
and needs no rights for the objects that protect. Without a projection, it keeps no objects of a decision point. */ -}}
{{- define "kaos-operator.rights" -}}
{{- $scope := ternary "namespaced" "cluster" (not (empty .Values.watchNamespaces)) -}}
{{- $secrets := ternary "-secrets" "" .Values.watchSecrets.enabled -}}
{{- $rights := .Files.Get (printf "files/rights/%s%s.yaml" $scope $secrets) | fromYaml -}}
{{- if not (include "kaos-operator.protects" .) -}}
{{- $working := list -}}
{{- range $rights.working -}}
{{- if not (has (first .apiGroups) (list "gateway.envoyproxy.io" "networking.k8s.io")) }}{{ $working = append $working . }}{{ end -}}
{{- end -}}
{{- $_ := set $rights "working" $working -}}
{{- end -}}
{{- if not (include "kaos-operator.projection" .) -}}
{{- $own := list -}}
{{- range $rights.operator -}}
{{- $kept := without .resources "authorizationpolicies" "referencegrants" -}}
{{- if $kept }}{{ $own = append $own (set . "resources" $kept) }}{{ end -}}
{{- end -}}
{{- $_ := set $rights "operator" $own -}}
{{- end -}}
{{- toJson $rights }}
{{- end }}
