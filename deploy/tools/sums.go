package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// unlisted are the files of a release that SHA256SUMS cannot list: itself, and its signatures.
var unlisted = map[string]bool{sumsFile: true, keySignature: true, bundleFile: true}

func sumOf(file string) (string, error) {
	opened, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, opened); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// sumsOf returns the digests of the files in the folder of a release, without the files in `unlisted`.
func sumsOf(folder string) (map[string]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, entry := range entries {
		if unlisted[entry.Name()] {
			continue
		}
		if !entry.Type().IsRegular() {
			return nil, fmt.Errorf("%s is not a file: a release has only files", filepath.Join(folder, entry.Name()))
		}
		if sums[entry.Name()], err = sumOf(filepath.Join(folder, entry.Name())); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// finishCommand writes SHA256SUMS, in the format of sha256sum.
func finishCommand(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("name the folder of the release")
	}
	sums, err := sumsOf(arguments[0])
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range sorted(sums) {
		fmt.Fprintf(&text, "%s  %s\n", sums[name], name)
	}
	return os.WriteFile(filepath.Join(arguments[0], sumsFile), []byte(text.String()), 0o644)
}

func readSums(folder string) (map[string]string, error) {
	file, err := os.Open(filepath.Join(folder, sumsFile))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sums := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		sum, name, found := strings.Cut(lines.Text(), "  ")
		if !found || len(sum) != 64 || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%s: not a line of sha256sum: %q", sumsFile, lines.Text())
		}
		sums[name] = sum
	}
	return sums, lines.Err()
}

func sorted[V any](by map[string]V) []string {
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
