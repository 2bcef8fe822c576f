//! Kernels' arguments, as their source declares them: machine code has offsets, not names.
#![forbid(unsafe_code)]

use super::flow::{Memory, arguments_at};
use super::manifest::matches;

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Argument {
    name: String,
    /// Bytes.
    size: u64,
    pointer: bool,
}

/// The arguments of the kernel of this name in a source. Macros that stamp kernels append a number to their names.
fn arguments(source: &str, kernel: &str) -> Result<Vec<Argument>, String> {
    let text = source.replace("\\\n", " ").replace('\n', " ");
    let mut rest = text.as_str();
    while let Some(open) = rest.find('(') {
        let name = rest[..open].rsplit(|c: char| !(c.is_alphanumeric() || c == '_' || c == '#')).next();
        let name = name.unwrap_or_default();
        rest = &rest[open + 1..];
        let pattern = name.split_once("##").map_or_else(|| name.to_owned(), |(stem, _)| format!("{stem}*"));
        let number = kernel.strip_prefix(pattern.trim_end_matches('*')).unwrap_or_default();
        if name.is_empty()
            || !matches(&pattern, kernel)
            || pattern.ends_with('*') && !number.bytes().all(|b| b.is_ascii_digit())
        {
            continue;
        }
        let Some((inside, behind)) = rest.split_once(')') else { break };
        // A call, not the kernel itself.
        if !behind.trim_start().starts_with('{') {
            continue;
        }
        return inside.split(',').map(argument).collect();
    }
    Err(format!("{kernel} is not found in its source"))
}

fn argument(text: &str) -> Result<Argument, String> {
    let text = text.trim();
    let bad = || format!("'{text}' is not a supported kernel argument");
    let start = text.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).ok_or_else(bad)?;
    let (kind, name) = text.split_at(start + 1);
    let pointer = kind.contains('*');
    let size = match kind.trim() {
        _ if pointer => 8,
        "u32" | "uint32_t" | "int" => 4,
        "u64" | "uint64_t" => 8,
        _ => return Err(bad()),
    };
    Ok(Argument { name: name.to_owned(), size, pointer })
}

/// The kernel's arguments as memory: `public` names those that point to memory that is public while it runs. `bank` is the size of
/// the bank that the kernel's arguments come in, which must match them.
pub(super) fn memory(
    source: &str,
    kernel: &str,
    architecture: &str,
    public: &[String],
    bank: Option<u64>,
) -> Result<Memory, String> {
    let arguments = arguments(source, kernel)?;
    if let Some(name) = public.iter().find(|name| !arguments.iter().any(|a| a.pointer && a.name == **name)) {
        return Err(format!("kernels.toml calls {name} public, but {kernel} has no such pointer argument"));
    }
    let mut words: Vec<(bool, bool)> = Vec::new();
    for argument in &arguments {
        if argument.size == 8 && words.len() % 2 == 1 {
            words.push((false, false));
        }
        let word = (argument.pointer, public.contains(&argument.name));
        words.extend((0..argument.size / 4).map(|_| word));
    }
    let end = arguments_at(architecture) + 4 * words.len() as u64;
    if words.len() > 63 || bank.is_some_and(|bank| bank != end) {
        return Err(format!("its arguments end at {end} in its source, but at {bank:?} in machine code"));
    }
    Ok(Memory::of(architecture, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "#define STAMP(i) \\\n KERNEL __launch_bounds__(32) one_##i(u32 count, const u8 *seeds, \\\n \
                          u32 *out) { f(count); }\nKERNEL one_two(u64 n, u32 k, u8 *p) { one_3(n); }\n";

    #[test]
    fn arguments_are_those_of_the_source() {
        let names = |kernel| -> Vec<(String, u64, bool)> {
            arguments(SOURCE, kernel).unwrap().into_iter().map(|a| (a.name, a.size, a.pointer)).collect()
        };
        let of = |name: &str, size, pointer| (name.to_owned(), size, pointer);
        assert_eq!(names("one_17"), [of("count", 4, false), of("seeds", 8, true), of("out", 8, true)]);
        assert_eq!(names("one_two"), [of("n", 8, false), of("k", 4, false), of("p", 8, true)]);
        assert!(arguments(SOURCE, "two").is_err());
        assert!(argument("float x").is_err() && argument("x").is_err());
    }

    #[test]
    fn a_name_that_is_no_pointer_and_a_wrong_size_are_refused() {
        let memory = |public: &str, bank| memory(SOURCE, "one_3", "sm_90", &[public.to_owned()], Some(bank));
        assert!(memory("seeds", 0x210 + 24).is_ok());
        for (public, bank) in [("count", 0x210 + 24), ("seed", 0x210 + 24), ("seeds", 0x210 + 32)] {
            assert!(memory(public, bank).is_err(), "{public} {bank}");
        }
    }
}
