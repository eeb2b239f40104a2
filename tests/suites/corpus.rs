//! Calls the functions that the fuzzer calls, with every file of `tests/fuzz/corpus`. The corpus contains the first
//! inputs of the fuzzer, and inputs that the fuzzer found. The functions must not panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use kaos_tests::fuzzed;

fn each(target: &str, run: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "the corpus of {target} is gone");
    for file in files {
        let data = std::fs::read(&file).unwrap();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&data))).is_ok(), "{}", file.display());
    }
}

#[test]
fn the_loader_answers_every_file_of_its_corpus() {
    each("loader", |data| drop(fuzzed::loader(data)));
}

/// A fuzzer finds more mistakes if it starts with valid inputs instead of random bytes.
#[test]
fn the_corpus_of_the_loader_has_a_valid_policy_and_a_valid_overlay() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/loader");
    for (name, world) in [("policy.gz", "policy"), ("overlay", "overlay")] {
        let inspected = fuzzed::loader(&std::fs::read(folder.join(name)).unwrap()).unwrap();
        assert_eq!(inspected.world.name(), world);
    }
}

#[test]
fn the_merge_patch_answers_every_file_of_its_corpus() {
    each("patch", fuzzed::patch);
}
