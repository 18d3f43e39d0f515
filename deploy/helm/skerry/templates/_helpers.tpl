{{- define "skerry.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "skerry.hubImage" -}}
{{ printf "%s:%s" .Values.image.hub (include "skerry.tag" .) }}
{{- end }}

{{- define "skerry.syncerImage" -}}
{{ printf "%s:%s" .Values.image.syncer (include "skerry.tag" .) }}
{{- end }}

{{- define "skerry.hubHostname" -}}
{{ .Values.hub.hostname | default (printf "skerry-hub.%s.svc" .Release.Namespace) }}
{{- end }}

{{- define "skerry.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "skerry.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
