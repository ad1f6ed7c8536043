//! Writes the seeds to `corpus/`, a folder for each target.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    for (target, name, bytes) in pleach_fuzz_bodies::seeds::all() {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("seed-{name}")), bytes)?;
    }
    Ok(())
}
