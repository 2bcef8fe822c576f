//! Values that nothing has written, followed bit by bit through arithmetic.
//!
//! A load may bring bytes that nothing has written, and an instruction may shift them out or mask them off. So registers have
//! a mark for each lane, and lanes without one have a mark for each bit: here, apart, since there are few. A fault is where such
//! bits decide a branch, an address or who takes part, or are stored where other blocks or the host would read them.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::alu;
use super::execute::{compute, each};
use super::program::{Class, Inst, Kind};
use super::warp::{LANES, Longs, Warp};

/// The unknown bits of places with unknown lanes. A place without an entry has none known.
pub(super) type Bits = HashMap<(Class, u16), Box<Longs>>;

impl Warp {
    /// The unknown bits of a lane's register; all bits of the value's width and above if nothing is known.
    pub(super) fn unknown_bits(&self, class: Class, place: u16, lane: usize) -> u64 {
        let marks = match class {
            Class::Word => &self.known_words,
            Class::Long => &self.known_longs,
            Class::Predicate => &self.known_predicates,
        };
        if marks[usize::from(place)] >> lane & 1 == 1 {
            return 0;
        }
        let all = if class == Class::Long { u64::MAX } else { u32::MAX.into() };
        self.bits.get(&(class, place)).map_or(all, |bits| bits[lane] & all)
    }

    /// Marks these bits of a register that was just written.
    pub(super) fn mark(&mut self, class: Class, place: u16, lanes: u32, unknown: &Longs) {
        let known = each(lanes).filter(|lane| unknown[*lane] == 0).fold(0, |mask, lane| mask | 1 << lane);
        let marks = match class {
            Class::Word => &mut self.known_words,
            Class::Long => &mut self.known_longs,
            Class::Predicate => &mut self.known_predicates,
        };
        let marks = &mut marks[usize::from(place)];
        *marks = *marks & !lanes | known;
        if known != lanes {
            let bits = self.bits.entry((class, place)).or_insert_with(|| Box::new([u64::MAX; LANES]));
            each(lanes & !known).for_each(|lane| bits[lane] = unknown[lane]);
            self.follows = true;
        }
    }

    /// Nothing of these lanes is known.
    #[cold]
    pub(super) fn blur(&mut self, class: Class, place: u16, lanes: u32) {
        self.follows = true;
        if let Some(bits) = self.bits.get_mut(&(class, place)) {
            each(lanes).for_each(|lane| bits[lane] = u64::MAX);
        }
    }
}

/// The classes of the sources and of the result, for what is followed by bits.
fn classes(kind: Kind) -> Option<(Class, &'static [Class])> {
    use Class::{Long, Word};
    Some(match kind {
        Kind::Move | Kind::Not | Kind::Neg | Kind::Narrow | Kind::ExtendWord => (Word, &[Word]),
        Kind::And | Kind::Or | Kind::Xor | Kind::Add | Kind::Sub | Kind::MulLo | Kind::Pack => {
            (Word, &[Word; 2])
        }
        Kind::Shl | Kind::ShrUnsigned | Kind::ShrSigned => (Word, &[Word; 2]),
        Kind::FunnelLeft | Kind::FunnelRight | Kind::Permute | Kind::MadLo => (Word, &[Word; 3]),
        Kind::Insert => (Word, &[Word; 4]),
        Kind::Select => (Word, &[Word, Word, Class::Predicate]),
        Kind::SelectLong => (Long, &[Long, Long, Class::Predicate]),
        Kind::MoveLong | Kind::NotLong | Kind::NegLong => (Long, &[Long]),
        Kind::AndLong | Kind::OrLong | Kind::XorLong | Kind::AddLong | Kind::SubLong => (Long, &[Long; 2]),
        Kind::ShlLong | Kind::ShrLong => (Long, &[Long, Word]),
        Kind::Widen | Kind::Extend => (Long, &[Word]),
        Kind::Shorten => (Word, &[Long]),
        _ => return None,
    })
}

