package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	robot = "https://github.com/kaos-tools/policy-operator/.github/workflows/release.yaml@refs/tags/v1.2.3"
	agent = "https://token.actions.githubusercontent.com"
	// The commit of the workflow.
	revision = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// certify returns a certificate for a workflow, in the form in which Sigstore's Fulcio issues it, and the private key
// of the certificate. If `commit` is empty, the certificate names no commit, like the certificate of a person.
func certify(commit string, authority *x509.Certificate, by crypto.Signer) (*x509.Certificate, *ecdsa.PrivateKey) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), URIs: []*url.URL{must(url.Parse(robot))},
		NotBefore: time.Now(), NotAfter: time.Now().Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: certificate.OIDIssuerV2, Value: must(asn1.MarshalWithParams(agent, "utf8"))}},
	}
	if commit != "" {
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{
			Id: certificate.OIDSourceRepositoryDigest, Value: must(asn1.MarshalWithParams(commit, "utf8")),
		})
	}
	text := must(x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, by))
	return must(x509.ParseCertificate(text)), key
}

// logged returns the entry of Sigstore's log for a signature.
func logged(sigstore *ca.VirtualSigstore, content, signed []byte, who *x509.Certificate) *protorekor.TransparencyLogEntry {
	shown := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: who.Raw})
	body := fmt.Appendf(nil, `{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"data":{"hash":{"algorithm":"sha256","value":"%s"}},`+
		`"signature":{"content":"%s","publicKey":{"content":"%s"}}}}`,
		hexSum(content), base64.StdEncoding.EncodeToString(signed), base64.StdEncoding.EncodeToString(shown))
	log, now := must(sigstore.RekorLogID()), time.Now().Unix()
	promise := must(sigstore.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: now, LogIndex: 1000, LogID: log,
	}))
	return &protorekor.TransparencyLogEntry{
		LogIndex: 1000, LogId: &protocommon.LogId{KeyId: must(hex.DecodeString(log))}, IntegratedTime: now,
		KindVersion:       &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.1"},
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: promise},
		CanonicalizedBody: body,
	}
}

// signedRelease writes a SHA256SUMS, and its signature by a workflow. A Sigstore that runs in the test issues the
// workflow's certificate, which names the commit. signedRelease returns the folder, and the file with the roots of
// trust of this Sigstore.
func signedRelease(t *testing.T, commit string) (string, string) {
	folder, content := t.TempDir(), []byte(strings.Repeat("0", 64)+"  file\n")
	sigstore := must(ca.NewVirtualSigstore())
	top, topKey, err := ca.GenerateRootCa()
	if err != nil {
		t.Fatal(err)
	}
	authority, authorityKey, err := ca.GenerateFulcioIntermediate(top, topKey)
	if err != nil {
		t.Fatal(err)
	}
	who, key := certify(commit, authority, authorityKey)
	digest := sha256.Sum256(content)
	signed := must(ecdsa.SignASN1(rand.Reader, key, digest[:]))
	message := &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
				Certificates: []*protocommon.X509Certificate{{RawBytes: who.Raw}},
			}},
			TlogEntries: []*protorekor.TransparencyLogEntry{logged(sigstore, content, signed, who)},
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: digest[:]},
			Signature:     signed,
		}},
	}
	logs := sigstore.RekorLogs()
	for id, log := range logs {
		log.ID = must(hex.DecodeString(id))
	}
	authorities := []root.CertificateAuthority{&root.FulcioCertificateAuthority{
		Root: top, Intermediates: []*x509.Certificate{authority}, URI: "https://fulcio.example",
		ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour),
	}}
	trusted := must(root.NewTrustedRoot(root.TrustedRootMediaType01, authorities, nil, sigstore.TimestampingAuthorities(), logs))
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
	folder, roots := signedRelease(t, revision)
	if err := fitsIdentity(folder, robot, agent, revision, roots); err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(robot, "kaos-tools", "somebody", 1)
	for identity, issuer := range map[string]string{other: agent, robot: "https://example.org"} {
		if err := fitsIdentity(folder, identity, issuer, revision, roots); err == nil {
			t.Errorf("%s of %s is accepted", identity, issuer)
		}
	}
}

func TestTheSignatureOfAWorkflowFitsOnlyItsCommit(t *testing.T) {
	for _, commit := range []string{"", strings.Repeat("b", 40)} {
		folder, roots := signedRelease(t, commit)
		if err := fitsIdentity(folder, robot, agent, revision, roots); err == nil {
			t.Errorf("the signature for the commit %q is accepted", commit)
		}
	}
}

func TestTheSignatureOfAnIdentityFitsOnlyTheSums(t *testing.T) {
	folder, roots := signedRelease(t, revision)
	changed := []byte(strings.Repeat("1", 64) + "  file\n")
	if err := os.WriteFile(filepath.Join(folder, sumsFile), changed, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := fitsIdentity(folder, robot, agent, revision, roots); err == nil || !strings.Contains(err.Error(), bundleFile) {
		t.Fatalf("not refused: %v", err)
	}
}

func TestTheSignatureOfAnotherSigstoreIsRefused(t *testing.T) {
	folder, _ := signedRelease(t, revision)
	_, roots := signedRelease(t, revision)
	if err := fitsIdentity(folder, robot, agent, revision, roots); err == nil {
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
