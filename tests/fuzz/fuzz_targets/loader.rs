#![no_main]
#![allow(dead_code, missing_docs)]

// Include only this file. If this target depended on the crate `kaos-tests`, cargo-fuzz would build the whole operator
// with instrumentation.
#[path = "../../src/fuzzed.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(fuzzed::loader(data)));
