//! Writes a profile of many made-up functions, and measures how long opening it and looking functions up takes.
//!
//!     synthetic_profile OUTPUT [FUNCTIONS] [BLOCKS]

use pleach_feedback_tests::support;

use pleach_profile::file::{Lookup, ProfileFile};
use pleach_store::write_profile;
use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::{Random, synthetic_profile};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let usage = "usage: synthetic_profile OUTPUT [FUNCTIONS] [BLOCKS]";
    let output = PathBuf::from(args.next().ok_or(usage)?);
    let mut number = |default| match args.next() {
        Some(text) => text.to_str().and_then(|t| t.parse().ok()).ok_or(usage),
        None => Ok(default),
    };
    let (functions, blocks): (usize, usize) = (number(100_000)?, number(20)?);
    let profile = synthetic_profile(&mut Random(1), functions, blocks);
    let start = Instant::now();
    write_profile(&output, &profile)?;
    println!("wrote {} bytes in {:.0?}", output.metadata()?.len(), start.elapsed());
    let paths: usize = profile.functions.iter().map(|f| f.paths.len()).sum();
    let executed = profile.functions.iter().filter(|f| f.samples > 0).count();
    println!("{paths} paths in {executed} of {functions} functions");
    for (what, without_coverage) in [("paths", false), ("paths and coverage", true)] {
        let mut less = profile.clone();
        for function in &mut less.functions {
            function.paths.clear();
            if without_coverage {
                function.coverage.clear();
            }
        }
        let beside = output.with_extension("less");
        write_profile(&beside, &less)?;
        println!("without {what}: {} bytes", beside.metadata()?.len());
        std::fs::remove_file(beside)?;
    }

    let mut opening = Vec::new();
    for _ in 0..11 {
        let start = Instant::now();
        black_box(ProfileFile::open(&output)?);
        opening.push(start.elapsed());
    }
    opening.sort_unstable();
    println!(
        "open: median {:.2?}, worst {:.2?}",
        opening[opening.len() / 2],
        opening[opening.len() - 1]
    );

    let file = ProfileFile::open(&output)?;
    let lookups = functions.clamp(1, 1000);
    let start = Instant::now();
    for function in profile.functions.iter().step_by((functions / lookups).max(1)) {
        let Lookup::Found(found) = file.lookup(function.id, function.cfg_hash)? else {
            return Err("not found".into());
        };
        assert_eq!((&found.blocks, &found.paths), (&function.blocks, &function.paths));
    }
    println!(
        "lookup: mean {:.2?}",
        start.elapsed().checked_div(lookups as u32).unwrap_or(Duration::ZERO)
    );
    Ok(())
}
