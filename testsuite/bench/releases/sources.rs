//! Intentionally empty: see `Cargo.toml` beside this file.
