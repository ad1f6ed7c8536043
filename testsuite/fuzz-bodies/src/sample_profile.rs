//! The text of a sample profile.

use pleach_export::sample_profile::SampleProfile;

/// Text: what is read and printed is read the same.
pub fn sample_profile(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(profile) = SampleProfile::from_text(&text) else {
        return;
    };
    let printed = profile.flat().to_text();
    let again = SampleProfile::from_text(&printed).expect("what was printed is read");
    assert_eq!(again.to_text(), printed);
}
