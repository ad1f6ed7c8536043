//! A page of data and assets: one file without references to others. The data is JSON, compressed and in base64; the
//! page decompresses it.

use super::HtmlReport;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::io::Write as _;

const TEMPLATE: &str = include_str!("../../assets/index.html");
const STYLE: &str = include_str!("../../assets/report.css");

/// Defines a list of files and their contents.
macro_rules! assets {
    ($($file:literal),* $(,)?) => { [$(($file, include_str!(concat!("../../assets/", $file)))),*] };
}

/// Libraries, in the order of their dependencies.
const LIBRARIES: [(&str, &str); 15] = assets![
    "vendor/dagre.js",
    "vendor/d3-array.js",
    "vendor/d3-color.js",
    "vendor/d3-dispatch.js",
    "vendor/d3-ease.js",
    "vendor/d3-format.js",
    "vendor/d3-hierarchy.js",
    "vendor/d3-interpolate.js",
    "vendor/d3-selection.js",
    "vendor/d3-time.js",
    "vendor/d3-time-format.js",
    "vendor/d3-timer.js",
    "vendor/d3-scale.js",
    "vendor/d3-transition.js",
    "vendor/d3-flame-graph.js",
];

/// Their licences, which go with every copy.
const LICENCES: [(&str, &str); 4] = assets![
    "vendor/LICENSE-dagre",
    "vendor/LICENSE-d3",
    "vendor/LICENSE-d3-ease",
    "vendor/LICENSE-d3-flame-graph",
];

/// The page's own scripts, in the order of their dependencies.
const SCRIPTS: [(&str, &str); 16] = assets![
    "data.js",
    "dom.js",
    "table.js",
    "router.js",
    "paths.js",
    "graph.js",
    "source.js",
    "assembly.js",
    "overview.js",
    "functions.js",
    "function.js",
    "calls.js",
    "coverage.js",
    "build.js",
    "against.js",
    "main.js",
];

/// Why a page cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot encode the report: {0}")]
pub struct PageError(String);

impl HtmlReport {
    /// The page.
    ///
    /// # Errors
    /// Fails if a number has no form in JSON.
    pub fn to_html(&self) -> Result<String, PageError> {
        let json = serde_json::to_vec(self).map_err(|e| PageError(e.to_string()))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let packed = encoder.write_all(&json).and_then(|()| encoder.finish());
        let data = STANDARD.encode(packed.map_err(|e| PageError(e.to_string()))?);
        let mut scripts = String::new();
        let licences = LICENCES.map(|(name, text)| format!("{name}\n\n{text}")).join("\n");
        // No licence and no script has the end of a comment or of a script in it; a test checks that.
        let _ = writeln!(scripts, "<!--\n{licences}\n-->");
        for (name, text) in LIBRARIES.iter().chain(&SCRIPTS) {
            let text = text.split("//# sourceMappingURL").next().unwrap_or_default();
            let _ = writeln!(scripts, "<script data-file=\"{name}\">\n{text}\n</script>");
        }
        let page = TEMPLATE
            .replace("{{title}}", &escaped(&self.title))
            .replace("{{style}}", STYLE);
        Ok(page.replace("{{data}}", &data).replace("{{scripts}}", &scripts))
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assets_can_be_inlined() {
        for (name, text) in LIBRARIES.iter().chain(&SCRIPTS) {
            assert!(!text.contains("</script") && !text.contains("<!--"), "{name}");
        }
        for (name, text) in LICENCES {
            assert!(!text.contains("--"), "{name}");
        }
        assert!(!STYLE.contains("</style") && !STYLE.contains("url(") && !STYLE.contains("@import"));
    }

    #[test]
    fn nothing_is_fetched() {
        for (name, text) in SCRIPTS {
            for word in ["fetch(\"", "XMLHttpRequest", "import(", "http:", "https:"] {
                let text = text.replace("http://www.w3.org/2000/svg", "");
                assert!(!text.contains(word), "{name}: {word}");
            }
        }
    }

    #[test]
    fn titles_are_text() {
        assert_eq!(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
    }
}
