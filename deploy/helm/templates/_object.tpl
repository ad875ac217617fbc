{{/* Prints every object of one manifest of the install folder in the release's namespace, and with what the
     values say of its container. Arguments: root, file, values (of the workload; may be empty). */}}
{{- define "flyball.objects" -}}
{{- $root := .root -}}
{{- $values := .values | default dict -}}
{{- range $text := splitList "\n---\n" ($root.Files.Get .file) }}
{{- $object := fromYaml $text }}
{{- include "flyball.place" (dict "object" $object "ns" $root.Release.Namespace) }}
{{- if has $object.kind (list "Deployment" "DaemonSet") }}
{{- include "flyball.workload" (dict "object" $object "root" $root "values" $values) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}

{{/* Sets namespaces where the manifest has one. */}}
{{- define "flyball.place" -}}
{{- $ns := .ns -}}
{{- if hasKey .object.metadata "namespace" }}{{ $_ := set .object.metadata "namespace" $ns }}{{ end -}}
{{- range .object.subjects }}{{ $_ := set . "namespace" $ns }}{{ end -}}
{{- end }}

{{/* Sets image, flags and placement. */}}
{{- define "flyball.workload" -}}
{{- $values := .values -}}
{{- $image := .root.Values.image -}}
{{- $pod := .object.spec.template.spec -}}
{{- $container := first $pod.containers -}}
{{- if hasKey $values "replicas" }}{{ $_ := set .object.spec "replicas" (int $values.replicas) }}{{ end -}}
{{- $_ := set $container "image" (printf "%s:%s" $image.repository ($image.tag | default .root.Chart.AppVersion)) -}}
{{- $_ := set $container "imagePullPolicy" $image.pullPolicy -}}
{{- $_ := set $container "args" (concat $container.args $values.args) -}}
{{- $_ := set $container "env" (concat $container.env $values.env) -}}
{{- with $values.resources }}{{ $_ := set $container "resources" . }}{{ end -}}
{{- with .root.Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- range $key := list "nodeSelector" "affinity" "tolerations" }}
{{- with index $values $key }}{{ $_ := set $pod $key . }}{{ end -}}
{{- end -}}
{{- end }}
