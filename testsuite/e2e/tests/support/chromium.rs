//! A browser without a window, driven as a user would.

use super::scratch;
use headless_chrome::protocol::cdp::Emulation::SetDeviceMetricsOverride;
use headless_chrome::protocol::cdp::Page::CaptureScreenshotFormatOption;
use headless_chrome::{Browser, LaunchOptions, Tab};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A page does each step at once; a loaded machine starts a browser slowly.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with a profile of its own.
pub struct Chromium {
    _browser: Browser,
    _data: tempfile::TempDir,
    /// The only tab.
    pub tab: Arc<Tab>,
}

impl Chromium {
    /// Opens a page of `pleach report --html`.
    pub fn open(page: &Path) -> Self {
        let data = scratch();
        let words = ["--disable-quic", "--disable-component-update", "--disable-gpu"];
        let options = LaunchOptions {
            path: Some("/usr/bin/chromium".into()),
            user_data_dir: Some(data.path().to_owned()),
            sandbox: false,
            window_size: Some((1280, 900)),
            idle_browser_timeout: PATIENCE,
            args: words.map(OsStr::new).to_vec(),
            // What it leaves there goes with the rest.
            process_envs: Some([("TMPDIR".to_owned(), data.path().display().to_string())].into()),
            ..LaunchOptions::default()
        };
        let browser = Browser::new(options).expect("chromium starts: testsuite/setup installs it");
        let tab = browser.new_tab().expect("a tab");
        tab.set_default_timeout(PATIENCE);
        let chromium = Self {
            _browser: browser,
            _data: data,
            tab,
        };
        chromium
            .tab
            .navigate_to(&format!("file://{}", page.display()))
            .expect("the page opens");
        chromium.waits_for("document.documentElement.dataset.ready === ''");
        chromium
    }

    /// What an expression gives, as text; `None` if it throws.
    fn evaluated(&self, expression: &str) -> Option<String> {
        let found = self.tab.evaluate(&format!("String({expression})"), false);
        let value = found.expect(expression).value?;
        value.as_str().map(str::to_owned)
    }

    /// What an expression gives, as text.
    pub fn text(&self, expression: &str) -> String {
        let found = self.evaluated(expression);
        found.unwrap_or_else(|| panic!("{expression}: no text"))
    }

    /// What an expression gives, as a number.
    pub fn number(&self, expression: &str) -> f64 {
        self.text(expression)
            .parse()
            .unwrap_or_else(|_| panic!("{expression}: {}", self.text(expression)))
    }

    /// Waits until an expression is true. It may throw before: a page that is being loaded has no elements.
    pub fn waits_for(&self, condition: &str) {
        let begin = Instant::now();
        while self.evaluated(condition).as_deref() != Some("true") {
            assert!(
                begin.elapsed() < PATIENCE,
                "{condition}: {}",
                self.text("document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses a key.
    pub fn press(&self, key: &str) {
        self.tab.press_key(key).expect(key);
    }

    /// Clicks on the first element of a selector.
    pub fn click(&self, selector: &str) {
        self.text(&format!("document.querySelector({selector:?}).click()"));
    }

    /// The texts of all elements, in their order.
    pub fn all(&self, selector: &str) -> Vec<String> {
        let joined = self.text(&format!(
            "[...document.querySelectorAll({selector:?})].map((e) => e.textContent.trim()).join('\\n')"
        ));
        joined.lines().map(str::to_owned).collect()
    }

    /// Makes the window this wide.
    pub fn resize(&self, width: u32) {
        let size = serde_json::json!({ "width": width, "height": 900, "deviceScaleFactor": 1.0, "mobile": false });
        let size: SetDeviceMetricsOverride = serde_json::from_value(size).expect("numbers");
        self.tab.call_method(size).expect("another width");
    }

    /// A picture of the page.
    pub fn picture(&self) -> Vec<u8> {
        let png = CaptureScreenshotFormatOption::Png;
        self.tab.capture_screenshot(png, None, None, true).expect("a picture")
    }
}
