package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	robot = "https://github.com/kaos-tools/policy-operator/.github/workflows/release.yaml@refs/tags/v1.2.3"
	agent = "https://token.actions.githubusercontent.com"
)

// signedRelease writes a SHA256SUMS that an identity signed at a Sigstore inside of the test, and the roots of trust of
// this Sigstore. Returns the folder, and the file with the roots.
func signedRelease(t *testing.T) (string, string) {
	folder, content := t.TempDir(), []byte(strings.Repeat("0", 64)+"  file\n")
	sigstore := must(ca.NewVirtualSigstore())
	entity := must(sigstore.Sign(robot, agent, content))
	written := must(entity.SignatureContent()).MessageSignatureContent()
	var entries []*protorekor.TransparencyLogEntry
	for _, entry := range must(entity.TlogEntries()) {
		logged := entry.TransparencyLogEntry()
		logged.KindVersion = &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.1"}
		logged.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: must(sigstore.RekorSignPayload(tlog.RekorPayload{
			Body: base64.StdEncoding.EncodeToString(logged.CanonicalizedBody), IntegratedTime: logged.IntegratedTime,
			LogIndex: logged.LogIndex, LogID: hex.EncodeToString(logged.LogId.KeyId),
		}))}
		entries = append(entries, logged)
	}
	message := &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
				Certificates: []*protocommon.X509Certificate{{RawBytes: must(entity.VerificationContent()).Certificate().Raw}},
			}},
			TlogEntries: entries,
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: written.Digest()},
			Signature:     written.Signature(),
		}},
	}
	logs := sigstore.RekorLogs()
	for id, log := range logs {
		log.ID = must(hex.DecodeString(id))
	}
	trusted := must(root.NewTrustedRoot(root.TrustedRootMediaType01, sigstore.FulcioCertificateAuthorities(), nil,
		sigstore.TimestampingAuthorities(), logs))
	roots := filepath.Join(t.TempDir(), "roots.json")
	for file, text := range map[string][]byte{
		filepath.Join(folder, sumsFile):   content,
		filepath.Join(folder, bundleFile): must(protojson.Marshal(message)),
		roots:                             must(json.Marshal(trusted)),
	} {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder, roots
}

func TestTheSignatureOfAnIdentityFitsOnlyThisIdentity(t *testing.T) {
	folder, roots := signedRelease(t)
	if err := fitsIdentity(folder, robot, agent, roots); err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(robot, "kaos-tools", "somebody", 1)
	for identity, issuer := range map[string]string{other: agent, robot: "https://example.org"} {
		if err := fitsIdentity(folder, identity, issuer, roots); err == nil {
			t.Errorf("%s of %s is accepted", identity, issuer)
		}
	}
}

func TestTheSignatureOfAnIdentityFitsOnlyTheSums(t *testing.T) {
	folder, roots := signedRelease(t)
	changed := []byte(strings.Repeat("1", 64) + "  file\n")
	if err := os.WriteFile(filepath.Join(folder, sumsFile), changed, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := fitsIdentity(folder, robot, agent, roots); err == nil || !strings.Contains(err.Error(), bundleFile) {
		t.Fatalf("not refused: %v", err)
	}
}

func TestTheSignatureOfAnotherSigstoreIsRefused(t *testing.T) {
	folder, _ := signedRelease(t)
	_, roots := signedRelease(t)
	if err := fitsIdentity(folder, robot, agent, roots); err == nil {
		t.Fatal("the signature is accepted")
	}
}

func TestASignatureThatIsNoBase64IsRefused(t *testing.T) {
	folder := t.TempDir()
	key := filepath.Join(folder, "key.pub")
	for file, text := range map[string]string{
		filepath.Join(folder, sumsFile):     "",
		filepath.Join(folder, keySignature): "no signature!",
		key:                                 "-----BEGIN PUBLIC KEY-----\n" + base64.StdEncoding.EncodeToString(publicKey()) + "\n-----END PUBLIC KEY-----\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := fitsKey(folder, key); err == nil || !strings.Contains(err.Error(), keySignature) {
		t.Fatalf("not refused: %v", err)
	}
}

func publicKey() []byte {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	return must(x509.MarshalPKIXPublicKey(&key.PublicKey))
}
