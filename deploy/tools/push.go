package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

var logins = remote.WithAuthFromKeychain(authn.DefaultKeychain)

// pushCommand pushes the image and the chart of a release, and prints the name of each with its digest. It sends the
// credentials that `docker login` stored. If the registry already has the image or the chart of this version with
// another digest, pushCommand fails and pushes nothing.
func pushCommand(arguments []string) error {
	flags := flag.NewFlagSet("push", flag.ExitOnError)
	owner := flags.String("owner", path.Dir(repository), "the registry, and the owner of the image there")
	_ = flags.Parse(arguments)
	if flags.NArg() != 1 {
		return errors.New("name the folder of the release")
	}
	r := &released{folder: flags.Arg(0)}
	if err := r.readProvenance(); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	read, err := readLayout(r.path(imageFile(r.version)), scratch)
	if err != nil {
		return err
	}
	index := read.index
	chart, err := readChart(r.path(chartFile(r.version)))
	if err != nil {
		return err
	}
	imageTag, err := name.NewTag(*owner + "/" + path.Base(repository) + ":" + r.version)
	if err != nil {
		return err
	}
	// A tag cannot contain a plus sign, so Helm replaces it with an underscore.
	chartTag, err := name.NewTag(*owner + "/charts/" + chartName + ":" + strings.ReplaceAll(r.version, "+", "_"))
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := errors.Join(isFree(imageTag, digest), isFree(chartTag, chart.digest())); err != nil {
		return err
	}
	if err := remote.WriteIndex(imageTag, index, logins); err != nil {
		return err
	}
	if err := chart.push(chartTag); err != nil {
		return err
	}
	fmt.Printf("image %s@%s\nchart %s@%s\n", imageTag.Context(), digest, chartTag.Context(), chart.digest())
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, entry := range manifest.Manifests {
		fmt.Printf("%s-%s %s@%s\n", entry.Platform.OS, entry.Platform.Architecture, imageTag.Context(), entry.Digest)
	}
	return nil
}

// isFree returns an error if the tag in the registry already has a digest other than `digest`.
func isFree(tag name.Tag, digest v1.Hash) error {
	found, err := remote.Head(tag, logins)
	var answer *transport.Error
	switch {
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return nil
	case err != nil:
		return err
	case found.Digest != digest:
		return fmt.Errorf("%s exists with the digest %s instead of %s: no version is published twice", tag, found.Digest, digest)
	}
	return nil
}

// chartArtifact is a chart as Helm pushes it into a registry, but without the time of the push.
type chartArtifact struct {
	blobs []v1.Layer
	text  []byte
}

func (c *chartArtifact) RawManifest() ([]byte, error)        { return c.text, nil }
func (c *chartArtifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func (c *chartArtifact) digest() v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: hexSum(c.text)} }

func readChart(file string) (*chartArtifact, error) {
	archive, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	read, err := unpack(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	about, err := yaml.YAMLToJSON(read.files[chartName+"/Chart.yaml"])
	if err != nil {
		return nil, err
	}
	var named struct{ Name, Version, Description string }
	if err := json.Unmarshal(about, &named); err != nil {
		return nil, err
	}
	made := &chartArtifact{}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: map[string]string{
		"org.opencontainers.image.title":       named.Name,
		"org.opencontainers.image.version":     named.Version,
		"org.opencontainers.image.description": named.Description,
		"org.opencontainers.image.source":      project,
	}}
	described := func(content []byte, kind types.MediaType) v1.Descriptor {
		made.blobs = append(made.blobs, static.NewLayer(content, kind))
		digest := v1.Hash{Algorithm: "sha256", Hex: hexSum(content)}
		return v1.Descriptor{MediaType: kind, Size: int64(len(content)), Digest: digest}
	}
	manifest.Config = described(about, "application/vnd.cncf.helm.config.v1+json")
	manifest.Layers = []v1.Descriptor{described(archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip")}
	made.text, err = json.Marshal(manifest)
	return made, err
}

func (c *chartArtifact) push(to name.Tag) error {
	for _, blob := range c.blobs {
		if err := remote.WriteLayer(to.Context(), blob, logins); err != nil {
			return err
		}
	}
	return remote.Put(to, c, logins)
}
