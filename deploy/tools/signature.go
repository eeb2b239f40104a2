package main

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

const (
	projectIssuer   = "https://token.actions.githubusercontent.com"
	projectIdentity = project + "/.github/workflows/release.yaml@refs/tags/v"
)

// fitsKey checks the signature of SHA256SUMS with a public key.
func fitsKey(folder, key string) error {
	text, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	verifier, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	encoded, err := os.ReadFile(filepath.Join(folder, keySignature))
	if err != nil {
		return fmt.Errorf("%s: the release has no signature by a key: %w", keySignature, err)
	}
	signed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(encoded)))
	if err != nil {
		return fmt.Errorf("%s: %w", keySignature, err)
	}
	sums, err := os.ReadFile(filepath.Join(folder, sumsFile))
	if err != nil {
		return err
	}
	if err := verifier.VerifySignature(bytes.NewReader(signed), bytes.NewReader(sums)); err != nil {
		return fmt.Errorf("%s: the signature does not fit %s and the key %s: %w", keySignature, sumsFile, key, err)
	}
	return nil
}

// fitsIdentity checks that an identity with a certificate from Sigstore signed SHA256SUMS. This needs the network,
// unless the file `trusted` contains Sigstore's roots of trust. If the identity is a workflow of GitHub, its
// certificate must name the release's commit.
func fitsIdentity(folder, identity, issuer, commit, trusted string) error {
	read, err := bundle.LoadJSONFromPath(filepath.Join(folder, bundleFile))
	if err != nil {
		return fmt.Errorf("%s: the release has no signature by an identity: %w", bundleFile, err)
	}
	var material *root.TrustedRoot
	if trusted != "" {
		material, err = root.NewTrustedRootFromPath(trusted)
	} else {
		material, err = root.FetchTrustedRoot()
	}
	if err != nil {
		return fmt.Errorf("the roots of trust of Sigstore: %w", err)
	}
	sums, err := os.ReadFile(filepath.Join(folder, sumsFile))
	if err != nil {
		return err
	}
	if err := signedBy(read, material, identity, issuer, commit, sums); err != nil {
		return fmt.Errorf("%s: %w", bundleFile, err)
	}
	return nil
}

func signedBy(entity verify.SignedEntity, material root.TrustedMaterial, identity, issuer, commit string, content []byte) error {
	options := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	// If the instance of Sigstore has a log of certificates, it adds to each certificate a proof that the certificate
	// is in this log. So require the proof.
	if len(material.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	verifier, err := verify.NewVerifier(material, options...)
	if err != nil {
		return err
	}
	who, err := verify.NewSANMatcher(identity, "")
	if err != nil {
		return err
	}
	service, err := verify.NewIssuerMatcher(issuer, "")
	if err != nil {
		return err
	}
	var facts certificate.Extensions
	if issuer == projectIssuer {
		facts.SourceRepositoryDigest = commit
	}
	wanted, err := verify.NewCertificateIdentity(who, service, facts)
	if err != nil {
		return err
	}
	_, err = verifier.Verify(entity, verify.NewPolicy(
		verify.WithArtifact(bytes.NewReader(content)), verify.WithCertificateIdentity(wanted)))
	return err
}
