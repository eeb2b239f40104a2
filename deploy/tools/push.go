package main

import (
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pushCommand pushes the image of a release, and prints its name with the digest. It uses the logins of docker.
func pushCommand(arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("name the image's archive, and its name in the registry")
	}
	to, err := name.ParseReference(arguments[1])
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	index, err := readLayout(arguments[0], folder)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(to, index, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s\n", to.Context(), digest)
	return nil
}
