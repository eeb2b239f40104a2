package main

import (
	"bytes"
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// images is v1.ImageIndex under another name. A struct that embeds v1.ImageIndex itself would have a field ImageIndex,
// which would hide the interface's method ImageIndex.
type images = v1.ImageIndex

// plainIndex is an index with only the fields that every tool supports, in the order of the specification. When skopeo
// copies an index, it writes the index again in this form. So the copy has the same digest as the original, and the
// chart's reference by digest finds the copy.
type plainIndex struct {
	images
	text []byte
}

type plainDescriptor struct {
	MediaType types.MediaType `json:"mediaType"`
	Digest    string          `json:"digest"`
	Size      int64           `json:"size"`
	Platform  struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	} `json:"platform"`
}

func plain(index v1.ImageIndex) (v1.ImageIndex, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	written := struct {
		SchemaVersion int64             `json:"schemaVersion"`
		MediaType     types.MediaType   `json:"mediaType"`
		Manifests     []plainDescriptor `json:"manifests"`
	}{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, entry := range manifest.Manifests {
		one := plainDescriptor{MediaType: entry.MediaType, Digest: entry.Digest.String(), Size: entry.Size}
		one.Platform.Architecture, one.Platform.OS = entry.Platform.Architecture, entry.Platform.OS
		written.Manifests = append(written.Manifests, one)
	}
	text, err := json.Marshal(written)
	return &plainIndex{index, text}, err
}

func (p *plainIndex) RawManifest() ([]byte, error) { return p.text, nil }

func (p *plainIndex) Size() (int64, error) { return int64(len(p.text)), nil }

func (p *plainIndex) Digest() (v1.Hash, error) {
	digest, _, err := v1.SHA256(bytes.NewReader(p.text))
	return digest, err
}

func (p *plainIndex) IndexManifest() (*v1.IndexManifest, error) {
	return v1.ParseIndexManifest(bytes.NewReader(p.text))
}
