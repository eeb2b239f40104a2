package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cachedIn writes a cache of cargo with one crate, and a lock file that names this crate. It returns the paths of the
// cache, of the crate and of the lock file.
func cachedIn(t *testing.T) (string, string, string) {
	cache := t.TempDir()
	file := filepath.Join(cache, "mirror.example-0123", "thing-1.0.0.crate")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeFiles(file, contents{"thing-1.0.0/src/lib.rs": []byte("// right")}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(cache, "Cargo.lock")
	text := "[[package]]\nname = \"thing\"\nversion = \"1.0.0\"\nsource = \"registry\"\nchecksum = \"" + must(sumOf(file)) +
		"\"\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n"
	if err := os.WriteFile(lock, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return cache, file, lock
}

func TestACrateOfTheCacheIsUnpacked(t *testing.T) {
	cache, file, lock := cachedIn(t)
	to := t.TempDir()
	if err := cratesCommand([]string{"--cache", cache, "--to", to, lock, lock}); err != nil {
		t.Fatal(err)
	}
	if is := string(must(os.ReadFile(filepath.Join(to, "thing-1.0.0/src/lib.rs")))); is != "// right" {
		t.Fatal(is)
	}
	if is := string(must(os.ReadFile(filepath.Join(to, "thing-1.0.0/.cargo-checksum.json")))); !strings.Contains(is, must(sumOf(file))) {
		t.Fatal(is)
	}
}

func TestACrateThatSomebodyChangedInTheCacheIsRefused(t *testing.T) {
	cache, file, lock := cachedIn(t)
	if err := writeFiles(file, contents{"thing-1.0.0/src/lib.rs": []byte("// wrong")}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	err := cratesCommand([]string{"--cache", cache, "--to", t.TempDir(), lock})
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Fatalf("not refused: %v", err)
	}
}

func TestACrateThatTheCacheLacksIsNamed(t *testing.T) {
	_, _, lock := cachedIn(t)
	err := cratesCommand([]string{"--cache", t.TempDir(), "--to", t.TempDir(), lock})
	if err == nil || !strings.Contains(err.Error(), "thing 1.0.0") {
		t.Fatalf("not refused: %v", err)
	}
}
