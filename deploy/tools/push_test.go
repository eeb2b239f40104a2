package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// registered starts a registry, and returns the address of an owner's folder in this registry.
func registered(t *testing.T) string {
	served := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(served.Close)
	return strings.TrimPrefix(served.URL, "http://") + "/kaos-tools"
}

// pushable writes those files of a release that `push` reads, and returns the folder.
func pushable(t *testing.T, notes string) string {
	folder := t.TempDir()
	if err := os.Rename(writeImage(t, "linux-amd64", "linux-arm64"), filepath.Join(folder, imageFile("1.2.3"))); err != nil {
		t.Fatal(err)
	}
	about := "apiVersion: v2\nname: kaos-operator\nversion: 1.2.3\ndescription: A chart\nannotations:\n  notes: " + notes + "\n"
	chart := contents{"kaos-operator/Chart.yaml": []byte(about), "kaos-operator/templates/a.yaml": []byte("kind: List\n")}
	if err := writeFiles(filepath.Join(folder, chartFile("1.2.3")), chart, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := provenanceCommand([]string{"--version", "1.2.3", "--commit", strings.Repeat("a", 40), folder}); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestAPushedImageKeepsItsDigestAndItsArchitectures(t *testing.T) {
	folder, owner := pushable(t, "first"), registered(t)
	if err := pushCommand([]string{"--owner", owner, folder}); err != nil {
		t.Fatal(err)
	}
	pushed := must(remote.Index(must(name.ParseReference(owner + "/policy-operator:1.2.3"))))
	if err := validate.Index(pushed); err != nil {
		t.Fatal(err)
	}
	local := must(readLayout(filepath.Join(folder, imageFile("1.2.3")), t.TempDir())).index
	if is, wanted := must(pushed.Digest()), must(local.Digest()); is != wanted {
		t.Fatalf("the registry has %s instead of %s", is, wanted)
	}
	var found []string
	for _, entry := range must(pushed.IndexManifest()).Manifests {
		found = append(found, entry.Platform.String())
	}
	if !reflect.DeepEqual(found, []string{"linux/amd64", "linux/arm64"}) {
		t.Fatalf("the image has %v", found)
	}
}

func TestHelmPullsAPushedChart(t *testing.T) {
	helm, err := exec.LookPath("helm")
	if at, _ := filepath.Abs("../../target/control-plane/helm"); err != nil {
		helm = at
	}
	folder, owner, to := pushable(t, "first"), registered(t), t.TempDir()
	if err := pushCommand([]string{"--owner", owner, folder}); err != nil {
		t.Fatal(err)
	}
	pulled := exec.Command(helm, "pull", "--plain-http", "oci://"+owner+"/charts/kaos-operator", "--version", "1.2.3", "--destination", to)
	if text, err := pulled.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s: tests/control-plane/provision helm installs Helm", err, text)
	}
	is, wanted := must(os.ReadFile(filepath.Join(to, chartFile("1.2.3")))), must(os.ReadFile(filepath.Join(folder, chartFile("1.2.3"))))
	if !bytes.Equal(is, wanted) {
		t.Fatal("the pulled chart differs")
	}
}

func TestAVersionIsPushedAgainOnlyWithTheSameDigests(t *testing.T) {
	first, owner := pushable(t, "first"), registered(t)
	for range 2 {
		if err := pushCommand([]string{"--owner", owner, first}); err != nil {
			t.Fatal(err)
		}
	}
	image := must(remote.Get(must(name.ParseReference(owner + "/policy-operator:1.2.3"))))
	// The second release has the same image and another chart.
	err := pushCommand([]string{"--owner", owner, pushable(t, "second")})
	if err == nil || !strings.Contains(err.Error(), "charts/kaos-operator:1.2.3 exists") {
		t.Fatalf("not refused: %v", err)
	}
	if again := must(remote.Get(must(name.ParseReference(owner + "/policy-operator:1.2.3")))); again.Digest != image.Digest {
		t.Fatal("the image was replaced")
	}
}

func TestAnotherImageOfAVersionIsRefusedBeforeAnythingIsPushed(t *testing.T) {
	first, owner := pushable(t, "first"), registered(t)
	other := must(name.NewTag(owner + "/policy-operator:1.2.3"))
	chart := must(readChart(filepath.Join(first, chartFile("1.2.3"))))
	if err := chart.push(other); err != nil {
		t.Fatal(err)
	}
	err := pushCommand([]string{"--owner", owner, first})
	if err == nil || !strings.Contains(err.Error(), "policy-operator:1.2.3 exists") {
		t.Fatalf("not refused: %v", err)
	}
	if _, err := remote.Head(must(name.ParseReference(owner + "/charts/kaos-operator:1.2.3"))); err == nil {
		t.Fatal("the chart was pushed")
	}
}

func TestTheManifestOfAChartHasNoTime(t *testing.T) {
	chart := must(readChart(filepath.Join(pushable(t, "first"), chartFile("1.2.3"))))
	var manifest struct{ Annotations map[string]string }
	if err := json.Unmarshal(chart.text, &manifest); err != nil {
		t.Fatal(err)
	}
	if _, found := manifest.Annotations["org.opencontainers.image.created"]; found || len(manifest.Annotations) != 4 {
		t.Fatalf("%v", manifest.Annotations)
	}
}
