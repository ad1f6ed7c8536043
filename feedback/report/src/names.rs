//! Names of functions, as people write and read them.

use std::borrow::Cow;

/// How names are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// As linkers know them, not demangled.
    pub mangled: bool,
    /// Columns of the terminal that they are shown on, which tables fit.
    pub terminal_columns: Option<usize>,
}

impl Names {
    /// A name as it is shown.
    pub fn shown(&self, linkage: &str) -> String {
        match self.mangled {
            true => linkage.to_owned(),
            false => demangled(linkage).into_owned(),
        }
    }
}

impl Names {
    /// A called function's name: without parameters, return type and template arguments.
    pub fn called(&self, linkage: &str) -> String {
        match self.mangled {
            true => linkage.to_owned(),
            false => without_arguments(without_parameters(&demangled(linkage))),
        }
    }
}

/// A demangled name without template arguments and return type: `f<…>` for `void f<int, char>`.
fn without_arguments(name: &str) -> String {
    let (mut out, mut depth) = (String::new(), 0_u32);
    for (at, letter) in name.char_indices() {
        // `operator<`, `operator bool`: what follows belongs to the name.
        if depth == 0 && is_operator(&name[at..]) && !out.ends_with(is_in_identifier) {
            return out + &name[at..];
        }
        match letter {
            '<' if depth == 0 && !out.is_empty() && !out.ends_with(':') => {
                out += "<…>";
                depth = 1;
            }
            '<' if depth > 0 => depth += 1,
            '>' if depth > 0 => depth -= 1,
            // A return type ends here.
            ' ' if depth == 0 && !out.ends_with("(anonymous") => out.clear(),
            _ if depth == 0 => out.push(letter),
            _ => {}
        }
    }
    out
}

/// Whether a name begins with the word `operator`.
fn is_operator(name: &str) -> bool {
    let rest = name.strip_prefix("operator");
    rest.is_some_and(|rest| !rest.starts_with(is_in_identifier))
}

fn is_in_identifier(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// A C++ or Rust name in the form of its source. Other names stay as they are.
pub fn demangled(linkage: &str) -> Cow<'_, str> {
    // What LLVM adds when it makes a local function global.
    let (base, _) = linkage.split_once(".llvm.").unwrap_or((linkage, ""));
    if let Ok(rust) = rustc_demangle::try_demangle(base) {
        // Without hashes of crates.
        return format!("{rust:#}").into();
    }
    if base.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(base)
        && let Ok(text) = symbol.demangle()
    {
        return text.into();
    }
    linkage.into()
}

/// A text whose linkage names are demangled, without parameters.
pub fn demangled_within(text: &str) -> Cow<'_, str> {
    if !text.contains("_Z") && !text.contains("_R") {
        return text.into();
    }
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '$');
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(|letter| !is_part(letter)) {
        let word = piece.trim_end_matches(|letter| !is_part(letter));
        out += without_parameters(&demangled(word));
        out += &piece[word.len()..];
    }
    out.into()
}

