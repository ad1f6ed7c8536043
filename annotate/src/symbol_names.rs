//! Names of functions that a binary defines or imports, by the identifier that calls in graphs have.

use crate::id::FunctionGuid;
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::HashMap;
use std::path::Path;

/// Linkage names of all functions in a file's symbol tables, imported ones included.
///
/// # Errors
/// Fails if the file cannot be read, is no regular file, or is no ELF file.
pub fn read_symbol_names(path: &Path) -> std::io::Result<HashMap<FunctionGuid, String>> {
    if !path.metadata()?.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    let data = std::fs::read(path)?;
    let file = object::File::parse(&*data).map_err(std::io::Error::other)?;
    let mut names = HashMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let is_function = match symbol.kind() {
            SymbolKind::Text => true,
            // An imported function that is called through the linkage table may have no type.
            SymbolKind::Unknown => symbol.is_undefined(),
            _ => false,
        };
        let Some(name) = symbol.name().ok().filter(|name| is_function && !name.is_empty()) else {
            continue;
        };
        // GNU linkers append the version: `puts@GLIBC_2.2.5`.
        let name = name.split('@').next().unwrap_or(name);
        names.insert(FunctionGuid::of_name(name), name.to_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imported_and_own_functions_have_names() {
        let names = read_symbol_names(&std::env::current_exe().expect("this program")).expect("readable");
        let name_of = |name: &str| names.get(&FunctionGuid::of_name(name)).map(String::as_str);
        assert_eq!(name_of("memcpy"), Some("memcpy"));
        assert_eq!(name_of("main"), Some("main"));
        assert!(read_symbol_names(Path::new("/dev/null")).is_err());
        assert!(read_symbol_names(Path::new("/none")).is_err());
    }
}
