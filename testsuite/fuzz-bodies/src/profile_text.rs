//! The text of a profile.

use crate::input::Input;
use crate::profile::made_of;
use pleach_profile::Profile;
use pleach_profile::write::encode;
use pleach_report::profile_text::{from_text, to_text};

/// Text; or a profile that is printed and read.
pub fn profile_text(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 2 {
        0 => {
            if let Ok(profile) = std::str::from_utf8(input.0)
                .map_err(drop)
                .and_then(|text| from_text(text).map_err(drop))
            {
                check(&profile);
            }
        }
        _ => check(&made_of(&mut input)),
    }
}

/// A profile that a file can hold has the same bytes after it was printed and read.
fn check(profile: &Profile) {
    let Ok(encoded) = encode(profile) else { return };
    let text = to_text(profile).expect("printable");
    let again = from_text(&text).expect("what was printed is read");
    let read = encode(&again).expect("storable");
    assert!(read.parts() == encoded.parts());
}