/// Without the middle, so that the type and the method remain.
pub(crate) fn cut(name: &str, columns: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= columns {
        return name.to_owned();
    }
    let (first, last) = ((columns - 1) / 2, columns / 2);
    let (head, tail) = (&letters[..first], &letters[letters.len() - last..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

/// A way to name a function.
#[derive(Clone, Copy)]
enum NameMatch {
    Exact,
    Demangled,
    End,
    WithoutArguments,
}

impl NameMatch {
    fn fits(self, linkage: &str, id: &str, wanted: &str) -> bool {
        match self {
            Self::Exact => linkage == wanted || id == wanted,
            Self::Demangled => demangled(linkage) == wanted,
            Self::End => is_end(without_parameters(&demangled(linkage)), wanted),
            Self::WithoutArguments => is_end(&bare(&demangled(linkage)), wanted),
        }
    }
}

/// Whether a name, or the end of it after its scope or return type, is what is wanted.
fn is_end(name: &str, wanted: &str) -> bool {
    let scope = name.strip_suffix(wanted);
    scope.is_some_and(|scope| scope.is_empty() || scope.ends_with("::") || scope.ends_with(' '))
}

/// A demangled name without parameters, return type and template arguments: `a::f` for `void a::f<int>(char)`.
fn bare(name: &str) -> String {
    without_arguments(without_parameters(name)).replace("<…>", "")
}

/// The functions that a user means: those of this linkage name or identifier; else those of this demangled name; else
/// those whose name without parameters ends in it, such as `Parser::next` or `next`; else those of which this holds
/// without template arguments. If there are none, the names most like it are the error: those that contain it, in the
/// order of `functions`, else those that differ by a slip or two. Long ones are without parameters and template arguments.
///
/// # Errors
/// No function has the name.
pub fn meant<T>(
    functions: impl Iterator<Item = T> + Clone,
    name_of: impl for<'t> Fn(&'t T) -> (&'t str, String),
    wanted: &str,
) -> Result<Vec<T>, Vec<String>> {
    for way in [
        NameMatch::Exact,
        NameMatch::Demangled,
        NameMatch::End,
        NameMatch::WithoutArguments,
    ] {
        let found: Vec<T> = functions
            .clone()
            .filter(|function| {
                let (name, id) = name_of(function);
                way.fits(name, &id, wanted)
            })
            .collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let names: Vec<_> = functions
        .map(|function| demangled(name_of(&function).0).into_owned())
        .collect();
    let containing = suggested(names.iter().filter(|name| name.contains(wanted)));
    if !containing.is_empty() {
        return Err(containing);
    }
    // None contains it: a slip of the keyboard, perhaps.
    let bare_wanted = bare(wanted);
    let distance = |name: &String| strsim::damerau_levenshtein(last_part(&bare(name)), last_part(&bare_wanted));
    // In a short name, a slip makes another name of it.
    let most = MAX_SLIPS.min(last_part(&bare_wanted).len() / 3);
    let near = names.iter().map(|name| (distance(name), name));
    let mut near: Vec<_> = near.filter(|(distance, _)| *distance <= most).collect();
    near.sort_by_key(|(distance, _)| *distance);
    Err(suggested(near.into_iter().map(|(_, name)| name)))
}

/// The first names, each once.
fn suggested<'n>(names: impl Iterator<Item = &'n String>) -> Vec<String> {
    let mut suggested: Vec<String> = Vec::new();
    for name in names {
        let name = if name.len() > MAX_SUGGESTED {
            bare(name)
        } else {
            name.clone()
        };
        if !suggested.contains(&name) {
            suggested.push(name);
        }
        if suggested.len() == MAX_SUGGESTIONS {
            break;
        }
    }
    suggested
}

/// A name without its scope.
fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Names that are suggested in place of an unknown one.
const MAX_SUGGESTIONS: usize = 3;
/// Letters by which a suggested name differs from the unknown one, its scope left aside.
const MAX_SLIPS: usize = 2;
/// Longest name that is suggested as it is.
const MAX_SUGGESTED: usize = 80;

/// A demangled C++ name up to its parameters. Parentheses of `operator()`, of anonymous namespaces and in template
/// arguments are part of the name.
fn without_parameters(name: &str) -> &str {
    let (mut depth, mut end) = (0_u32, name.len());
    for (at, letter) in name.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && !name[at..].starts_with("(anonymous") && !name[..at].ends_with("operator") => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPP: &str = "_ZN6Parser4nextERKSs";
    const RUST: &str = "_RNvMNtCslNYArtu3iFV_5alloc6stringNtB2_6String4push";
    const TEMPLATE: &str = "_ZN4mathI1xE5solveINS_3RefIdEELi3EEEvRKT_";
    const LEGACY: &str = "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE";

    #[test]
    fn a_slip_of_the_keyboard_is_forgiven() {
        assert_eq!(
            meant_of("nexxt"),
            Err(vec!["Parser::next(std::string const&)".to_owned()])
        );
        assert_eq!(meant_of("Parser::nxet"), meant_of("nexxt"));
        assert_eq!(meant_of("solvee").unwrap_err().len(), 1);
        assert_eq!(meant_of("mn"), Err(Vec::new()), "too short to be like another");
        assert_eq!(meant_of("elsewhere"), Err(Vec::new()));
    }

    #[test]
    fn names_within_a_text_are_demangled() {
        let text = format!("placed 2 of 3, after {CPP}, which calls it");
        assert_eq!(
            demangled_within(&text),
            "placed 2 of 3, after Parser::next, which calls it"
        );
        assert_eq!(demangled_within("placed 1 of 3"), "placed 1 of 3");
    }

    fn meant_of(wanted: &str) -> Result<Vec<&'static str>, Vec<String>> {
        let all = ["main", CPP, RUST, TEMPLATE, LEGACY, "_ZN3app4mainEv"];
        meant(all.into_iter(), |name| (name, format!("id of {name}")), wanted)
    }

    #[test]
    fn names_are_as_in_the_source() {
        let shown = [CPP, RUST, LEGACY, "main", "_Zx", "f.llvm.123", "_ZL1fv.llvm.77"].map(demangled);
        insta::assert_snapshot!(shown.join("\n"), @"
        Parser::next(std::string const&)
        <alloc::string::String>::push
        core::fmt::Formatter::pad
        main
        _Zx
        f.llvm.123
        f()
        ");
    }

    #[test]
    fn long_names_lose_their_middle() {
        let shown = cut("a_name_that_is_much_too_long_for_it", 24);
        assert_eq!(shown, "a_name_that…_long_for_it");
        assert_eq!(cut("short", 24), "short");
    }

    #[test]
    fn names_stay_mangled_if_asked() {
        let mangled = Names {
            mangled: true,
            terminal_columns: None,
        };
        assert_eq!(mangled.shown(RUST), RUST);
    }

    #[test]
    fn functions_are_found_by_parts_of_their_names() {
        assert_eq!(meant_of("main"), Ok(vec!["main"]));
        assert_eq!(meant_of("app::main"), Ok(vec!["_ZN3app4mainEv"]));
        assert_eq!(meant_of(&format!("id of {RUST}")), Ok(vec![RUST]));
        assert_eq!(meant_of("next"), Ok(vec![CPP]));
        assert_eq!(meant_of("Parser::next"), Ok(vec![CPP]));
        assert_eq!(meant_of("String>::push").map(|found| found.len()), Ok(1));
        assert_eq!(meant_of("pad"), Ok(vec![LEGACY]));
        for name in ["solve", "math::solve", "math<x>::solve<math::Ref<double>, 3>"] {
            assert_eq!(meant_of(name), Ok(vec![TEMPLATE]), "{name}");
        }
        assert_eq!(meant_of("solve<").unwrap_err().len(), 1);
        assert_eq!(meant_of("ext").unwrap_err().len(), 1);
        assert_eq!(meant_of("nothing"), Err(vec![]));
    }

    #[test]
    fn long_names_are_suggested_without_arguments() {
        let long = "_ZN1aI9long_namedS0_S0_S0_S0_S0_S0_E5solveEv";
        let err = meant([TEMPLATE, long, long].into_iter(), |name| (name, String::new()), "olve");
        let full = "void math<x>::solve<math::Ref<double>, 3>(math::Ref<double> const&)".to_owned();
        assert_eq!(err, Err(vec![full, "a::solve".to_owned()]));
    }

    #[test]
    fn called_names_are_short() {
        let short = |name: &str| without_arguments(without_parameters(name));
        assert_eq!(short("plain"), "plain");
        assert_eq!(short("void a::f<int, b<c> >(int)"), "a::f<…>");
        assert_eq!(short("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
        assert_eq!(short("<alloc::string::String>::push"), "<alloc::string::String>::push");
        assert_eq!(short("a::operator<(a)"), "a::operator<(a)");
        assert_eq!(
            short("std::list<char, int>::operator[](long)"),
            "std::list<…>::operator[]"
        );
        assert_eq!(short("a<int>::operator bool()"), "a<…>::operator bool");
        assert_eq!(short("bool std::operator==<char>(a)"), "std::operator==<char>");
        assert_eq!(short("my_operator<int>()"), "my_operator<…>");
        assert_eq!(Names::default().called(CPP), "Parser::next");
    }

    #[test]
    fn parameters_end_a_name() {
        assert_eq!(without_parameters("a::f(int (*)(long))"), "a::f");
        assert_eq!(
            without_parameters("a<void (int)>::operator()(int) const"),
            "a<void (int)>::operator()"
        );
        assert_eq!(
            without_parameters("(anonymous namespace)::f(int)"),
            "(anonymous namespace)::f"
        );
        assert_eq!(without_parameters("plain"), "plain");
    }
}
