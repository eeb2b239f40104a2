{{- define "kaos-operator.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kaos-operator.fullname" -}}
{{- $name := include "kaos-operator.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 43 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 43 | trimSuffix "-" }}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 43 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* The KAOS chart's: the selector of a Deployment cannot be changed. */ -}}
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
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "kaos-operator.image" -}}
{{- with .Values.controllerManager.manager.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest }}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The rights of `kaos-operator rbac`, as JSON: {working, operator}. */ -}}
{{- define "kaos-operator.rights" -}}
{{- $scope := ternary "namespaced" "cluster" (not (empty .Values.watchNamespaces)) -}}
{{- $secrets := ternary "-secrets" "" .Values.watchSecrets.enabled -}}
{{- .Files.Get (printf "files/rights/%s%s.yaml" $scope $secrets) | fromYaml | toJson }}
{{- end }}