/// Computes, and marks the bits of the result that come from unknown ones. False if the instruction is not followed by bits, or
/// all its sources are known.
pub(super) fn follow(warp: &mut Warp, inst: &Inst, lanes: u32) -> bool {
    let Some((result, sources)) = classes(inst.kind) else { return false };
    // Nearly always everything is known.
    let known = sources.iter().zip(&inst.o[1..]).fold(lanes, |known, (class, place)| {
        let marks = match class {
            Class::Word => &warp.known_words,
            Class::Long => &warp.known_longs,
            Class::Predicate => &warp.known_predicates,
        };
        known & marks[usize::from(*place)]
    });
    if known == lanes {
        return false;
    }
    // Places are shared: the sources are read before the result is written.
    let mut unknown = [[0; LANES]; 4];
    let mut value = [[0; LANES]; 4];
    for (i, class) in sources.iter().enumerate() {
        let place = inst.o[1 + i];
        for lane in each(lanes) {
            unknown[i][lane] = warp.unknown_bits(*class, place, lane);
            value[i][lane] = match class {
                Class::Word => warp.words[usize::from(place)][lane].into(),
                Class::Long => warp.longs[usize::from(place)][lane],
                Class::Predicate => (warp.predicates[usize::from(place)] >> lane & 1).into(),
            };
        }
    }
    compute(warp, inst, inst.kind, lanes);
    let mut bits = [0; LANES];
    for lane in each(lanes) {
        bits[lane] = result_bits(inst, unknown.map(|u| u[lane]), value.map(|v| v[lane]));
    }
    warp.mark(result, inst.o[0], lanes, &bits);
    true
}

