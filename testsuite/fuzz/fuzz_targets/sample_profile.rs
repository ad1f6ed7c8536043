#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pleach_fuzz::sample_profile(data));
