{{/* Prints every object of one manifest, with the namespace of the release and the container settings from the
     values, unless it belongs to a controller that is left out. Arguments: root, file, values (of the workload; may be
     empty). */}}
{{- define "flyball.objects" -}}
{{- $root := .root -}}
{{- $values := .values | default dict -}}
{{- $name := include "flyball.name" $root -}}
{{- range $text := splitList "\n---\n" ($root.Files.Get .file) }}
{{- if ne (include "flyball.leftOut" (dict "root" $root "object" (fromYaml $text))) "true" }}
{{- $agent := $root.Values.agent.namespace }}
{{- $account := printf "serviceaccount:%s:%s-agent" $agent $name }}
{{- $named := regexReplaceAll "([nN]ame: )flyball-" $text (printf "${1}%s-" $name) }}
{{- $object := fromYaml ($named | replace "serviceaccount:flyball-agent:flyball-agent" $account) }}
{{- include "flyball.place" (dict "object" $object "ns" $root.Release.Namespace "agent" $agent) }}
{{- if has $object.kind (list "Deployment" "DaemonSet") }}
{{- include "flyball.workload" (dict "object" $object "root" $root "values" $values) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}

{{/* What the names of all objects begin with. */}}
{{- define "flyball.name" -}}
{{- .Values.fullnameOverride | default .Values.nameOverride | default "flyball" -}}
{{- end }}

{{/* Is a controller in the list of values.controllers? From left to right, as the operator reads it. Arguments: root, name. */}}
{{- define "flyball.runs" -}}
{{- $name := .name -}}
{{- $runs := false -}}
{{- range $word := splitList "," .root.Values.controllers -}}
{{- $word = trim $word -}}
{{- if has $word (list "*" $name) }}{{ $runs = true }}{{ else if has $word (list "-*" (printf "-%s" $name)) }}{{ $runs = false }}{{ end -}}
{{- end -}}
{{- $runs -}}
{{- end }}

{{/* "true" if the object belongs to a controller that does not run, or to the agent if there is none: names begin with that
     of their controller. */}}
{{- define "flyball.leftOut" -}}
{{- $root := .root -}}
{{- $name := .object.metadata.name -}}
{{- $market := include "flyball.runs" (dict "root" $root "name" "market") -}}
{{- $agent := and $root.Values.agent.enabled (eq $market "true") -}}
{{- $out := and (not $agent) (or (hasPrefix "flyball-agent" $name) (hasPrefix "flyball-market-agent" $name)) -}}
{{- range $prefix, $controller := dict "flyball-schedule" "schedule" "flyball-saturation" "saturation" "flyball-market" "market" "flyball-runtimeconfig" "runtimeconfig" "aim-engine-" "runtimeconfig" -}}
{{- if and (hasPrefix $prefix $name) (ne (include "flyball.runs" (dict "root" $root "name" $controller)) "true") }}{{ $out = true }}{{ end -}}
{{- end -}}
{{- $out -}}
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
{{- $operator := eq (index .object.metadata.labels "app.kubernetes.io/component") "operator" -}}
{{- if and $operator (ne .root.Values.controllers "*") }}{{ $_ := set $container "args" (append $container.args (printf "--controllers=%s" .root.Values.controllers)) }}{{ end -}}
{{- if and .root.Values.calendars $operator }}{{ $_ := set $container "args" (append $container.args "--smarthpa-calendars") }}{{ end -}}
{{- $_ := set $container "env" (concat $container.env $values.env) -}}
{{- with $values.resources }}{{ $_ := set $container "resources" . }}{{ end -}}
{{- with .root.Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- range $key := list "nodeSelector" "affinity" "tolerations" "priorityClassName" "topologySpreadConstraints" }}
{{- with index $values $key }}{{ $_ := set $pod $key . }}{{ end -}}
{{- end -}}
{{- $meta := .object.spec.template.metadata -}}
{{- with $values.podAnnotations }}{{ $_ := set $meta "annotations" (merge (dict) . ($meta.annotations | default dict)) }}{{ end -}}
{{- with $values.podLabels }}{{ $_ := set $meta "labels" (merge (dict) $meta.labels .) }}{{ end -}}
{{- end }}
