//! Reads the text of a sample profile, as llvm-profgen, `llvm-profdata merge --text` and AutoFDO's tools write it.
//!
//! Besides what [`SampleProfile::to_text`] writes there are contexts, lines with `!`, and places whose line is a probe:
//!
//! ```text
//! [main:3 @ function]:total:head        the function's counts where `main` called it at place 3
//!  !CFGChecksum: number                  the function's lines are probes of a graph with this hash
//!  !Attributes: number
//! ```

use super::{BodySample, FunctionSamples, SampleProfile};
use pleach_annotate::sources::SourcePlace;
use std::rc::Rc;

/// A line that is not one of a sample profile.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line} is not a line of a sample profile: {text}")]
pub struct ReadError {
    /// From 1.
    pub line: usize,
    /// Its beginning.
    pub text: String,
}

/// Characters of a line that an error repeats.
const SHOWN: usize = 60;
/// Functions inlined into each other that are told apart: LLVM's own limit is lower.
const MAX_DEPTH: usize = 200;

/// Whether a file that begins so is the text of a sample profile: `name:total:head`.
pub fn is_sample_profile(beginning: &[u8]) -> bool {
    let line = beginning.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let indented = line.starts_with(|first: char| first.is_whitespace());
    !indented && function_line(line.trim_end()).is_some()
}

/// `name:total:head`; the name and the head.
fn function_line(line: &str) -> Option<(&str, u64)> {
    let mut parts = line.rsplitn(3, ':');
    let (head, total, name) = (parts.next()?, parts.next()?, parts.next()?);
    total.trim().parse::<u64>().ok()?;
    Some((leaf(name), head.trim().parse().ok()?)).filter(|(name, _)| !name.is_empty())
}

/// The function of a context, `[caller:place @ function]`; other names as they are.
fn leaf(name: &str) -> &str {
    let Some(context) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) else {
        return name;
    };
    context.rsplit(" @ ").next().unwrap_or(context)
}

/// What a line inside of a function says.
enum Inside<'t> {
    Sample(SourcePlace, BodySample),
    Inlined(SourcePlace, &'t str),
    Checksum(u64),
    Other,
}

fn inside(line: &str) -> Option<Inside<'_>> {
    if let Some(metadata) = line.strip_prefix('!') {
        let checksum = metadata.strip_prefix("CFGChecksum:");
        return match checksum {
            Some(number) => number.trim().parse().ok().map(Inside::Checksum),
            None => Some(Inside::Other),
        };
    }
    let (place, rest) = line.split_once(": ")?;
    let (line_offset, discriminator) = place.split_once('.').unwrap_or((place, "0"));
    let place = SourcePlace {
        line_offset: line_offset.parse().ok()?,
        discriminator: discriminator.parse().ok()?,
    };
    let mut words = rest.split_whitespace();
    let first = words.next()?;
    let Ok(count) = first.parse() else {
        let (name, total) = rest.trim().rsplit_once(':')?;
        total.parse::<u64>().ok()?;
        return Some(Inside::Inlined(place, name));
    };
    let mut sample = BodySample {
        count,
        ..BodySample::default()
    };
    for word in words {
        let (callee, count) = word.rsplit_once(':')?;
        sample.callees.insert(callee.into(), count.parse().ok()?);
    }
    Some(Inside::Sample(place, sample))
}

