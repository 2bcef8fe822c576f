//! Assumptions under which a rewrite may be proved, by name.
#![forbid(unsafe_code)]

use core::fmt;

use serde::Serialize;

/// An assumption about a file that no check decides. A verdict that needs one names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Assumption {
    /// The index of a jump through a table of labels stays inside the table, which the jump's own function names, and callees keep a register
    /// that holds its address. Always made, as compilers promise it; a verdict names it if the analysis does not show it of some jump.
    Tables,
    /// Functions of the file that a pointer may lead to keep to the ABI, as code outside does. Always made; a verdict names it if the file
    /// calls or jumps through a pointer, and the analysis does not show it of each such function.
    Abi,
}

impl Assumption {
    /// All of them.
    pub const ALL: [Assumption; 2] = [Assumption::Tables, Assumption::Abi];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Assumption::Tables => "tables",
            Assumption::Abi => "abi",
        }
    }

    /// In words.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Assumption::Tables => {
                "the index of a jump through a table of labels stays inside the table, which its own function names, and whose address callees keep"
            }
            Assumption::Abi => {
                "functions of the file that are called or jumped to through pointers keep to the ABI"
            }
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
