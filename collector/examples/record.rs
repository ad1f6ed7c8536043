//! Records a command: `record SAMPLER OVERHEAD COMMAND…`, with the figures as JSON in `$STATS` or on standard error.

use pleach_collector::record::{RecordOptions, record};
use pleach_collector::vector::Engine;
use std::ffi::OsString;
use std::time::Duration;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let preload = arguments.next().expect("SAMPLER");
    let overhead: f64 = arguments
        .next()
        .and_then(|o| o.to_str()?.parse().ok())
        .expect("OVERHEAD, a fraction");
    let command: Vec<OsString> = arguments.collect();
    let mut options = RecordOptions::new(preload);
    options.overhead = overhead;
    match std::env::var_os("ENGINE") {
        Some(engine) if engine == Engine::Step.name() => options.engine = Engine::Step,
        Some(engine) if engine == "ptrace" => options.from_outside = true,
        _ => {}
    }
    options.timer_only = std::env::var_os("TIMER").is_some();
    options.times_bursts = std::env::var_os("CLOCKS").is_none_or(|clocks| clocks != "off");
    options.burst = std::env::var("BURST").ok().and_then(|burst| burst.parse().ok());
    let period = std::env::var("PERIOD")
        .ok()
        .and_then(|period| period.strip_suffix("ms")?.parse().ok());
    options.period = period.map(Duration::from_millis);
    options.max_size = std::env::var("MAX_SIZE").ok().and_then(|size| size.parse().ok());
    match record(&command, &options) {
        Ok(recording) => {
            let stats = serde_json::to_string(&recording.stats).expect("plain figures");
            match std::env::var_os("STATS") {
                Some(path) => std::fs::write(path, stats).expect("STATS is writable"),
                None => eprintln!("{stats}"),
            }
            if let Some(path) = std::env::var_os("OUTPUT") {
                recording.vectors.write_to(path.as_ref()).expect("OUTPUT is writable");
            }
            use std::os::unix::process::ExitStatusExt;
            let status = recording.status;
            std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(error.exit_code().into());
        }
    }
}
