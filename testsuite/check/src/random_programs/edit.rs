//! Random edits of a random program, such as a profile of an older version meets.
//!
//! Statements are removed, repeated or made conditional, and functions are renamed. Only statements that assign to
//! globals or through pointers are edited: without others, local variables would not be initialised. An edit may still
//! make a program undefined, which sanitizers must rule out.

use std::ops::AddAssign;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Numbers of edits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Edits {
    /// Statements that were removed, repeated or made conditional.
    pub statements: u64,
    /// Functions that were renamed.
    pub functions: u64,
}

impl AddAssign for Edits {
    fn add_assign(&mut self, other: Self) {
        self.statements += other.statements;
        self.functions += other.functions;
    }
}

/// Edits a source. Equal sources and seeds give equal results. `truth`: a condition that holds, which the compiler does
/// not know.
pub fn edit(source: &str, seed: u64, truth: &str) -> (String, Edits) {
    let mut edits = Edits::default();
    let mut edited = String::with_capacity(source.len());
    for (number, line) in source.lines().enumerate() {
        let drawn = xxh3_64_with_seed(&(number as u64).to_le_bytes(), seed);
        match (is_editable(line), drawn % 16) {
            (true, 0) => edited.push(';'),
            (true, 1) => edited += &format!("{{ {line} {line} }}"),
            (true, 2) => edited += &format!("if ({truth}) {{ {line} }}"),
            (true, 3) => edited += &format!("if (!({truth})) {{ {line} }} else {{ {line} }}"),
            _ => {
                edited += line;
                edited.push('\n');
                continue;
            }
        }
        edited.push('\n');
        edits.statements += 1;
    }
    for number in 1..=u64::from(u8::MAX) {
        let name = format!("func_{number}");
        let is_drawn = xxh3_64_with_seed(name.as_bytes(), seed).is_multiple_of(4);
        if is_drawn && let Some(renamed) = rename(&edited, &name, &format!("renamed_{number}")) {
            edited = renamed;
            edits.functions += 1;
        }
    }
    (edited, edits)
}

/// Replaces a name that ends with its number; `None` where it does not occur.
fn rename(source: &str, name: &str, new: &str) -> Option<String> {
    let mut parts = source.split(name);
    let mut renamed = parts.next()?.to_owned();
    let mut is_found = false;
    for part in parts {
        let is_longer = part.starts_with(|c: char| c.is_ascii_digit());
        is_found |= !is_longer;
        renamed += if is_longer { name } else { new };
        renamed += part;
    }
    is_found.then_some(renamed)
}

/// Whether a line is a whole statement that assigns to a global or through a pointer.
fn is_editable(line: &str) -> bool {
    let text = line.trim_start();
    let is_indented = text.len() < line.len();
    is_indented && (text.starts_with("(*") || text.starts_with("g_")) && text.ends_with(';') && !text.contains("[i]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_assignments_to_what_others_see_are_edited() {
        for editable in ["    g_1 = 2;", "  (*l_2) ^= func_3(g_1);"] {
            assert!(is_editable(editable), "{editable}");
        }
        for other in [
            "g_1 = 2;",
            "    l_1 = 2;",
            "    return g_1;",
            "    (*l_1)[i] = 2;",
            "    g_1 =",
        ] {
            assert!(!is_editable(other), "{other}");
        }
    }

    #[test]
    fn whole_names_are_replaced() {
        let renamed = rename("func_2(func_21, &func_2);", "func_2", "f");
        assert_eq!(renamed.as_deref(), Some("f(func_21, &f);"));
        assert_eq!(rename("func_21();", "func_2", "f"), None);
    }

    #[test]
    fn statements_and_names_change_and_nothing_else() {
        let statement = "    g_1 = func_2(g_1);\n";
        let source = format!("int32_t func_2(int32_t);\n{}    return 0;\n", statement.repeat(200));
        let (edited, edits) = edit(&source, 1, "x");
        assert!((20..90).contains(&edits.statements), "{edits:?}");
        assert_eq!(edited.lines().count(), source.lines().count());
        assert_eq!(edited.matches("    return 0;\n").count(), 1);
        assert_eq!(edit(&source, 1, "x"), (edited, edits));
        let renamed = (0..20)
            .map(|seed| edit(&source, seed, "x"))
            .filter(|(_, edits)| edits.functions == 1);
        let renamed: Vec<String> = renamed.map(|(edited, _)| edited).collect();
        assert!((1..15).contains(&renamed.len()), "{}", renamed.len());
        assert!(
            renamed
                .iter()
                .all(|edited| !edited.contains("func_2(") && edited.starts_with("int32_t renamed_2("))
        );
    }
}
