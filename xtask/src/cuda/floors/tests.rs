//! Planted code, declarations and tables.
#![forbid(unsafe_code)]

use super::declared::Formula;
use super::origins::origins;
use super::*;

/// Code at every 16 bytes from 0.
fn listing(name: &str, code: &[&str]) -> String {
    let lines = code.iter().enumerate().map(|(n, text)| {
        let bits = format!("/* 0x{n:016x} */");
        format!("  /*{:04x}*/  {text} ;  {bits}\n    {bits}\n", 16 * n)
    });
    format!("code for sm_90\nFunction : {name}\n{}", lines.collect::<String>())
}

/// A loop with a guarded block, a loop inside it, and a call of a routine.
const PLANTED: [&str; 16] = [
    "MOV R0, c[0x0][0x210]",
    "LOP3.LUT R1, R1, R2, RZ, 0xc0, !PT", // 0x10: the outer loop
    "@P1 BRA 0x50",
    "IMAD R3, R3, R4, RZ",
    "STS [R3], R4",
    "LDS R5, [R3]", // 0x50: the inner loop
    "IADD3 R5, R5, 0x1, RZ",
    "@P0 BRA 0x50",
    "MOV R6, 0xa0",
    "CALL.REL.NOINC 0xc0",
    "@P2 BRA 0x10", // 0xa0
    "EXIT",
    "SHF.R.U32.HI R7, RZ, 0x1, R7", // 0xc0: the routine
    "BMMA.168256.AND.POPC R8, R8.ROW, R8.COL, R8",
    "RET.REL.NODEC R6 0x0",
    "BRA 0xf0",
];

fn planted(name: &str, code: &[&str]) -> Result<Vec<Counted>, String> {
    count(&parse(&listing(name, code)).unwrap()[0])
}