impl SampleProfile {
    /// Reads a text. The contexts of a function are added up.
    ///
    /// # Errors
    /// A line is not one of a sample profile.
    pub fn from_text(text: &str) -> Result<Self, ReadError> {
        let mut profile = Self::default();
        // The function, and the places and names of those inlined into each other, outermost first.
        let mut name: Option<Rc<str>> = None;
        let mut path: Vec<(SourcePlace, Rc<str>)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let error = || ReadError {
                line: number + 1,
                text: line.trim().chars().take(SHOWN).collect(),
            };
            let content = line.trim_start_matches(' ');
            let depth = line.len() - content.len();
            if content.trim().is_empty() || content.starts_with('#') {
                continue;
            }
            if depth == 0 {
                let (leaf, head) = function_line(content.trim_end()).ok_or_else(error)?;
                let function: Rc<str> = leaf.into();
                let known = profile.functions.entry(function.clone()).or_default();
                known.head = known.head.saturating_add(head);
                (name, path) = (Some(function), Vec::new());
                continue;
            }
            if depth > path.len() + 1 || depth > MAX_DEPTH {
                return Err(error());
            }
            path.truncate(depth - 1);
            let emitted = name.as_ref().and_then(|name| profile.functions.get_mut(name));
            let mut function: &mut FunctionSamples = emitted.ok_or_else(error)?;
            for (place, name) in &path {
                let of_call = function.inlined.entry(*place).or_default();
                function = of_call.entry(name.clone()).or_default();
            }
            match inside(content.trim_end()).ok_or_else(error)? {
                Inside::Sample(place, sample) => function.body.entry(place).or_default().add(&sample),
                Inside::Inlined(place, name) => {
                    let name: Rc<str> = name.into();
                    function
                        .inlined
                        .entry(place)
                        .or_default()
                        .entry(name.clone())
                        .or_default();
                    path.push((place, name));
                }
                Inside::Checksum(checksum) => function.checksum = Some(checksum),
                Inside::Other => {}
            }
        }
        Ok(profile)
    }

    /// The counts of each function, those of its inlined copies added. Inlined copies have no head of their own.
    pub fn flat(&self) -> Self {
        let mut flat = Self::default();
        for (name, function) in &self.functions {
            flat.add(name, function);
        }
        flat
    }

    fn add(&mut self, name: &Rc<str>, function: &FunctionSamples) {
        let sum = self.functions.entry(name.clone()).or_default();
        sum.head = sum.head.saturating_add(function.head);
        sum.checksum = sum.checksum.or(function.checksum);
        for (place, sample) in &function.body {
            sum.body.entry(*place).or_default().add(sample);
        }
        for (name, function) in function.inlined.values().flatten() {
            self.add(name, function);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = "main:12:1\n 2: 0\n 2.3: 5 exit:1 puts:4\n 4.1: helper:7\n  1: 7\n";
        let profile = SampleProfile::from_text(text).unwrap();
        assert_eq!(profile.to_text(), text);
        insta::assert_snapshot!(profile.flat().to_text(), @r"
        helper:7:0
         1: 7
        main:5:1
         2: 0
         2.3: 5 exit:1 puts:4
        ");
    }

    #[test]
    fn contexts_are_added_up() {
        let text = "\
[main:3 @ f]:8:2
 1: 2
 2: 6 g:6
 !CFGChecksum: 844530426352218
[main:9 @ h:1 @ f]:1:1
 1: 1
 !CFGChecksum: 844530426352218
 !Attributes: 2
std::f(int):1:1
 1: 1
";
        let profile = SampleProfile::from_text(text).unwrap();
        insta::assert_snapshot!(profile.to_text(), @r"
        f:9:3
         1: 3
         2: 6 g:6
         !CFGChecksum: 844530426352218
        std::f(int):1:1
         1: 1
        ");
        assert_eq!(profile.functions["f"].checksum, Some(844_530_426_352_218));
    }

    #[test]
    fn other_texts_are_no_sample_profiles() {
        assert!(is_sample_profile(b"main:12:1\n 2: 0\n"));
        assert!(is_sample_profile(b"[main:3 @ f]:8:2\n"));
        for text in [
            "",
            "  400010\n",
            "PERF_RECORD_MMAP2 7/7: [0x400000(0x1000) @ 0x2000 00:1d 123 5]: r-xp /a",
            ":1:2",
        ] {
            assert!(!is_sample_profile(text.as_bytes()), "{text}");
        }
        for (text, line) in [
            ("main:1:1\n1: 2\n", 2),
            (" 1: 2\n", 1),
            ("main:1:1\n   1: 2\n", 2),
            ("main:1:1\n 1: f\n", 2),
        ] {
            assert_eq!(SampleProfile::from_text(text).unwrap_err().line, line, "{text}");
        }
    }
}
