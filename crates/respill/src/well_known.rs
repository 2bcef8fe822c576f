//! Functions outside the file that are known by their names.
#![forbid(unsafe_code)]

/// Whether Rust made this name. Its functions never return a value in st(0).
fn of_rust(name: &str) -> bool {
    // The older form ends in a hash: `17h`, sixteen digits, `E`.
    let hash = name.strip_suffix('E').and_then(|name| name.get(name.len().checked_sub(19)?..));
    let hashed = |hash: &str| {
        hash.strip_prefix("17h").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    (name.starts_with("_R") || name.starts_with("_ZN") && hash.is_some_and(hashed))
        && rustc_demangle::try_demangle(name).is_ok()
}

/// Whether Rust made this name for something in one of these crates. The older form begins with the crate. The newer one names
/// the crate of each path and of each type argument, and all must be among these.
fn of_crates(name: &str, crates: &[&str]) -> bool {
    let begins = |path: &str| crates.iter().any(|one| path.starts_with(one));
    if let Some(path) = name.strip_prefix("_ZN") {
        return of_rust(name) && begins(path);
    }
    // `C`, a disambiguator from `s` to `_`, and the crate's name behind its length.
    let mut roots = name.strip_prefix("_R").unwrap_or("").split("Cs").skip(1).peekable();
    roots.peek().is_some() && roots.all(|rest| rest.split_once('_').is_some_and(|(_, path)| begins(path)))
}

/// Whether a function of this name never returns: Rust's panics, which are all in one module.
pub(crate) fn diverges(name: &str) -> bool {
    const PANICS: [&str; 5] =
        ["panic", "const_panic", "assert_failed", "assert_matches_failed", "unreachable_display"];
    let own = name
        .split_once("4core9panicking")
        .map(|(_, own)| own.trim_start_matches(|c: char| c.is_ascii_digit()));
    (of_crates(name, &["4core9panicking"])
        || name.starts_with("_R") && of_crates(name, &["4core"]) && name.contains("_4core9panicking"))
        && own.is_some_and(|own| PANICS.iter().any(|panic| own.starts_with(panic)))
}

/// Whether this is a function of C++'s library in `std` whose own name begins like one that throws.
fn thrower(name: &str) -> bool {
    let own = name.strip_prefix("_ZSt").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    own.is_some_and(|own| own.starts_with("__throw_"))
}

/// Whether a call of this name continues only in a handler, if at all.
pub(crate) fn never_returns(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "__cxa_throw",
        "__cxa_rethrow",
        "__cxa_bad_cast",
        "__cxa_throw_bad_array_new_length",
        "_Unwind_Resume",
        "_ZSt9terminatev",
        "abort",
        "exit",
        "_exit",
        "__assert_fail",
        "__stack_chk_fail",
        "__chk_fail",
    ];
    // What follows a check that failed, in Rust's core and alloc.
    const FAILS: [&str; 11] = [
        "16slice_index_fail",
        "22slice_index_order_fail",
        "24slice_end_index_len_fail",
        "26slice_start_index_len_fail",
        "17len_mismatch_fail",
        "13unwrap_failed",
        "13expect_failed",
        "18handle_alloc_error",
        "7raw_vec12handle_error",
        "17capacity_overflow",
        "22panic_already_borrowed",
    ];
    let of_libraries = of_crates(name, &["4core", "5alloc"]);
    NAMES.contains(&name)
        || diverges(name)
        || of_libraries && FAILS.iter().any(|fails| name.contains(fails))
        || thrower(name)
}

/// Whether a function of this name is one of C's library or of a compiler's, has few arguments and returns no float.
pub(crate) fn is_plain(name: &str) -> bool {
    const PLAIN: [&str; 26] = [
        "memcpy",
        "memmove",
        "memset",
        "memcmp",
        "bcmp",
        "strlen",
        "abort",
        "exit",
        "malloc",
        "calloc",
        "free",
        "getrandom",
        "getentropy",
        "randombytes",
        "__jasmin_syscall_randombytes__",
        "__stack_chk_fail",
        "__udivti3",
        "__umodti3",
        "__divti3",
        "__modti3",
        "__cxa_allocate_exception",
        "__cxa_begin_catch",
        "__cxa_end_catch",
        "__cxa_rethrow",
        "__cxa_throw",
        "_Unwind_Resume",
    ];
    PLAIN.contains(&name)
}

/// Whether a function of this name may return a value in st(0). Rust's do not, nor do well-known ones.
pub(crate) fn may_return_float(name: &str) -> bool {
    !of_rust(name) && !is_plain(name)
}

/// Whether a function of this name may return more than once, or behind the place from which it was called (`gcc -fsplit-stack`).
pub(crate) fn returns_twice(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    name.contains("setjmp")
        || name.starts_with("morestack")
        || matches!(name, "vfork" | "getcontext" | "savectx")
}

/// Whether code of this name outside goes where a register points, as compilers' thunks against speculation do.
pub(crate) fn goes_on(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    name.starts_with("x86_indirect_") || name.contains("retpoline")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_rusts_own_crates_end_a_path() {
        for name in [
            "_ZN4core9panicking5panic17h0123456789abcdefE",
            "_RNvNtCsabc_4core9panicking5panic",
            "_RINvNtCs1_4core9panicking13assert_failedhhE",
        ] {
            assert!(diverges(name) && never_returns(name), "{name}");
        }
        for name in
            ["_ZN4core6result13unwrap_failed17h0123456789abcdefE", "_RNvNtCs2_4core6result13unwrap_failed"]
        {
            assert!(never_returns(name) && !diverges(name), "{name}");
        }
        assert!(never_returns("_ZSt20__throw_length_errorPKc"));
        assert!(of_rust("_RNvC6_123foo3bar") && !of_rust("_Ratio") && !of_rust("_RNG"));
        // Of C++, with an argument of a type whose name looks like the hash.
        assert!(!of_rust("_ZN4core9panicking5panicENS_17h0123456789abcdefE"));
        for name in [
            "_ZSt4sortIPl14on__throw_lastEvT_S2_T0_",
            "_ZN6my4core9panicking4note17h0123456789abcdefE",
            "_RNvNtCs1_6my4core9panicking4note",
            "_RINvCs1_2my13unwrap_failedNtNtCs2_4core3fmt5ErrorE",
            "_ZN4core9panicking5panicE",
            // Of another crate with the name `core`.
            "_ZN4core9panicking4note17h0123456789abcdefE",
            "_RNvNtCsabc_4core9panicking4note",
        ] {
            assert!(!never_returns(name), "{name}");
        }
    }
}
