//! Reads optimisation records: a stream of YAML documents, each a remark. Records of large files have millions of
//! remarks of other passes, so documents are cut out of the stream as text and only those of interest are parsed.

use saphyr_parser::{Event, Parser};
use std::io::{self, BufRead};

/// Passes whose remarks are read: pleach's, and the inliner's.
const PASSES: [&str; 2] = ["pleach", "inline"];
/// A larger document is no remark.
const MAX_DOCUMENT: usize = 1 << 20;

/// A remark.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Remark {
    /// Whether it says what was done; otherwise, what was not.
    pub passed: bool,
    /// `pleach` or `inline`.
    pub pass: String,
    /// The remark's name, such as `Superblocks`.
    pub name: String,
    /// Linkage name of the function that it is about.
    pub function: String,
    /// The source file, where the build has debug information.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// Pieces of the text, by key. Plain text has the key `String`.
    pub arguments: Vec<(String, String)>,
    /// The text without the function's name.
    pub text: String,
}

impl Remark {
    /// The first piece with a key.
    pub fn argument(&self, key: &str) -> Option<&str> {
        self.arguments
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }

    /// The number with a key; 0 if there is none.
    pub(super) fn number(&self, key: &str) -> u64 {
        self.argument(key).and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// It is no optimisation record.
    #[error("line {line}: {what}: not an optimisation record of clang (-fsave-optimization-record)")]
    Malformed {
        /// The line where the document begins.
        line: usize,
        /// The defect.
        what: String,
    },
}

/// The remarks of a record that are about pleach or inlining. `consumed` is told the number of bytes of each line.
///
/// # Errors
/// The record cannot be read, or is malformed.
pub fn read_record(mut record: impl BufRead, consumed: &mut dyn FnMut(usize)) -> Result<Vec<Remark>, RecordError> {
    let mut remarks = Vec::new();
    let (mut document, mut begin, mut number) = (String::new(), 1, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = record.by_ref().take_line(&mut line)?;
        consumed(read);
        number += 1;
        let text = String::from_utf8_lossy(&line);
        if read == 0 || text.starts_with("--- ") || document.len() > MAX_DOCUMENT {
            remarks.extend(of_document(&document, begin)?);
            document.clear();
            begin = number;
        }
        if read == 0 {
            return Ok(remarks);
        }
        document += &text;
    }
}

/// Lines of bounded length, so that a file without line ends is refused and not loaded.
trait TakeLine {
    fn take_line(self, line: &mut Vec<u8>) -> io::Result<usize>;
}

impl<R: BufRead> TakeLine for R {
    fn take_line(self, line: &mut Vec<u8>) -> io::Result<usize> {
        self.take(MAX_DOCUMENT as u64).read_until(b'\n', line)
    }
}

fn of_document(document: &str, line: usize) -> Result<Option<Remark>, RecordError> {
    if document.trim().is_empty() || document.trim() == "..." {
        return Ok(None);
    }
    let malformed = |what: &str| RecordError::Malformed {
        line,
        what: what.into(),
    };
    if !document.starts_with("--- !") {
        return Err(malformed("no document that begins with '--- !'"));
    }
    if !PASSES
        .iter()
        .any(|pass| document.lines().any(|line| is_pass(line, pass)))
    {
        return Ok(None);
    }
    let mut remark = parse(document).map_err(|what| malformed(&what))?;
    remark.passed = document.starts_with("--- !Passed");
    // Between the function's name and what is said about it.
    remark.text = remark.text.trim_start_matches(": ").to_owned();
    if remark.function.is_empty() {
        return Err(malformed("a remark without a function"));
    }
    Ok(Some(remark))
}

fn is_pass(line: &str, pass: &str) -> bool {
    line.strip_prefix("Pass:")
        .is_some_and(|value| value.trim().trim_matches('\'') == pass)
}

/// Where a scalar is: in the remark itself, in the location, in the list of pieces, or deeper.
fn parse(document: &str) -> Result<Remark, String> {
    let mut remark = Remark::default();
    let (mut depth, mut outer, mut key): (usize, String, Option<String>) = (0, String::new(), None);
    for event in Parser::new_from_str(document) {
        match event.map_err(|error| error.to_string())?.0 {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                if depth == 1 {
                    outer = key.take().unwrap_or_default();
                }
                depth += 1;
                key = None;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                depth = depth.saturating_sub(1);
                key = None;
            }
            Event::Scalar(text, ..) => match key.take() {
                None => key = Some(text.into_owned()),
                Some(key) => remark.add(depth, &outer, key, text.into_owned()),
            },
            _ => {}
        }
    }
    Ok(remark)
}

