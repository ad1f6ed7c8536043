#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pleach_fuzz_bodies::count_file(data));
