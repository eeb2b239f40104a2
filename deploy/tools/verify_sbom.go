package main

import (
	"bytes"
	"os"
	"slices"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// checkBills checks the bill of materials of each program. The bill must list the crates that the program itself lists,
// and the checksum of each crate must equal the checksum in the lock file.
func (r *released) checkBills() {
	locks := map[string]lockFile{}
	for _, part := range parts {
		lock, err := readLock(r.sources.files[part.lock])
		if err != nil || len(lock) == 0 {
			r.problem(sourceFile(r.version), "cannot read %s: %v", part.lock, err)
			return
		}
		locks[part.name] = lock
	}
	found := 0
	for _, platform := range platforms {
		if r.sums[programFile(platform)] == "" {
			continue
		}
		found++
		if r.has(sbomFile(platform)) {
			r.checkBill(platform, locks)
		}
	}
	if found == 0 {
		r.problem(r.folder, "the release has no program")
	}
}

func (r *released) checkBill(platform string, locks map[string]lockFile) {
	file := sbomFile(platform)
	program, err := os.ReadFile(r.path(programFile(platform)))
	if err != nil {
		r.problem(programFile(platform), "%v", err)
		return
	}
	listed, err := cratesIn(program)
	if err != nil {
		r.problem(programFile(platform), "%v", err)
		return
	}
	text, err := os.ReadFile(r.path(file))
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	bill := cyclonedx.NewBOM()
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(bill); err != nil {
		r.problem(file, "%v", err)
		return
	}
	if bill.Metadata == nil || bill.Metadata.Component == nil || bill.Components == nil {
		r.problem(file, "the bill names neither its program nor its components")
		return
	}
	about := bill.Metadata.Component
	r.expect(file, "the version", about.Version, r.version)
	r.expect(file, "the digest of the program", sha256In(about.Hashes), r.sums[programFile(platform)])
	inPart := map[string][]crate{}
	for _, one := range *bill.Components {
		part := property(one, partProperty)
		named := crate{one.Name, one.Version}
		inPart[part] = append(inPart[part], named)
		checksum, found := locks[part][named]
		if !found {
			r.problem(file, "the crate %s is not in the lock file of %s", named, part)
		} else if sha256In(one.Hashes) != checksum {
			r.problem(file, "the crate %s has another checksum than in the lock file", named)
		}
	}
	if wanted := ordered(listed.all()); !slices.Equal(inPart[programPart], wanted) {
		r.problem(file, "the bill lists %d crates of the program, and the program lists %d: they differ", len(inPart[programPart]), len(wanted))
	}
	for _, part := range parts {
		if part.name != programPart {
			r.checkPart(file, part, inPart[part.name])
		}
	}
}

// checkPart checks the crates that a bill lists for a part: all required crates, and only possible dependencies of this
// part (see graph).
func (r *released) checkPart(file string, part part, listed []crate) {
	known, err := r.sources.graph(part)
	if err != nil {
		r.problem(sourceFile(r.version), "%v", err)
		return
	}
	is, possible := map[crate]bool{}, known.possible(part)
	for _, one := range listed {
		if is[one] || !possible[one] {
			r.problem(file, "the crate %s is listed twice, or is no dependency of the %s", one, part.name)
		}
		is[one] = true
	}
	for _, one := range ordered(known.required(part)) {
		if !is[one] {
			r.problem(file, "the bill lacks the crate %s of the %s", one, part.name)
		}
	}
	if len(listed) == 0 {
		r.problem(file, "the bill lists no crates of the %s", part.name)
	}
}

func sha256In(hashes *[]cyclonedx.Hash) string {
	if hashes != nil {
		for _, hash := range *hashes {
			if hash.Algorithm == cyclonedx.HashAlgoSHA256 {
				return hash.Value
			}
		}
	}
	return ""
}

func property(of cyclonedx.Component, name string) string {
	if of.Properties != nil {
		for _, one := range *of.Properties {
			if one.Name == name {
				return one.Value
			}
		}
	}
	return ""
}
