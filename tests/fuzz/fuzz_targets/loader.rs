#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| kaos_tests::fuzzed::loader(data));
