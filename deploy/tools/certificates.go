package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"regexp"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates returns the certificates of public authorities as PEM. The certificates come from Mozilla's list. go.mod
// fixes the version of this list, so the certificates are the same on every machine. Mozilla trusts some authorities
// only with a restriction. A PEM file cannot contain such a restriction, so `certificates` omits these authorities.
func certificates() ([]byte, error) {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// certificatesModule matches the line of a go.mod that requires the certificates, and captures their version.
var certificatesModule = regexp.MustCompile(`(?m)^\tgolang\.org/x/crypto/x509roots/fallback (\S+)$`)

// certificatesVersion returns the version of the certificates that a go.mod fixes.
func certificatesVersion(goMod []byte) (string, error) {
	found := certificatesModule.FindSubmatch(goMod)
	if found == nil {
		return "", fmt.Errorf("deploy/tools/go.mod fixes no version of the certificates")
	}
	return string(found[1]), nil
}
