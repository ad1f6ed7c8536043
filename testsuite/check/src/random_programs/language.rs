//! The languages of random programs, and who makes them.

use pleach_harness::tools::Tool;

/// A language.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Language {
    /// C, by csmith.
    C,
    /// C++ with what csmith does not make, by our own generator.
    #[value(name = "c++")]
    Cxx,
}

impl Language {
    /// The name of a program's source.
    pub(super) fn source(self) -> &'static str {
        match self {
            Self::C => "program.c",
            Self::Cxx => "program.cpp",
        }
    }

    pub(super) fn compiler(self) -> Tool {
        match self {
            Self::C => Tool::Clang,
            Self::Cxx => Tool::ClangCxx,
        }
    }

    pub(super) fn flags(self) -> &'static [&'static str] {
        match self {
            // The folder of csmith's headers.
            Self::C => &["-w", "-I/usr/include/csmith"],
            Self::Cxx => &["-w", "-std=c++20"],
        }
    }

    /// A condition that holds, which the compiler does not know.
    pub(super) fn truth(self) -> &'static str {
        match self {
            // A global of csmith's own.
            Self::C => "crc32_context != 77",
            Self::Cxx => "unknown != 77",
        }
    }
}
