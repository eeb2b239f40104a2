#![no_main]
#![allow(dead_code, missing_docs)]

// Not through the crate of the tests, which would have the whole operator built with instruments.
#[path = "../../src/fuzzed.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(fuzzed::loader(data)));
