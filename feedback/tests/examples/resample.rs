//! Makes many profiles of few recordings, for tests of merging: each function of each profile is that of a recording
//! drawn at random, with a fixed seed.
//!
//!     cargo run --release -p pleach-feedback-tests --example resample -- 10000 OUTPUT_FOLDER *.pleach

use pleach_feedback_tests::support::Random;
use pleach_profile::Profile;
use pleach_profile::file::ProfileFile;
use std::path::Path;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let number: u64 = arguments
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number of profiles");
    let folder = arguments.next().expect("a folder");
    std::fs::create_dir_all(&folder).expect("a folder");
    let read = |path: String| {
        ProfileFile::open(path)
            .and_then(|file| file.read_all())
            .expect("a profile")
    };
    let recordings: Vec<Profile> = arguments.map(read).collect();
    assert!(!recordings.is_empty(), "no recordings");
    let mut random = Random(7);
    for at in 0..number {
        let like = &recordings[random.below(recordings.len())];
        let mut profile = like.clone();
        for function in &mut profile.functions {
            let other = &recordings[random.below(recordings.len())];
            let key = |f: &pleach_profile::FunctionProfile| (f.id, f.cfg_hash);
            if let Ok(found) = other.functions.binary_search_by_key(&key(function), key) {
                *function = other.functions[found].clone();
            }
        }
        let path = Path::new(&folder).join(format!("{at:06}.pleach"));
        let encoded = pleach_profile::write::encode(&profile).expect("storable");
        std::fs::write(&path, encoded.parts().concat()).expect("written");
    }
}
