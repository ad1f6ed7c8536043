//! The section of what `fork` changes in a child. It has some hundred bytes, so that a child copies one page for all of
//! it, or two at worst: copies are most of what `fork` costs.

/// Defines statics in the section.
macro_rules! state_section {
    ($($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $value:expr;)*) => {
        $(
            $(#[$attribute])*
            // SAFETY: a section of writable data; the linker adds nothing to it.
            #[unsafe(link_section = "pleach_state")]
            $visibility static $name: $type = $value;
        )*
    };
}
pub(crate) use state_section;
