//! Programs whose spills are studied: where their assembly comes from, and the calls with their arguments.
//!
//! Nothing here is copied from others: assembly is read from packages that cargo keeps. The rest is compiled on the spot, from our
//! own sources or from a package's headers, with flags that are reported.
#![forbid(unsafe_code)]

use core::fmt;

/// Why a program is not here: a package that cannot be fetched, a compiler that is missing, a file that is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotHere(pub String);

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for NotHere {}

/// An assembly text that was found or made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// Its name, for messages: `libjade-sys 0.0.2-pre.2, jazz/sha256.s`, or `sha512.c by gcc`.
    pub name: String,
    /// The text.
    pub text: String,
    /// The compiler with its flags, of a text that was made here.
    pub made_by: Option<String>,
}
