//! The correspondence of the instructions of two versions, and the additions.
//!
//! Labels and directives must be the same in both and in the same order, so that only the pieces between them have to
//! be aligned. Nothing is taken from the other version's author: an edit by hand is aligned like one by the rewriter.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::ops::Range;

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::reason::{Place, Reason};
use crate::assembler::Reference;
use crate::places::{by_name, distance, distances, into_code};
use crate::program::{Name, Op, Program, Spot, Target, is_near_branch};
use crate::text::{Kind, Text};
use crate::unwinding;

/// The correspondence of two versions.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// Of each instruction of the original: that of the other version.
    pub of: Vec<usize>,
    /// Of each instruction of the other version: that of the original, unless it is an addition.
    pub back: Vec<Option<usize>>,
    /// Instructions of the original that have been changed.
    pub changed: Vec<usize>,
}

impl Pairs {
    /// The additions just before the counterpart of an instruction.
    pub fn added_before(&self, op: usize) -> impl DoubleEndedIterator<Item = usize> + use<'_> {
        let end = self.of[op];
        let start = (0..end).rev().find(|&r| self.back[r].is_some()).map_or(0, |r| r + 1);
        start..end
    }

    /// The additions just after it.
    pub fn added_after(&self, op: usize) -> impl Iterator<Item = usize> + use<'_> {
        (self.of[op] + 1..self.back.len()).take_while(|&r| self.back[r].is_none())
    }

    /// Whether an instruction of the other version can be jumped to in place of this one: it or the first addition before it.
    #[must_use]
    pub fn begins(&self, op: usize, other: usize) -> bool {
        other == self.of[op] || self.added_before(op).any(|r| r == other)
    }

    /// Whether two places are the same spot of both versions.
    fn meet(
        &self,
        original: &Program,
        other: &Program,
        one: crate::assembler::Place,
        two: crate::assembler::Place,
    ) -> bool {
        match (original.spot(one), other.spot(two)) {
            (Spot::Op(op), Spot::Op(r)) => self.begins(op, r),
            (Spot::Inside(op, a), Spot::Inside(r, b)) => {
                let bytes = original.tail(one);
                self.of[op] == r && a == b && bytes.is_some() && bytes == other.tail(two)
            }
            (Spot::Behind(op, a), Spot::Behind(r, b)) => self.of[op] == r && a == b,
            (Spot::Lead(a), Spot::Lead(b)) | (Spot::Data(a), Spot::Data(b)) => a == b,
            _ => false,
        }
    }
}

/// Whether a register is a place for homes.
#[must_use]
pub fn is_home(register: Register) -> bool {
    register.is_mm() || register.is_vector_register() || register.is_k()
}

/// A move between a general register and a home: the general register, the home's register and the bytes.
#[must_use]
pub fn transfer(i: &Instruction) -> Option<(Register, Register, usize, bool)> {
    use Mnemonic::{Kmovd, Kmovq, Movd, Movq, Vmovd, Vmovq, Vpbroadcastq};
    let size = match i.mnemonic() {
        Movq | Vmovq | Kmovq | Vpbroadcastq => 8,
        Movd | Vmovd | Kmovd => 4,
        _ => return None,
    };
    if i.op_count() != 2 || i.op0_kind() != OpKind::Register || i.op1_kind() != OpKind::Register {
        return None;
    }
    let (to, from) = (i.op0_register(), i.op1_register());
    // A shorter move clears the lanes above, and one that does not merge clears the others.
    if i.op_mask() != Register::None && !(to.is_zmm() && i.merging_masking()) {
        return None;
    }
    match (to.is_gpr(), from.is_gpr()) {
        (true, false) if is_home(from) => Some((to.full_register(), from, size, false)),
        (false, true) if is_home(to) => Some((from.full_register(), to, size, true)),
        _ => None,
    }
}

/// An addition that touches neither memory nor flags, nor any general register except by a move from a home.
#[must_use]
pub fn is_plain_addition(i: &Instruction) -> bool {
    use Mnemonic::{Emms, Kshiftlb, Kshiftrb, Kxnorb, Kxorq, Pxor, Valignq, Vpxor, Vpxorq};
    let registers = (0..i.op_count()).all(|n| i.op_kind(n) != OpKind::Memory);
    registers
        && (transfer(i).is_some()
            || matches!(
                i.mnemonic(),
                Emms | Kshiftlb | Kshiftrb | Kxnorb | Kxorq | Pxor | Valignq | Vpxor | Vpxorq
            ))
}

