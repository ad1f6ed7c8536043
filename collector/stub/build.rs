//! Links the stub into few pages: two segments in place of four, and nothing of the standard library. Each segment, and
//! each page that a process touches, costs every process of a recording some microseconds.

#[path = "link_options.rs"]
mod link_options;

const OPTIONS: [&str; 5] = [
    // Nothing here unwinds. The standard library's personality function, which its frame descriptions name, would link
    // all that a panic needs.
    "-Wl,--defsym=rust_eh_personality=0",
    "-Wl,-z,norelro",
    "-Wl,-z,noseparate-code",
    "-Wl,--no-rosegment",
    // The writable segment begins on a page, and so fits in one.
    "-Wl,-z,separate-loadable-segments",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=link_options.rs");
    // No start files of the compiler: they have constructors, destructors and imports of their own.
    println!("cargo::rustc-cdylib-link-arg=-nostartfiles");
    link_options::add(&OPTIONS);
}
