package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"sigs.k8s.io/yaml"
)

func must[V any](value V, err error) V {
	if err != nil {
		panic(err)
	}
	return value
}

// writeImage writes an image for some platforms, and returns the path of the archive. A short text replaces the program
// of each platform.
func writeImage(t *testing.T, platforms ...string) string {
	folder := t.TempDir()
	to := filepath.Join(folder, "image.tar")
	arguments := []string{"--to", to, "--version", "1.2.3", "--commit", strings.Repeat("a", 40), "--epoch", "1767323045"}
	for _, platform := range platforms {
		program := filepath.Join(folder, platform)
		if err := os.WriteFile(program, []byte("the program for "+platform), 0o755); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, platform+"="+program)
	}
	if err := imageCommand(arguments); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestImagesOfTheSameProgramsHaveTheSameBytes(t *testing.T) {
	first := must(os.ReadFile(writeImage(t, "linux-amd64", "linux-arm64")))
	second := must(os.ReadFile(writeImage(t, "linux-arm64", "linux-amd64")))
	if !bytes.Equal(first, second) {
		t.Fatal("the images differ")
	}
}

func TestTheLayoutNamesTheVersion(t *testing.T) {
	folder := t.TempDir()
	must(readLayout(writeImage(t, "linux-amd64"), folder))
	outer := must(must(layout.ImageIndexFromPath(folder)).IndexManifest())
	if is := outer.Manifests[0].Annotations[refName]; is != "1.2.3" {
		t.Fatalf("the layout names %q", is)
	}
}

func TestAnArchiveWithAFileOutsideIsRefused(t *testing.T) {
	to := filepath.Join(t.TempDir(), "archive.tar")
	file := must(os.Create(to))
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeTar(file, folder, "../outside", time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := readLayout(to, t.TempDir()); err == nil || !strings.Contains(err.Error(), "../outside/file") {
		t.Fatalf("not refused: %v", err)
	}
}

func TestTheCertificatesAreAuthorities(t *testing.T) {
	rest, count := must(certificates()), 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if certificate := must(x509.ParseCertificate(block.Bytes)); !certificate.IsCA {
			t.Errorf("%s is no authority", certificate.Subject)
		}
		count++
	}
	if count < 50 || len(bytes.TrimSpace(rest)) > 0 {
		t.Fatalf("%d certificates, and %d further bytes", count, len(rest))
	}
}

// deploy/tools and deploy/Dockerfile both build an image. Both images must start the program in the same way.
func TestTheImageStartsAsThatOfTheDockerfile(t *testing.T) {
	text := string(must(os.ReadFile("../Dockerfile")))
	wanted := settings(imageFacts{})
	for line, is := range map[string]string{
		"USER":       wanted.User,
		"EXPOSE":     "8080 8081",
		"ENTRYPOINT": `["` + strings.Join(wanted.Entrypoint, `", "`) + `"]`,
		"CMD":        `["` + strings.Join(wanted.Cmd, `", "`) + `"]`,
	} {
		found := regexp.MustCompile("(?m)^" + line + " (.*)$").FindStringSubmatch(text)
		if found == nil || found[1] != is {
			t.Errorf("%s: the Dockerfile has %v, and the image has %s", line, found, is)
		}
	}
	for label, value := range wanted.Labels {
		if value != "" && !strings.Contains(text, label+`="`+value+`"`) {
			t.Errorf("the Dockerfile does not have the label %s=%s", label, value)
		}
	}
}

// krew-index, the public list of plugins, refuses a manifest that breaks one of the rules in this test.
func TestTheManifestForKrewFollowsTheRulesOfItsIndex(t *testing.T) {
	folder := t.TempDir()
	for _, platform := range []string{"linux-amd64", "darwin-arm64"} {
		if err := os.WriteFile(filepath.Join(folder, pluginFile(platform)), []byte(platform), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	if err := writeKrew(&text, folder, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(text.Bytes(), &manifest); err != nil {
		t.Fatal(err)
	}
	spec := manifest.Spec
	if manifest.Kind != "Plugin" || manifest.Metadata.Name != "kaos" || spec.Version != "v1.2.3" || len(spec.ShortDescription) > 50 {
		t.Fatalf("%+v", manifest)
	}
	if len(spec.Platforms) != 2 {
		t.Fatalf("%+v", spec.Platforms)
	}
	for _, one := range spec.Platforms {
		platform := one.Selector.MatchLabels["os"] + "-" + one.Selector.MatchLabels["arch"]
		wanted := project + "/releases/download/v1.2.3/" + pluginFile(platform)
		if one.URI != wanted || one.SHA256 != hexSum([]byte(platform)) || one.Bin != "kubectl-kaos" {
			t.Errorf("%s: %+v", platform, one)
		}
	}
}
