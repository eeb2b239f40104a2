module github.com/kaos-tools/policy-operator/guest-policies/go

go 1.24
