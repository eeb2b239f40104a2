package main

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// signCommand signs SHA256SUMS with a private key. The key is a PEM file that openssl or `cosign generate-key-pair`
// wrote. COSIGN_PASSWORD contains the password of a key from cosign. The signature file contains openssl's signature in
// base64.
func signCommand(arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("name the key and the folder of the release")
	}
	text, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	password := func(bool) ([]byte, error) { return []byte(os.Getenv("COSIGN_PASSWORD")), nil }
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(text, password)
	if err != nil {
		return fmt.Errorf("%s: %w", arguments[0], err)
	}
	signer, err := signature.LoadSigner(key, crypto.SHA256)
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(arguments[1], sumsFile))
	if err != nil {
		return err
	}
	signed, err := signer.SignMessage(bytes.NewReader(sums))
	if err != nil {
		return err
	}
	encoded := base64.StdEncoding.EncodeToString(signed) + "\n"
	return os.WriteFile(filepath.Join(arguments[1], keySignature), []byte(encoded), 0o644)
}
