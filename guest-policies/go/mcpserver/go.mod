module mcpserver-policy

go 1.24

require (
	github.com/kaos-tools/policy-operator/guest-policies/go v0.0.0
	go.yaml.in/yaml/v3 v3.0.4
)

replace github.com/kaos-tools/policy-operator/guest-policies/go => ../
