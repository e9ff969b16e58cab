//! `targets/controllers.rs` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubeskiff_fuzz::controllers::TARGET.attempt(data));
