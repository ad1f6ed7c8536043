//! The functions that a file defines, by all of their names.

use crate::probe::Address;
use object::{Object, ObjectSymbol, SymbolFlags, SymbolKind, elf};
use std::path::Path;

/// A name of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionSymbol {
    /// Linkage name.
    pub name: String,
    /// Where it begins.
    pub address: Address,
    /// Its size in bytes; 0 if unknown.
    pub size: u64,
    /// It only chooses the function of this name when the program is loaded (`STT_GNU_IFUNC`).
    pub is_resolver: bool,
}

/// All functions in a file's symbol tables.
///
/// # Errors
/// Fails if the file cannot be read, is no regular file, or is no ELF file.
pub fn read_function_symbols(path: &Path) -> std::io::Result<Vec<FunctionSymbol>> {
    if !path.metadata()?.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    let data = std::fs::read(path)?;
    let file = object::File::parse(&*data).map_err(std::io::Error::other)?;
    let defined = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    let mut found: Vec<FunctionSymbol> = defined
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            let is_resolver = match symbol.flags() {
                SymbolFlags::Elf { st_info, .. } => st_info.st_type() == elf::STT_GNU_IFUNC,
                _ => false,
            };
            Some(FunctionSymbol {
                name: name.split('@').next().unwrap_or(name).to_owned(),
                address: Address(symbol.address()),
                size: symbol.size(),
                is_resolver,
            })
        })
        .collect();
    found.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
    found.dedup();
    Ok(found)
}

/// The function that an address lies in, the first of its names.
pub fn function_at(functions: &[FunctionSymbol], address: Address) -> Option<&FunctionSymbol> {
    let after = functions.partition_point(|function| function.address <= address);
    let before = functions.get(..after)?;
    let start = before.last()?.address;
    let mut same = before[before.partition_point(|function| function.address < start)..].iter();
    same.find(|function| address.0 - start.0 < function.size.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address() {
        let own = std::env::current_exe().expect("this program");
        let functions = read_function_symbols(&own).expect("readable");
        let main = functions.iter().find(|function| function.name == "main").expect("main");
        assert!(!main.is_resolver && main.size > 0);
        let inside = Address(main.address.0 + main.size - 1);
        assert_eq!(
            function_at(&functions, inside).map(|function| function.address),
            Some(main.address)
        );
        assert_eq!(function_at(&functions, Address(0)), None);
        assert!(read_function_symbols(Path::new("/none")).is_err());
    }
}