/// Whether an instruction does the same with a general register as with a memory operand of that width. Others have no
/// such form, or another meaning: a bit number reaches beyond a memory operand.
#[must_use]
pub fn takes_register(i: &Instruction) -> bool {
    use Mnemonic::{
        Adc, Adcx, Add, Adox, And, Andn, Bextr, Blsi, Blsmsk, Blsr, Bsf, Bsr, Bt, Btc, Btr, Bts, Bzhi, Cmova,
        Cmovae, Cmovb, Cmovbe, Cmove, Cmovg, Cmovge, Cmovl, Cmovle, Cmovne, Cmovno, Cmovnp, Cmovns, Cmovo,
        Cmovp, Cmovs, Cmp, Crc32, Dec, Div, Idiv, Imul, Inc, Lzcnt, Mov, Movsxd, Mul, Mulx, Neg, Not, Or,
        Pdep, Pext, Popcnt, Rcl, Rcr, Rol, Ror, Rorx, Sal, Sar, Sarx, Sbb, Shl, Shld, Shlx, Shr, Shrd, Shrx,
        Sub, Test, Tzcnt, Xor,
    };
    if i.has_lock_prefix() || i.has_rep_prefix() || i.has_repne_prefix() {
        return false;
    }
    match i.mnemonic() {
        Bt | Btc | Btr | Bts => i.op1_kind() != OpKind::Register,
        Adc | Adcx | Add | Adox | And | Andn | Bextr | Blsi | Blsmsk | Blsr | Bsf | Bsr | Bzhi | Cmova
        | Cmovae | Cmovb | Cmovbe | Cmove | Cmovg | Cmovge | Cmovl | Cmovle | Cmovne | Cmovno | Cmovnp
        | Cmovns | Cmovo | Cmovp | Cmovs | Cmp | Crc32 | Dec | Div | Idiv | Imul | Inc | Lzcnt | Mov
        | Movsxd | Mul | Mulx | Neg | Not | Or | Pdep | Pext | Popcnt | Rcl | Rcr | Rol | Ror | Rorx
        | Sal | Sar | Sarx | Sbb | Shl | Shld | Shlx | Shr | Shrd | Shrx | Sub | Test | Tzcnt | Xor => true,
        _ => false,
    }
}

/// The operand of an original instruction that a general register replaces.
#[must_use]
pub fn through(o: &Instruction, r: &Instruction) -> Option<(u32, Register)> {
    if o.mnemonic() != r.mnemonic() || o.op_count() != r.op_count() || !takes_register(o) {
        return None;
    }
    let mut found = None;
    for n in 0..o.op_count() {
        match (o.op_kind(n), r.op_kind(n)) {
            (OpKind::Memory, OpKind::Register) if found.is_none() && r.op_register(n).is_gpr() => {
                found = Some((n, r.op_register(n)));
            }
            (OpKind::Memory, _) => return None,
            (OpKind::Register, OpKind::Register) if o.op_register(n) == r.op_register(n) => (),
            (OpKind::Register, _) | (_, OpKind::Register) => return None,
            (_, OpKind::Memory) => return None,
            // Constants may have a longer form beside a register than beside memory.
            _ if o.try_immediate(n).ok() == r.try_immediate(n).ok() => (),
            _ => return None,
        }
    }
    found
}

/// Whether `r` can be what became of `o` when its slot moved.
fn counterpart(o: &Instruction, r: &Instruction) -> bool {
    if o.mnemonic() == Mnemonic::Mov
        && let Some((general, _, _, put)) = transfer(r)
    {
        let (n, memory) = if put { (1, 0) } else { (0, 1) };
        return o.op_kind(memory) == OpKind::Memory
            && o.op_kind(n) == OpKind::Register
            && o.op_register(n).full_register() == general;
    }
    through(o, r).is_some()
}

struct Pieces {
    anchors: Vec<(String, usize)>,
    /// Instructions before each anchor, and those after the last.
    ops: Vec<Range<usize>>,
}

