//! The envelope of all JSON output: what printed it, and the version of its form.

/// Version of the form of all JSON output. It changes when a key is removed or changes its meaning.
pub const SCHEMA: u32 = 1;

/// Puts `{"pleach": {"version": …, "command": …, "schema": …}` in front of a report's JSON. The keys of an object follow
/// it; an array becomes the value of `key`.
pub fn enveloped(command: &str, key: &str, json: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let head =
        format!("{{\n  \"pleach\": {{\"version\": \"{version}\", \"command\": \"{command}\", \"schema\": {SCHEMA}}}");
    let json = json.trim();
    match json.strip_prefix('{') {
        Some(rest) if rest.trim_start() == "}" => format!("{head}\n}}\n"),
        Some(rest) => format!("{head},{rest}\n"),
        None => format!("{head},\n  \"{key}\": {json}\n}}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(text: &str) -> Value {
        let mut value: Value = serde_json::from_str(text).expect("JSON");
        let head = value.as_object_mut().and_then(|object| object.remove("pleach"));
        let head = head.expect("an envelope");
        assert_eq!(
            head,
            json!({"version": env!("CARGO_PKG_VERSION"), "command": "show", "schema": 1})
        );
        value
    }

    #[test]
    fn data_is_the_same_inside() {
        let of = |json: &str| read(&enveloped("show", "rows", json));
        assert_eq!(of("{\n  \"a\": 1\n}\n"), json!({"a": 1}));
        assert_eq!(of("{}"), json!({}));
        assert_eq!(of("{ }"), json!({}));
        assert_eq!(
            of("[\n{\"a\":1},\n{\"a\":2}\n]\n"),
            json!({"rows": [{"a": 1}, {"a": 2}]})
        );
        assert_eq!(of("[\n]\n"), json!({"rows": []}));
    }
}
