{{/* Prints every object of one manifest, with the namespace of the release and the container settings from the
     values. Arguments: root, file, values (of the workload; may be empty). */}}
{{- define "flyball.objects" -}}
{{- $root := .root -}}
{{- $values := .values | default dict -}}
{{- range $text := splitList "\n---\n" ($root.Files.Get .file) }}
{{- $agent := $root.Values.agent.namespace }}
{{- $object := fromYaml ($text | replace "serviceaccount:flyball-agent:" (printf "serviceaccount:%s:" $agent)) }}
{{- include "flyball.place" (dict "object" $object "ns" $root.Release.Namespace "agent" $agent) }}
{{- if has $object.kind (list "Deployment" "DaemonSet") }}
{{- include "flyball.workload" (dict "object" $object "root" $root "values" $values) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}

{{/* Replaces namespaces: the agent's with agent.namespace, all others with the namespace of the release. */}}
{{- define "flyball.place" -}}
{{- $ns := .ns -}}
{{- $agent := .agent -}}
{{- $meta := .object.metadata -}}
{{- if eq .object.kind "Namespace" }}{{ $_ := set $meta "name" $agent }}{{ end -}}
{{- if hasKey $meta "namespace" }}{{ $_ := set $meta "namespace" (ternary $agent $ns (eq $meta.namespace "flyball-agent")) }}{{ end -}}
{{- range .object.subjects }}{{ $_ := set . "namespace" (ternary $agent $ns (eq .namespace "flyball-agent")) }}{{ end -}}
{{- with (((.object.spec).matchConstraints).namespaceSelector).matchLabels }}{{ $_ := set . "kubernetes.io/metadata.name" $agent }}{{ end -}}
{{- end }}

{{/* Sets replicas, image, flags, environment, resources and placement of a workload. */}}
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
