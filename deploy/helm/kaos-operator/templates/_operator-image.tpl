{{- /* The image of the operator: this operator's, and never the image of KAOS's operator, which is written in Go. */ -}}

{{- /* Replaces the image of KAOS's operator, if it comes from the values of KAOS's chart, and refuses it otherwise. Knows a copy
of this image in another registry: it runs now, or an earlier upgrade recorded it. If neither tells the copy, its name does.
The tag of KAOS's operator is no tag of this operator. */ -}}
{{- define "kaos-operator.own-image" -}}
{{- $into := .into -}}
{{- $image := .root.Values.controllerManager.manager.image -}}
{{- $repository := $image.repository | default "" -}}
{{- $tag := $image.tag | default "" | toString -}}
{{- $replaced := include "kaos-operator.image-of-go" .root -}}
{{- $goTag := include "kaos-operator.tag" $replaced -}}
{{- $isOfGo := not (empty (include "kaos-operator.of-go" $image)) -}}
{{- $isCopy := and $repository (eq $repository (include "kaos-operator.repository" $replaced)) -}}
{{- $isNamed := and .isCarried (not $replaced) (hasSuffix "/kaos-operator" (printf "/%s" $repository)) -}}
{{- /* No chart of KAOS has a digest. */ -}}
{{- $isOurs := or (include "kaos-operator.of-us" $repository) ($image.digest | default "") -}}
{{- if or $isOfGo (and (not $isOurs) (or $isCopy $isNamed)) -}}
{{- if and (not .isCarried) (not $isOfGo) -}}
{{- include "kaos-operator.refused-image" $repository -}}
{{- else if .isCarried -}}
{{- if and (not $isOfGo) $tag $goTag (ne $tag $goTag) }}{{ include "kaos-operator.refused-image" $repository }}{{ end -}}
{{- if and $isNamed (not $isOfGo) -}}
{{- $text := printf "The chart takes %s for the image of KAOS's operator, by its name, and replaces it. If it is a copy of this operator, name its digest in controllerManager.manager.image.digest." $repository -}}
{{- $_ := set $into "told" (append $into.told $text) -}}
{{- end -}}
{{- $replaced = $replaced | default (printf "%s%s" $repository (ternary (printf ":%s" $tag) "" (ne $tag ""))) -}}
{{- $_ := set .root.Values.controllerManager.manager "image" .defaults.controllerManager.manager.image -}}
{{- end -}}
{{- else if and $tag (eq $tag $goTag) (not $image.digest) (ne $tag .root.Chart.AppVersion) -}}
{{- if not .isCarried -}}
{{- fail (printf "controllerManager.manager.image.tag is %s, the tag of KAOS's Go operator %s: remove it, or with --reset-then-reuse-values set it to \"\"; if your copy of this operator really has this tag, set controllerManager.manager.image.digest" $tag $replaced) -}}
{{- end -}}
{{- $_ := set $image "tag" "" -}}
{{- end -}}
{{- $_ := set $into "replaced" $replaced -}}
{{- end }}

{{- /* The image of KAOS's operator that works now, or that this release replaced. Empty if neither is known. */ -}}
{{- define "kaos-operator.image-of-go" -}}
{{- $image := include "kaos-operator.earlier-image" . -}}
{{- $isOurs := include "kaos-operator.of-us" (include "kaos-operator.repository" $image) -}}
{{- if and $image (not $isOurs) (include "kaos-operator.is-of-go" .) -}}
{{- $image -}}
{{- else -}}
{{- get (include "kaos-operator.earlier-annotations" . | fromJson) "kaos.tools/replaced-image" -}}
{{- end -}}
{{- end }}

{{- /* The repository of an image, without tag and digest. */ -}}
{{- define "kaos-operator.repository" -}}
{{- regexReplaceAll "(:[^/@]*)?(@.*)?$" . "" -}}
{{- end }}

{{- /* The tag of an image. Empty if it has none. */ -}}
{{- define "kaos-operator.tag" -}}
{{- if regexMatch "^[^@]*:[^/@:]+(@.*)?$" . }}{{ regexReplaceAll "^[^@]*:([^/@:]+)(@.*)?$" . "${1}" }}{{ end -}}
{{- end }}

{{- /* Whether a repository has the name of this operator's image. An image of this name is never KAOS's. */ -}}
{{- define "kaos-operator.of-us" -}}
{{- if regexMatch "(^|/)policy-operator$" . }}true{{ end -}}
{{- end }}

{{- /* Returns whether an image is the image of the Go operator. */ -}}
{{- define "kaos-operator.of-go" -}}
{{- if regexMatch "(^|/)axsau(ze|cedo)/kaos-operator$" (.repository | default "") -}}true{{- end -}}
{{- end }}

{{- /* Fails because the values name the image of the Go operator. */ -}}
{{- define "kaos-operator.refused-image" -}}
{{- fail (printf "controllerManager.manager.image.repository is %s, the image of KAOS's Go operator, which comes from the values of the Go operator's chart: remove controllerManager.manager.image, with its tag, from the values, or if Helm reuses values, add --set controllerManager.manager.image.repository=ghcr.io/kaos-tools/policy-operator,controllerManager.manager.image.tag=; if this repository also has a copy of this operator, set controllerManager.manager.image.digest" .) -}}
{{- end }}
