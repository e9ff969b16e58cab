//! `targets/policies.rs` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubeskiff_fuzz::policies::TARGET.attempt(data));