/// A statement with one space for each run of blanks. Between quotes every blank counts, so a statement with quotes stays as it is.
fn words(said: &str) -> String {
    if said.contains(['"', '\'']) {
        return said.to_owned();
    }
    said.split([' ', '\t']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn pieces(program: &Program) -> Pieces {
    let text: &Text = &program.text;
    let (mut out, mut op, mut start) = (Pieces { anchors: Vec::new(), ops: Vec::new() }, 0, 0);
    for (i, statement) in text.statements().iter().enumerate() {
        let instruction = program.ops.get(op).is_some_and(|o| o.statement == i);
        if instruction {
            op += 1;
        } else {
            // An instruction in a section of data is data, and must be the same.
            debug_assert!(statement.kind != Kind::Instruction || !instruction);
            out.anchors.push((words(text.of(i)), statement.line));
            out.ops.push(start..op);
            start = op;
        }
    }
    out.ops.push(start..op);
    out
}

/// Aligns two versions.
///
/// # Errors
/// The first thing that cannot be aligned.
pub fn pairs(original: &Program, other: &Program) -> Result<Pairs, Box<Reason>> {
    for program in [original, other] {
        if let Some((line, said)) = program.text.condition().or_else(|| unwinding::not_constant(program)) {
            let (file, said) = (program.file.clone(), said.to_owned());
            return Err(Box::new(Reason::NotConstant(Place { file, line, said })));
        }
    }
    let (one, two) = (pieces(original), pieces(other));
    for (n, (said, _)) in one.anchors.iter().enumerate() {
        match two.anchors.get(n) {
            Some((same, _)) if same == said => (),
            found => {
                let line = found.map_or(0, |(_, line)| *line);
                return Err(Box::new(Reason::Directive {
                    original: Some(said.clone()),
                    file: other.file.clone(),
                    line,
                }));
            }
        }
    }
    if let Some((_, line)) = two.anchors.get(one.anchors.len()) {
        return Err(Box::new(Reason::Directive { original: None, file: other.file.clone(), line: *line }));
    }
    let mut out =
        Pairs { of: vec![0; original.ops.len()], back: vec![None; other.ops.len()], changed: Vec::new() };
    for (a, b) in one.ops.iter().zip(&two.ops) {
        piece(original, other, a.clone(), b.clone(), &mut out)?;
    }
    // An addition runs before what follows it in the text, even where the text changes its section.
    for r in (0..other.ops.len()).filter(|&r| out.back[r].is_none()) {
        let Op { place, instruction, references, .. } = &other.ops[r];
        if !references.is_empty() {
            return Err(Box::new(Reason::Decoded(Place::of(other, r))));
        }
        let offset = place.offset + instruction.len() as u64;
        if other.at.get(&crate::assembler::Place { offset, ..*place }) != Some(&(r + 1)) {
            return Err(Box::new(Reason::Unexplained(Place::of(other, r))));
        }
    }
    // A jump's target must be the counterpart of its original target.
    for (o, &r) in out.of.iter().enumerate() {
        let same = match (&original.ops[o].target, &other.ops[r].target) {
            (Some(Target::Op(one)), Some(Target::Op(two))) => out.begins(*one, *two),
            (one, two) => one == two,
        };
        let changed = out.changed.binary_search(&o).is_ok();
        // Where no instruction is known, it goes to the same bytes, or names them.
        let there = match (original.ops[o].aim, other.ops[r].aim) {
            (Some(one), Some(two)) => out.meet(original, other, one, two),
            _ => true,
        };
        let same = same && there;
        if !same && !changed {
            return Err(Box::new(Reason::Target(Place::of(other, r))));
        }
        let decoded = changed || alike(&original.ops[o].instruction, &other.ops[r].instruction);
        if !decoded || !referred(original, other, o, &out) {
            return Err(Box::new(Reason::Decoded(Place::of(other, r))));
        }
        if !original.ops[o].after.is_like(&other.ops[r].after) {
            return Err(Box::new(Reason::Decoded(Place::of(other, r))));
        }
    }
    if original.data != other.data || original.lead != other.lead || original.shapes != other.shapes {
        return Err(Box::new(Reason::Data));
    }
    if original.seen != other.seen {
        let differs = original.seen.iter().zip(&other.seen).find(|(a, b)| a != b).map(|(a, _)| a);
        let name = differs.or(original.seen.last()).map_or(String::new(), |symbol| symbol.name.clone());
        return Err(Box::new(Reason::Symbol(name)));
    }
    // Symbols at which no instruction is known: in data between code, or inside an instruction.
    let both = original.dark.keys().chain(other.dark.keys());
    for name in both {
        let same = match (original.dark.get(name), other.dark.get(name)) {
            (Some(one), Some(two)) if one.beyond.or(two.beyond).is_some() => one.beyond == two.beyond,
            (Some(one), Some(two)) => out.meet(original, other, one.place, two.place),
            _ => false,
        };
        if !same {
            return Err(Box::new(Reason::Symbol(name.clone())));
        }
    }
    // Names and pointers into code: what counts from a label may be another instruction now.
    let there = by_name(other);
    for (&op, names) in &original.names {
        let other_op = |name: &Name| there.get(name.name.as_str()).copied();
        if !names.iter().all(|name| other_op(name).is_some_and(|r| out.begins(op, r))) {
            return Err(Box::new(Reason::Target(Place::of(other, out.of[op]))));
        }
    }
    let both = [original, other];
    let distances = both.map(distances);
    if original.pointers.len() != other.pointers.len()
        || !original.pointers.iter().zip(&other.pointers).all(|(a, b)| points(both, a, b, &distances, &out))
    {
        return Err(Box::new(Reason::Data));
    }
    Ok(out)
}

/// Whether two instructions are the same as the decoder reads them, but for targets and fields that a linker fills in, and the length
/// of a branch.
fn alike(o: &Instruction, r: &Instruction) -> bool {
    let branch = matches!(o.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16);
    if branch {
        return o.mnemonic() == r.mnemonic() && o.op0_kind() == r.op0_kind();
    }
    let relative = o.is_ip_rel_memory_operand();
    let (mut o, mut r) = (*o, *r);
    if relative && r.is_ip_rel_memory_operand() {
        o.set_memory_displacement64(0);
        r.set_memory_displacement64(0);
    }
    // Equality is of everything but the address and the length.
    o == r
}

/// Whether the fields that a linker fills in refer to the same symbol, or to corresponding code.
fn referred(original: &Program, other: &Program, o: usize, pairs: &Pairs) -> bool {
    let (one, two) = (&original.ops[o], &other.ops[pairs.of[o]]);
    let into_code = |program: &Program, reference: &Reference| {
        reference.place.and_then(|place| {
            let offset = place.offset.wrapping_add_signed(reference.addend);
            program.at.get(&crate::assembler::Place { offset, ..place }).copied()
        })
    };
    let code = |program: &Program, reference: &Reference| {
        reference.place.is_some_and(|place| program.lead.contains_key(&place.section))
    };
    let same = |a: &Reference, b: &Reference| {
        if a.name != b.name || a.kind != b.kind {
            return false;
        }
        if !code(original, a) {
            return a.place == b.place && a.addend == b.addend;
        }
        // A place in code: counted from the field, as the target is, or absolute.
        if let (Some(Target::Op(x)), Some(Target::Op(y))) = (&one.target, &two.target) {
            return pairs.begins(*x, *y);
        }
        matches!((into_code(original, a), into_code(other, b)), (Some(x), Some(y)) if pairs.begins(x, y))
    };
    // An operand that counts from the instruction must name something.
    let named = |op: &Op| {
        !op.instruction.is_ip_rel_memory_operand() || op.target.is_some() || !op.references.is_empty()
    };
    // A value that moved may have taken a reference of its operand with it, but none is added.
    let changed = pairs.changed.binary_search(&o).is_ok();
    one.references.len() == two.references.len()
        && (changed || is_near_branch(&one.instruction) || one.fields == two.fields)
        && one.references.iter().zip(&two.references).all(|(a, b)| same(a, b))
        && named(one) == named(two)
        && (named(one) || one.instruction.ip_rel_memory_address() == two.instruction.ip_rel_memory_address())
}

/// Whether two references outside instructions have the same field and the same target, or corresponding code as targets.
fn points(
    [original, other]: [&Program; 2],
    (at, a): (&crate::assembler::Place, &Reference),
    (there, b): (&crate::assembler::Place, &Reference),
    distances: &[HashSet<(usize, usize, u64)>; 2],
    pairs: &Pairs,
) -> bool {
    if !pairs.meet(original, other, *at, *there) {
        return false;
    }
    if a.name != b.name || a.kind != b.kind {
        return false;
    }
    let (Some(x), Some(y)) = (into_code(original, a), into_code(other, b)) else {
        return a.place == b.place && a.addend == b.addend;
    };
    if !a.absolute {
        // Between labels, which correspond.
        return distances[0].contains(&distance(at, x)) && distances[1].contains(&distance(there, y));
    }
    matches!((original.at.get(&x), other.at.get(&y)), (Some(&x), Some(&y)) if pairs.begins(x, y))
}

fn piece(
    original: &Program,
    other: &Program,
    a: Range<usize>,
    b: Range<usize>,
    out: &mut Pairs,
) -> Result<(), Box<Reason>> {
    let equal = |o: usize, r: usize| words(original.said(o)) == words(other.said(r));
    let (mut i, mut j) = (a.start, b.start);
    while i < a.end {
        if j >= b.end {
            return Err(Box::new(Reason::Missing(Place::of(original, i))));
        }
        let (o, r) = (&original.ops[i].instruction, &other.ops[j].instruction);
        let same = equal(i, j);
        if !same && !counterpart(o, r) {
            // An addition, or an instruction that has been replaced by something else.
            let ahead = |from: usize| (from + 1..b.end.min(from + 6)).find(|&r| equal(i, r));
            if is_plain_addition(r) || ahead(j).is_some() {
                j += 1;
                continue;
            }
            if (i + 1..a.end.min(i + 6)).any(|o| equal(o, j)) {
                return Err(Box::new(Reason::Missing(Place::of(original, i))));
            }
        }
        out.of[i] = j;
        out.back[j] = Some(i);
        if !same {
            out.changed.push(i);
        }
        i += 1;
        j += 1;
    }
    Ok(())
}
