//! The settings that the recorder passes in the environment, as read once when the library starts.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use pleach_wire::kinds::Engine;
pub use pleach_wire::settings::MAX_BURST;
use pleach_wire::settings::Settings;
use std::sync::OnceLock;

/// Taken branches of a stepped burst, unless the budget allows longer ones.
const STEPPED_BURST: u64 = 64;
/// Taken branches of a shadow burst, unless the budget requires shorter or allows longer bursts.
const SHADOW_BURST: u64 = 1000;

/// Written once, before the first handler is installed; reading takes no lock.
static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// Shadow execution cannot be used in this process.
static STEP_ONLY: AtomicBool = AtomicBool::new(false);

/// Reads the settings. Only the first call counts.
pub fn read(text: &str) {
    let _ = SETTINGS.set(Settings::from_text(text));
}

/// The settings from the recorder; the defaults before [`read`] was called.
pub fn get() -> &'static Settings {
    static DEFAULT: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get().unwrap_or_else(|| DEFAULT.get_or_init(Settings::default))
}

/// The engine that produces bursts.
pub fn engine() -> Engine {
    if STEP_ONLY.load(Relaxed) {
        Engine::Step
    } else {
        get().engine
    }
}

/// Falls back to the trap flag.
pub fn use_step() {
    STEP_ONLY.store(true, Relaxed);
}

/// Taken branches of a burst.
pub fn burst() -> u64 {
    match (get().burst, engine()) {
        (Some(burst), _) => burst,
        (None, Engine::RunAhead) => SHADOW_BURST,
        (None, _) => STEPPED_BURST,
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds when sampling ends.
pub fn deadline_ns() -> u64 {
    get().deadline_ns.unwrap_or(u64::MAX)
}