impl Remark {
    fn add(&mut self, depth: usize, outer: &str, key: String, value: String) {
        match (depth, outer, key.as_str()) {
            (1, _, "Pass") => self.pass = value,
            (1, _, "Name") => self.name = value,
            (1, _, "Function") => self.function = value,
            (2, "DebugLoc", "File") => self.file = Some(value),
            (2, "DebugLoc", "Line") => self.line = value.parse().ok(),
            (3, "Args", _) => {
                // Every remark of pleach begins with its function, which readers know already.
                if key != "Function" {
                    self.text += &value;
                }
                self.arguments.push((key, value));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "--- !Missed\nPass:            licm\nName:            LoadWithLoopInvariantAddressConditionallyExecuted\nFunction:        f\n...\n\
        --- !Passed\nPass:            pleach\nName:            Superblocks\nDebugLoc:        { File: 'a b.c', Line: 5, Column: 1 }\nFunction:        _Z1fv\n\
        Args:\n  - Function:        _Z1fv\n  - String:          ': '\n  - Superblocks:     '2'\n  - String:          ' superblocks formed: '\n  - Copied:          '17'\n\
        \x20 - String:          |\n      instructions copied\n  - Trace:           3 4\n...\n\
        --- !Passed\nPass:            inline\nName:            Inlined\nFunction:        g\nArgs:\n  - String:          ''''\n  - Callee:          h\n    DebugLoc:        { File: a.c, Line: 1, Column: 0 }\n...\n";

    fn read(text: &str) -> Result<Vec<Remark>, RecordError> {
        read_record(text.as_bytes(), &mut |_| ())
    }

    #[test]
    fn remarks_of_other_passes_are_left_out() {
        let remarks = read(RECORD).unwrap();
        let [superblocks, inlined] = &remarks[..] else {
            panic!("{remarks:?}")
        };
        assert_eq!(
            (
                superblocks.function.as_str(),
                superblocks.file.as_deref(),
                superblocks.line
            ),
            ("_Z1fv", Some("a b.c"), Some(5))
        );
        assert_eq!(
            (superblocks.number("Superblocks"), superblocks.number("Copied")),
            (2, 17)
        );
        assert_eq!(superblocks.argument("Trace"), Some("3 4"));
        assert!(
            superblocks.passed
                && superblocks
                    .text
                    .starts_with("2 superblocks formed: 17instructions copied")
        );
        assert_eq!(
            (inlined.pass.as_str(), inlined.argument("Callee"), inlined.line),
            ("inline", Some("h"), None)
        );
    }

    #[test]
    fn every_prefix_is_read_or_refused() {
        for end in 0..RECORD.len() {
            // What is cut off may be an error; it must not be a panic.
            let _ = read(&RECORD[..end]);
        }
    }

    #[test]
    fn errors_name_the_line() {
        let bad = RECORD.replace("Function:        g", "Function:        [");
        assert!(
            read(&bad).unwrap_err().to_string().starts_with("line 21: "),
            "{}",
            read(&bad).unwrap_err()
        );
        assert!(
            read("hello\n")
                .unwrap_err()
                .to_string()
                .contains("not an optimisation record")
        );
        assert!(read(&"x".repeat(3 << 20)).is_err(), "a file without line ends");
    }

    #[test]
    fn all_bytes_are_consumed() {
        let mut sum = 0;
        read_record(RECORD.as_bytes(), &mut |bytes| sum += bytes).unwrap();
        assert_eq!(sum, RECORD.len());
    }
}