#[test]
fn a_planted_loop_is_counted() {
    let loops = planted("p_0", &PLANTED).unwrap();
    let [outer, inner, straight] = loops.as_slice() else { panic!("{loops:?}") };
    //                        issue ALU IMAD LSU tensor uniform XU
    assert_eq!(inner.least, [3.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!((inner.most, inner.inside, outer.inside), (inner.least, Some(0), None));
    assert_eq!(outer.least, [8.0, 3.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(outer.most, [10.0, 3.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
    assert_eq!(straight.least, [2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(clocks(&outer.most, 1), (10.0 / 4.0, 0));
    assert_eq!(clocks(&[10.0, 3.0, 0.0, 3.0, 1.0, 0.0, 0.0], 1), (3.0, 3));
}

#[test]
fn an_unknown_instruction_and_odd_control_are_refused() {
    let mut code = PLANTED;
    code[6] = "FROB.X R5, R5";
    assert!(planted("p_0", &code).unwrap_err().contains("FROB"));
    code = PLANTED;
    code[0] = "@P3 BRA 0x60";
    assert!(planted("p_0", &code).unwrap_err().contains("two entries"));
    code[0] = "BRA 0x7770";
    assert!(planted("p_0", &code).unwrap_err().contains("unknown place"));
    code = PLANTED;
    code[8] = "MOV R6, 0xb0";
    assert!(planted("p_0", &code).unwrap_err().contains("does not return"));
}

/// A folder with a declaration of the planted kernel, and the table made there.
fn made(dir: &Path, floors: &str) -> Result<String, String> {
    made_of(dir, floors, &PLANTED, &LINES)
}

fn made_of(dir: &Path, floors: &str, code: &[&str], lines: &[(usize, usize)]) -> Result<String, String> {
    fs::write(dir.join("a.fatbin"), "code").unwrap();
    fs::write(dir.join("a.cuh"), "struct Set0 {\n    static constexpr int N = 5;\n};\n").unwrap();
    fs::write(dir.join(DECLARED), floors).unwrap();
    let listing = listing("p_0", code);
    let functions = parse(&listing).unwrap();
    let origins = origins(&functions, &listing, TEXT, &again(code, lines)).unwrap();
    table(dir, &declared(dir)?, &functions, &origins)
}

/// The planted kernel's text: a store is its third line, a load its fourth.
const TEXT: &str =
    ".visible .entry p_0(\n{\n@%p1 st.shared.u32 [%r1], %r2;\n\tld.shared.u32 %r3, [%r1];\nret;\n}\n";
const LINES: [(usize, usize); 2] = [(4, 3), (5, 4)];

/// The planted code as it is made again, with lines for some instructions.
fn again(code: &[&str], lines: &[(usize, usize)]) -> String {
    let each = code.iter().enumerate().map(|(n, text)| {
        let line = lines
            .iter()
            .find(|(at, _)| *at == n)
            .map_or(String::new(), |(_, line)| format!("\t//## File \".nv_debug_ptx_txt\", line {line}\n"));
        let bits = format!("/* 0x{n:016x} */");
        format!("{line}  /*{:04x}*/  {text} ;  {bits}\n    {bits}\n", 16 * n)
    });
    format!("code for sm_90\n.text.p_0:\n{}", each.collect::<String>())
}

#[test]
fn accesses_come_from_the_lines_that_the_assembler_names() {
    let listing = listing("p_0", &PLANTED);
    let functions = parse(&listing).unwrap();
    let made = |text: &str, again: &str| origins(&functions, &listing, text, again);
    let asked = |origins: &Origins, accesses: &[&str]| {
        let accesses = accesses.iter().map(|run| (*run).to_owned()).collect();
        let asked = Asked { accesses, ..toml::from_str(ASKED).unwrap() };
        origins.asked(&functions[0], Some(&asked), &count(&functions[0]).unwrap())
    };
    let found = made(TEXT, &again(&PLANTED, &LINES)).unwrap();
    let trips = asked(&found, &["1 STS 4", "1 LDS 2.5"]).unwrap();
    assert_eq!([0, 1, 2].map(|n| trips[n].wavefronts), [4.0, 2.5, 0.0]);
    assert_eq!([0, 1, 2].map(|n| trips[n].longer()), [3.0, 1.5, 0.0]);
    let trips = asked(&found, &["1 STS 4", "1 LDS -"]).unwrap();
    assert_eq!([0, 1].map(|n| (trips[n].wavefronts, trips[n].unseen)), [(4.0, 0.0), (0.0, 1.0)]);
    let unknown = found.asked(&functions[0], None, &count(&functions[0]).unwrap()).unwrap();
    assert_eq!([0, 1, 2].map(|n| unknown[n].unseen), [1.0, 1.0, 0.0]);
    // Accesses of another text, and runs that are none.
    for (accesses, why) in [
        (&["1 LDS 4", "1 STS 2"][..], "other accesses"),
        (&["2 STS 4"], "other accesses"),
        (&["1 STS 4"], "other accesses"),
        (&["1 STS 4", "1 LDS x"], "not a run"),
    ] {
        let found = asked(&found, accesses).unwrap_err();
        assert!(found.contains(why), "{accesses:?}: {found}");
    }
    // Other lines, no lines, and other code: one bit, an instruction less, one more.
    let swapped = again(&PLANTED, &[(4, 4), (5, 3)]);
    assert!(made(TEXT, &swapped).unwrap_err().contains("no such access"));
    assert!(made(TEXT, &again(&PLANTED, &[])).unwrap_err().contains("no such access"));
    assert!(
        made(&TEXT.replace("p_0", "q_0"), &again(&PLANTED, &LINES)).unwrap_err().contains("no such access")
    );
    let mut longer = PLANTED.to_vec();
    longer.push("NOP");
    for other in [
        again(&PLANTED, &LINES).replace("    /* 0x0000000000000007 */", "    /* 0x0000000000000017 */"),
        again(&PLANTED[..15], &LINES),
        again(&longer, &LINES),
        again(&PLANTED, &LINES).replace("sm_90", "sm_89"),
    ] {
        assert!(made(TEXT, &other).unwrap_err().contains("other machine code"));
    }
}

const FLOORS: &str = "code = 'a.fatbin'\nheader = 'a.cuh'\nsets = ['S']\nundeclared = {}\n\
    [card]\nname = 'C'\narchitecture = 'sm_90'\nmultiprocessors = 2\nghz = 0.5\n\
    [with]\nTWICE = '2 * N'\n\
    [[kernel]]\nname = 'p'\nstraight = { trips = '1' }\nmeasured = { S = 100 }\n\
    loops = [{ trips = 'N', also = 'STS' }, { trips = 'TWICE', per = 'LDS' }]\n";

#[test]
fn declared_trips_make_a_floor() {
    let dir = tempfile::tempdir().unwrap();
    let text = made(dir.path(), FLOORS).unwrap();
    // 5 * 10 + 10 * 3 + 2 instructions, four a clock, on two multiprocessors at half a gigahertz.
    assert!(text.contains("| `p` | 21 issue |"), "{text}");
    assert!(text.contains("| `p` | S | 21 | issue | 100 | 21 % |"), "{text}");
    for (right, wrong, why) in [
        (", { trips = 'TWICE', per = 'LDS' }", "", "it has 2 loops, floors.toml declares 1"),
        ("'TWICE', per", "'TWICE', sets = [1], per", "it has 2 loops"),
        ("per = 'LDS'", "per = 'LDG'", "no LDG"),
        ("2 * N", "2 * M", "unknown name 'M'"),
        ("2 * N", "2 * TWICE", "needs itself"),
        ("'p'", "'q'", "does not name it"),
        ("undeclared = {}", "undeclared = { q = 'x' }", "names q"),
        ("S = 100", "T = 100", "unknown set T"),
    ] {
        let found = made(dir.path(), &FLOORS.replace(right, wrong)).unwrap_err();
        assert!(found.contains(why), "{wrong}: {found}");
    }
}

const ASKED: &str =
    "shared = 20\nwavefronts = 60\nleast_wavefronts = 30\nglobal = 4\nsectors = 24\nleast_sectors = 16\n";

#[test]
fn wavefronts_and_sectors_take_the_loads_longer() {
    let dir = tempfile::tempdir().unwrap();
    let floors = FLOORS.replace("sets =", "traffic = 't.toml'\nsets =");
    assert!(made(dir.path(), &floors).unwrap_err().contains("t.toml"));
    let asked = format!("operations = 2\n[set.0.p]\n{ASKED}accesses = ['1 STS 4', '1 LDS 2']\n");
    fs::write(dir.path().join("t.toml"), &asked).unwrap();
    let text = made(dir.path(), &floors).unwrap();
    // 15 loads and stores, 40 further wavefronts and twice four further sectors of two operations.
    assert!(text.contains("| `p` | 36 LSU |"), "{text}");
    assert!(text.contains("| `p` | 30 ×2.00 |") && text.contains("| `p` | 12 ×1.50 |"), "{text}");
    let unseen = asked.replace("LDS 2", "LDS -");
    fs::write(dir.path().join(TABLE), text).unwrap();
    assert_eq!(stale(dir.path()).unwrap(), Vec::<String>::new());
    fs::write(dir.path().join("t.toml"), asked.replace("60", "61")).unwrap();
    assert!(matches!(&stale(dir.path()).unwrap()[..], [one] if one.contains("t.toml")));
    // An access that was never executed needs a reason where its loop is listed, and a reason such a loop.
    fs::write(dir.path().join("t.toml"), unseen).unwrap();
    assert!(made(dir.path(), &floors).is_ok());
    let told = format!("{floors}[unseen]\n'p_*' = 'none'\n");
    assert!(made(dir.path(), &told).unwrap_err().contains("all of them were"));
    let mut code = vec!["IADD3 R5, R5, 0x1, RZ"; LISTED as usize];
    (code[0], code[1]) = ("LDS R5, [R3]", "STS [R3], R4");
    code.extend(["@P0 BRA 0x0", "EXIT"]);
    let made = |floors: &str| {
        let floors = floors.replace("also = 'STS' }, { trips = 'TWICE', ", "");
        made_of(dir.path(), &floors, &code, &[(0, 4), (1, 3)])
    };
    assert!(made(&floors).unwrap_err().contains("loop 1 has accesses that were never executed"));
    let text = made(&told).unwrap();
    assert!(text.contains("|4|0|1|"), "{text}");
    assert!(text.contains("- `p_*`: none"), "{text}");
}

#[test]
fn a_changed_binary_or_declaration_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(stale(dir.path()).unwrap(), Vec::<String>::new());
    fs::write(dir.path().join(TABLE), made(dir.path(), FLOORS).unwrap()).unwrap();
    assert_eq!(stale(dir.path()).unwrap(), Vec::<String>::new());
    fs::write(dir.path().join("a.fatbin"), "other").unwrap();
    assert!(matches!(&stale(dir.path()).unwrap()[..], [one] if one.contains("a.fatbin")));
    fs::write(dir.path().join(DECLARED), FLOORS.replace("100", "99")).unwrap();
    assert_eq!(stale(dir.path()).unwrap().len(), 2);
}

#[test]
fn formulas() {
    let parameters = BTreeMap::from([("N".to_owned(), 7.0)]);
    let with = BTreeMap::from([("E".to_owned(), Formula::Each(vec![1.0, 2.0]))]);
    let names = Names { set: 1, parameters: &parameters, with: [&with, &BTreeMap::new()], i: 3.0, depth: 0 };
    assert_eq!(names.value("(N + 1) * E / 4 - i").unwrap(), 1.0);
    assert_eq!(
        names.value("ceil(N / 2) + floor(N / 2) + odd(6) + odd(7) + min(N, 2) + max(N, 2)").unwrap(),
        30.0
    );
    for wrong in ["", "N N", "f(N)", "min(N", "N / 0", "2 +"] {
        assert!(names.value(wrong).is_err(), "{wrong}");
    }
}