/// The unknown bits of a result, by those of its sources and by their values.
fn result_bits(inst: &Inst, u: [u64; 4], v: [u64; 4]) -> u64 {
    let words = u.map(|bits| bits as u32);
    let amount = |i: usize| v[i] as u32;
    let all = inst.aux;
    // A carry runs upwards.
    let carried = |bits: u64| if bits == 0 { 0 } else { all & u64::MAX << bits.trailing_zeros() };
    match inst.kind {
        Kind::Move | Kind::MoveLong | Kind::NotLong => u[0],
        Kind::Not | Kind::Narrow | Kind::Widen | Kind::Shorten => u[0] & all,
        Kind::And | Kind::AndLong => u[0] & (v[1] | u[1]) | u[1] & (v[0] | u[0]),
        Kind::Or | Kind::OrLong => u[0] & (!v[1] | u[1]) | u[1] & (!v[0] | u[0]),
        Kind::Xor | Kind::XorLong => u[0] | u[1],
        Kind::Pack => u[0] & 0xffff | u[1] << 16,
        Kind::Add | Kind::Sub | Kind::MulLo | Kind::AddLong | Kind::SubLong => carried(u[0] | u[1]),
        Kind::Neg | Kind::NegLong => carried(u[0]),
        Kind::MadLo => carried(u[0] | u[1] | u[2]),
        Kind::Select | Kind::SelectLong if u[2] == 0 => u[usize::from(v[2] == 0)],
        Kind::Shl if u[1] == 0 => u64::from(alu::shl(words[0], amount(1))) & all,
        Kind::ShrUnsigned if u[1] == 0 => alu::shr(words[0], amount(1)).into(),
        Kind::ShrSigned if u[1] == 0 => alu::shr_signed(words[0], amount(1)).into(),
        Kind::ShlLong if u[1] == 0 => alu::shl_long(u[0], amount(1)),
        Kind::ShrLong if u[1] == 0 => alu::shr_long(u[0], amount(1)),
        Kind::FunnelLeft if u[2] == 0 => alu::funnel_left(words[0], words[1], amount(2)).into(),
        Kind::FunnelRight if u[2] == 0 => alu::funnel_right(words[0], words[1], amount(2)).into(),
        Kind::Permute if u[2] == 0 => alu::permute(words[0], words[1], amount(2)).into(),
        Kind::Insert if u[2] | u[3] == 0 => alu::insert(words[0], words[1], amount(2), amount(3)).into(),
        Kind::Extend | Kind::ExtendWord => alu::extend(words[0], inst.code.into()) & all,
        _ => all,
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::{Code, Program};
    use super::*;

    /// Instructions, each with the bits of its sources; 1 for a predicate.
    const FORMS: [(&str, &[u32]); 58] = [
        ("mov.u32 %r9, %r1", &[32]),
        ("not.b32 %r9, %r1", &[32]),
        ("neg.s32 %r9, %r1", &[32]),
        ("and.b32 %r9, %r1, %r2", &[32, 32]),
        ("or.b32 %r9, %r1, %r2", &[32, 32]),
        ("xor.b32 %r9, %r1, %r2", &[32, 32]),
        ("add.s32 %r9, %r1, %r2", &[32, 32]),
        ("sub.s32 %r9, %r1, %r2", &[32, 32]),
        ("mul.lo.s32 %r9, %r1, %r2", &[32, 32]),
        ("mad.lo.s32 %r9, %r1, %r2, %r3", &[32, 32, 32]),
        ("shl.b32 %r9, %r1, %r2", &[32, 6]),
        ("shr.u32 %r9, %r1, %r2", &[32, 6]),
        ("shr.s32 %r9, %r1, %r2", &[32, 6]),
        ("shf.l.wrap.b32 %r9, %r1, %r2, %r3", &[32, 32, 6]),
        ("shf.r.wrap.b32 %r9, %r1, %r2, %r3", &[32, 32, 6]),
        ("prmt.b32 %r9, %r1, %r2, %r3", &[32, 32, 16]),
        ("bfi.b32 %r9, %r1, %r2, %r3, %r4", &[32, 32, 6, 6]),
        ("selp.b32 %r9, %r1, %r2, %p1", &[32, 32, 1]),
        ("mov.b32 %r9, {%rs1, %rs2}", &[16, 16]),
        ("min.u32 %r9, %r1, %r2", &[32, 32]),
        ("max.u32 %r9, %r1, %r2", &[32, 32]),
        ("lop3.b32 %r9, %r1, %r2, %r3, 150", &[32, 32, 32]),
        ("dp4a.u32.u32 %r9, %r1, %r2, %r3", &[32, 32, 32]),
        ("dp2a.lo.u32.u32 %r9, %r1, %r2, %r3", &[32, 32, 32]),
        ("cvt.u32.u16 %r9, %rs1", &[16]),
        ("cvt.u32.u8 %r9, %rs1", &[16]),
        ("cvt.s32.s8 %r9, %r1", &[32]),
        ("cvt.u32.u64 %r9, %rd1", &[64]),
        ("cvt.u16.u32 %rs9, %r1", &[32]),
        ("cvt.u16.s8 %rs9, %rs1", &[16]),
        ("cvt.u16.u64 %rs9, %rd1", &[64]),
        ("not.b16 %rs9, %rs1", &[16]),
        ("neg.s16 %rs9, %rs1", &[16]),
        ("add.s16 %rs9, %rs1, %rs2", &[16, 16]),
        ("sub.s16 %rs9, %rs1, %rs2", &[16, 16]),
        ("mul.lo.s16 %rs9, %rs1, %rs2", &[16, 16]),
        ("shl.b16 %rs9, %rs1, %r1", &[16, 5]),
        ("shr.u16 %rs9, %rs1, %r1", &[16, 5]),
        ("mul.wide.u16 %r9, %rs1, %rs2", &[16, 16]),
        ("mul.wide.u32 %rd9, %r1, %r2", &[32, 32]),
        ("cvt.u64.u32 %rd9, %r1", &[32]),
        ("cvt.u64.u16 %rd9, %rs1", &[16]),
        ("cvt.s64.s32 %rd9, %r1", &[32]),
        ("mov.u64 %rd9, %rd1", &[64]),
        ("not.b64 %rd9, %rd1", &[64]),
        ("neg.s64 %rd9, %rd1", &[64]),
        ("and.b64 %rd9, %rd1, %rd2", &[64, 64]),
        ("or.b64 %rd9, %rd1, %rd2", &[64, 64]),
        ("xor.b64 %rd9, %rd1, %rd2", &[64, 64]),
        ("add.s64 %rd9, %rd1, %rd2", &[64, 64]),
        ("sub.s64 %rd9, %rd1, %rd2", &[64, 64]),
        ("mul.lo.s64 %rd9, %rd1, %rd2", &[64, 64]),
        ("mul.hi.u64 %rd9, %rd1, %rd2", &[64, 64]),
        ("cvta.local.u64 %rd9, %rd1", &[64]),
        ("shl.b64 %rd9, %rd1, %r1", &[64, 7]),
        ("shr.u64 %rd9, %rd1, %r1", &[64, 7]),
        ("bfi.b64 %rd9, %rd1, %rd2, %r1, %r2", &[64, 64, 7, 7]),
        ("selp.b64 %rd9, %rd1, %rd2, %p1", &[64, 64, 1]),
    ];

    fn decoded(form: &str) -> std::sync::Arc<Code> {
        let registers = ".reg .pred %p<2>;\n.reg .b16 %rs<10>;\n.reg .b32 %r<10>;\n.reg .b64 %rd<10>;";
        let text = format!(".version 9.0\n.visible .entry k()\n{{\n{registers}\n{form};\n}}\n");
        Program::from_text(text).unwrap().kernel("k").unwrap().unwrap()
    }

    #[test]
    fn known_bits_do_not_depend_on_unknown_ones() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state ^ state >> 29
        };
        for (form, sources) in FORMS {
            let code = decoded(form);
            let inst = &code.insts[0];
            let long = form.split(' ').nth(1).is_some_and(|to| to.starts_with("%rd"));
            let result = if long { Class::Long } else { Class::Word };
            let mut precise = 0;
            for _ in 0..500 {
                // Lanes have the same known bits, and others of their own.
                let mut warp = Warp::new(&code, 0);
                (0..code.words.len()).for_each(|place| warp.known_words[place] = u32::MAX);
                (0..code.longs.len()).for_each(|place| {
                    warp.longs[place] = [super::super::program::LOCAL_WINDOW; LANES];
                    warp.known_longs[place] = u32::MAX;
                });
                for (place, bits) in inst.o[1..].iter().zip(sources) {
                    let all = u64::MAX >> (64 - bits);
                    let unknown = [0, random(), random() & random() & random(), 1 << (random() % 64)];
                    let (value, unknown) = (random() & all, unknown[random() as usize % 4] & all);
                    let values: Longs = core::array::from_fn(|_| value & !unknown | random() & unknown);
                    let at = usize::from(*place);
                    match bits {
                        1 => {
                            warp.predicates[at] = each(u32::MAX).fold(0, |p, i| p | (values[i] as u32) << i);
                            warp.known_predicates[at] = if unknown == 0 { u32::MAX } else { 0 };
                        }
                        64 => {
                            warp.longs[at] = values;
                            warp.mark(Class::Long, *place, u32::MAX, &[unknown; LANES]);
                        }
                        _ => {
                            warp.words[at] = values.map(|value| value as u32);
                            warp.mark(Class::Word, *place, u32::MAX, &[unknown; LANES]);
                        }
                    }
                }
                assert!(follow(&mut warp, inst, u32::MAX) || compute(&mut warp, inst, inst.kind, u32::MAX));
                let place = usize::from(inst.o[0]);
                let of = |i: usize| if long { warp.longs[place][i] } else { warp.words[place][i].into() };
                let differs = each(u32::MAX).fold(0, |bits, i| bits | of(i) ^ of(0));
                for lane in 0..LANES {
                    let unknown = warp.unknown_bits(result, inst.o[0], lane);
                    assert_eq!(differs & !unknown, 0, "{form}: lane {lane}, {differs:#x} of {unknown:#x}");
                    precise += u32::from(unknown & 0xffff != 0xffff);
                }
            }
            assert!(precise > 100, "{form}: {precise}");
        }
    }
}
