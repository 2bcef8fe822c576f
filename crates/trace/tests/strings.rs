//! Instructions whose addresses or turns depend on secrets in ways of their own: repeated comparisons of strings, and bits of
//! memory whose number is in a register.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use core::arch::global_asm;

use lanework_trace::{Kind, Operation, Options, Report, Snapshot};

global_asm!(
    ".globl lanework_trace_compare",
    "lanework_trace_compare:", // rdi, rsi: two strings; rdx: their length
    "mov rcx, rdx",
    "repe cmpsb",
    "sete al",
    "movzx eax, al",
    "ret",
    ".globl lanework_trace_find",
    "lanework_trace_find:", // rdi: a string that ends with the byte in rsi; rdx: its length
    "mov rcx, rdx",
    "mov eax, esi",
    "repne scasb",
    "xor eax, eax",
    "ret",
    ".globl lanework_trace_bit",
    "lanework_trace_bit:", // rdi: bits; rsi: a number
    "xor eax, eax",
    "bt qword ptr [rdi], rsi",
    "setc al",
    "ret",
    ".globl lanework_trace_copy",
    "lanework_trace_copy:", // rdi from rsi, rdx bytes
    "mov rcx, rdx",
    "rep movsb",
    "xor eax, eax",
    "ret",
);

// SAFETY: the tests' assembly above; each reads or writes as its signature and comment say, and changes only registers that a call
// may change.
unsafe extern "C" {
    fn lanework_trace_compare(x: *const u8, y: *const u8, length: usize) -> u64;
    fn lanework_trace_find(x: *const u8, byte: u64, length: usize) -> u64;
    fn lanework_trace_bit(bits: *const u8, number: u64) -> u64;
    fn lanework_trace_copy(to: *mut u8, from: *const u8, length: usize) -> u64;
}

/// A secret of 64 bytes that differs from zeros first at a byte that the case decides.
struct On(fn(&mut [u8; 64], usize) -> u64);

const FIRST: [usize; 4] = [20, 0, 63, 41];

impl Operation for On {
    type Input = ([u8; 64], usize, u64);

    fn prepare(&self, case: usize) -> Self::Input {
        let mut secret = [0; 64];
        secret[FIRST[case]] = 1;
        (secret, FIRST[case], 0)
    }

    fn operate(&self, (secret, first, result): &mut Self::Input) {
        *result = (self.0)(secret, *first);
    }

    fn answer(&self, (secret, _, result): &Self::Input) -> Vec<u8> {
        secret.iter().copied().chain(result.to_le_bytes()).collect()
    }
}

fn report(operation: fn(&mut [u8; 64], usize) -> u64) -> Option<Report> {
    match Snapshot::take(&On(operation), Options::default()) {
        Ok(mut snapshot) => Some(snapshot.compare(&[0, 1, 2, 3]).expect("a comparison")),
        Err(why) => {
            let required = std::env::var_os("LANEWORK_REQUIRE_TRACE").is_some_and(|v| v == "1");
            assert!(!required, "LANEWORK_REQUIRE_TRACE=1, and {why}");
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

/// One difference, of memory, at this instruction.
fn assert_found(report: &Report, instruction: &str) {
    let [difference] = &report.differences[..] else { panic!("{instruction}: {:?}", report.differences) };
    assert!(matches!(difference.kind, Kind::Memory(_)), "{difference}");
    assert!(difference.instruction.contains(instruction), "{difference}");
    assert_eq!(report.cases, 3, "the runs go on");
}

static ZEROS: [u8; 64] = [0; 64];

#[test]
fn a_comparison_that_ends_where_strings_differ_is_found() {
    // SAFETY: two strings of 64 bytes.
    let compare =
        |secret: &mut [u8; 64], _| unsafe { lanework_trace_compare(secret.as_ptr(), ZEROS.as_ptr(), 64) };
    let Some(report) = report(compare) else { return };
    assert_found(&report, "cmpsb");
    let Kind::Memory([one, two]) = &report.differences[0].kind else { unreachable!() };
    assert_eq!((one[0].bytes, two[0].bytes), (21, 1), "bytes until the strings differ");
}

#[test]
fn a_search_that_ends_at_a_secret_is_found() {
    // SAFETY: a string of 64 bytes, one of which is 1.
    let find = |secret: &mut [u8; 64], _| unsafe { lanework_trace_find(secret.as_ptr(), 1, 64) };
    let Some(report) = report(find) else { return };
    assert_found(&report, "scasb");
}

#[test]
fn a_bit_whose_number_is_secret_is_found() {
    // SAFETY: the number is below 512, and there are 64 bytes.
    let bit = |secret: &mut [u8; 64], first| unsafe { lanework_trace_bit(secret.as_ptr(), 8 * first as u64) };
    let Some(report) = report(bit) else { return };
    assert_found(&report, "bt");
}

#[test]
fn a_copy_and_a_whole_comparison_differ_in_nothing() {
    let Some(copied) = report(|secret, _| {
        let from = *secret;
        // SAFETY: two arrays of 64 bytes.
        unsafe { lanework_trace_copy(secret.as_mut_ptr(), from.as_ptr(), 64) }
    }) else {
        return;
    };
    assert!(copied.differences.is_empty(), "{:?}", copied.differences);
    // SAFETY: one string of 64 bytes, compared with itself.
    let same = report(|secret, _| unsafe { lanework_trace_compare(secret.as_ptr(), secret.as_ptr(), 64) });
    assert!(same.expect("as above").differences.is_empty());
}
