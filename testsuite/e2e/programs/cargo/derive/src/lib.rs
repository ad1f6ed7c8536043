//! `#[derive(Named)]`: a constant with the type's name.

use proc_macro::TokenStream;

#[proc_macro_derive(Named)]
pub fn named(input: TokenStream) -> TokenStream {
    let words: Vec<String> = input.into_iter().map(|token| token.to_string()).collect();
    let name = words.iter().skip_while(|word| *word != "struct").nth(1).expect("a struct");
    format!("impl {name} {{ const NAME: &'static str = \"{name}\"; }}").parse().expect("an implementation")
}
