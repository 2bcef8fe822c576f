//! The opcodes that are executed. Sections are those of the PTX ISA 9.0.

use super::{
    Class, Compare, Constant, Decoder, Draft, Kind, LOCAL_WINDOW, LONGS, Operand, Register, Statement, Wrong,
    class_of, type_bytes,
};

/// The bits of a type, and whether it is signed.
fn integer(name: &str) -> Option<(u32, bool)> {
    let bytes = type_bytes(name).filter(|_| !name.starts_with('.') && name != "pred")?;
    Some((8 * bytes, name.starts_with('s')))
}

fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

impl<'a> Decoder<'a> {
    /// Adds what the opcode says.
    pub(super) fn form(&mut self, parts: &[&str], statement: &Statement<'a>) -> Result<(), Wrong> {
        let o = &statement.operands;
        match parts {
            ["and" | "or" | "xor" | "not", ..] => self.logic(parts, o),
            ["mov", kind] => self.moves(kind, o),
            // 9.7.1: integer arithmetic. Without saturation it is the same for both signs.
            ["add" | "sub" | "neg", kind] => {
                let (kinds, count) = match parts[0] {
                    "add" => ([Kind::Add, Kind::AddLong], 2),
                    "sub" => ([Kind::Sub, Kind::SubLong], 2),
                    _ => ([Kind::Neg, Kind::NegLong], 1),
                };
                self.plain(kinds, kind, o, count)
            }
            ["mul", "lo", kind] => self.plain([Kind::MulLo, Kind::MulLoLong], kind, o, 2),
            ["mul", "hi", "u64"] => self.alike(Kind::MulHiLong, o, 8, &[8, 8]),
            ["mul", "wide", "u16"] => self.alike(Kind::MulWide16, o, 4, &[2, 2]),
            ["mul", "wide", "u32"] => self.alike(Kind::MulWideUnsigned, o, 8, &[4, 4]),
            ["mul", "wide", "s32"] => self.alike(Kind::MulWideSigned, o, 8, &[4, 4]),
            ["mad", "lo", "s32" | "u32"] => self.alike(Kind::MadLo, o, 4, &[4, 4, 4]),
            ["div", "u32"] => self.alike(Kind::DivUnsigned, o, 4, &[4, 4]),
            ["min", "u32"] => self.alike(Kind::MinUnsigned, o, 4, &[4, 4]),
            ["max", "u32"] => self.alike(Kind::MaxUnsigned, o, 4, &[4, 4]),
            // 9.7.1: bfi, dp4a, dp2a.
            ["bfi", "b32"] => self.alike(Kind::Insert, o, 4, &[4, 4, 4, 4]),
            ["bfi", "b64"] => self.alike(Kind::InsertLong, o, 8, &[8, 8, 4, 4]),
            ["dp4a", "u32", "u32"] => self.alike(Kind::Dot4, o, 4, &[4, 4, 4]),
            ["dp2a", "lo", "u32", "u32"] => self.alike(Kind::Dot2, o, 4, &[4, 4, 4]),
            // 9.7.7: setp without a second operation, selp.
            ["setp", compare, kind] => self.comparison(compare, kind, o),
            ["selp", kind] => {
                let Some((bits, _)) = integer(kind).filter(|(bits, _)| *bits > 8) else {
                    return self.refuse(parts);
                };
                let kind = if bits == 64 { Kind::SelectLong } else { Kind::Select };
                self.alike(kind, o, bits / 8, &[bits / 8, bits / 8, 0])
            }
            // 9.7.8: shifts and logic.
            ["shl", "b16" | "b32" | "b64"] | ["shr", "u16" | "u32" | "s32" | "u64" | "b32" | "b64"] => {
                self.shift(parts, o)
            }
            ["shf", "l", "wrap", "b32"] => self.alike(Kind::FunnelLeft, o, 4, &[4, 4, 4]),
            ["shf", "r", "wrap", "b32"] => self.alike(Kind::FunnelRight, o, 4, &[4, 4, 4]),
            ["lop3", "b32"] => self.alike(Kind::Logic3, o, 4, &[4, 4, 4, 4]),
            // 9.7.9: data movement and conversion.
            ["prmt", "b32"] => self.alike(Kind::Permute, o, 4, &[4, 4, 4]),
            ["cvt", to, from] => self.conversion(to, from, o),
            ["cvta", "to", "global", "u64"] => self.alike(Kind::MoveLong, o, 8, &[8]),
            ["cvta", "local", "u64"] => self.window(Kind::AddLong, o),
            ["cvta", "to", "local", "u64"] => self.window(Kind::SubLong, o),
            ["ld", "param", kind] => self.parameter(kind, o),
            ["st", "param", "b64"] => match o.as_slice() {
                [Operand::Memory(name, 0), value] => {
                    let to = self.result(&Operand::Name(name), 8)?;
                    let value = self.source(value, 8)?;
                    self.push(Kind::MoveLong, vec![(to, true), (value, false)]);
                    Ok(())
                }
                _ => self.operands(parts),
            },
            ["ld" | "st", ..] => self.memory(parts, o),
            ["cp", "async", "cg", "shared", "global"] => match o.as_slice() {
                [Operand::Memory(to, 0), Operand::Memory(from, 0), Operand::Number(16)] => {
                    let to = self.source(&Operand::Name(to), 4)?;
                    let from = self.source(&Operand::Name(from), 8)?;
                    self.push(Kind::CopyAsync, vec![(to, false), (from, false)]);
                    Ok(())
                }
                _ => self.operands(parts),
            },
            ["cp", "async", "commit_group"] => self.alone(Kind::CopyCommit, parts, o),
            ["cp", "async", "wait_group"] => match o.as_slice() {
                [Operand::Number(pending)] => {
                    self.push(Kind::CopyWait, vec![]).aux = *pending;
                    Ok(())
                }
                _ => self.operands(parts),
            },
            // 9.7.9: shfl.sync.
            ["shfl", "sync", mode @ ("bfly" | "idx"), "b32"] => match o.as_slice() {
                [Operand::Pair(to, there), value, lane, segment, members] => {
                    let to = self.result(&Operand::Name(to), 4)?;
                    let there = self.result(&Operand::Name(there), 0)?;
                    let mut operands = vec![(to, true), (there, true)];
                    for operand in [value, lane, segment, members] {
                        operands.push((self.source(operand, 4)?, false));
                    }
                    self.push(
                        if *mode == "bfly" { Kind::ShuffleButterfly } else { Kind::ShuffleIndex },
                        operands,
                    );
                    Ok(())
                }
                _ => self.operands(parts),
            },
            // 9.7.12: control flow.
            // That all threads go the same way is promised, and not checked.
            ["bra", "uni"] if statement.guard.is_some() => self.refuse(parts),
            ["bra"] | ["bra", "uni"] => match o.as_slice() {
                [Operand::Name(label)] => {
                    self.jumps.push((self.drafts.len(), label));
                    self.push(Kind::Branch, vec![]);
                    Ok(())
                }
                _ => self.operands(parts),
            },
            ["ret"] | ["exit"] => self.alone(Kind::Return, parts, o),
            ["call", "uni"] => self.call(parts, o),
            // 9.7.13: barriers, votes, reductions, atomics.
            ["bar" | "barrier", ..] => self.barrier(parts, o),
            ["vote", "sync", "ballot", "b32"] => self.alike(Kind::Ballot, o, 4, &[0, 4]),
            ["redux", "sync", "or", "b32"] => self.alike(Kind::ReduceOr, o, 4, &[4, 4]),
            ["redux", "sync", "xor", "b32"] => self.alike(Kind::ReduceXor, o, 4, &[4, 4]),
            ["atom", "shared", "xor", "b32"] => match o.as_slice() {
                [to, Operand::Memory(base, offset), value] => {
                    let to = self.result(to, 4)?;
                    let base = self.base(base, "shared")?;
                    let value = self.source(value, 4)?;
                    let draft =
                        self.push(Kind::AtomicXorShared, vec![(to, true), (base, false), (value, false)]);
                    draft.aux = *offset as u64;
                    Ok(())
                }
                _ => self.operands(parts),
            },
            // 9.7.14.5: the product of bits with AND.
            [
                "mma",
                "sync",
                "aligned",
                "m16n8k256",
                "row",
                "col",
                "s32",
                "b1",
                "b1",
                "s32",
                "and",
                "popc",
            ] => self.product(parts, o),
            _ => self.refuse(parts),
        }
    }

    fn refuse(&self, parts: &[&str]) -> Result<(), Wrong> {
        Err(self.wrong(format!("the instruction '{}' is not executed", parts.join("."))))
    }

    fn operands(&self, parts: &[&str]) -> Result<(), Wrong> {
        Err(self.wrong(format!("'{}' with these operands is not executed", parts.join("."))))
    }

    fn alone(&mut self, kind: Kind, parts: &[&str], o: &[Operand<'a>]) -> Result<(), Wrong> {
        if !o.is_empty() {
            return self.operands(parts);
        }
        self.push(kind, vec![]);
        Ok(())
    }

    /// A result of `to` bytes from sources of so many each.
    fn alike(&mut self, kind: Kind, o: &[Operand<'a>], to: u32, from: &[u32]) -> Result<(), Wrong> {
        self.masked(kind, o, to, from).map(|_| ())
    }

    fn masked(&mut self, kind: Kind, o: &[Operand<'a>], to: u32, from: &[u32]) -> Result<&mut Draft, Wrong> {
        let Some((first, rest)) = o.split_first().filter(|(_, rest)| rest.len() == from.len()) else {
            let why = format!("{} operands in place of {}", o.len(), from.len() + 1);
            return Err(self.wrong(why));
        };
        let mut operands = vec![(self.result(first, to)?, true)];
        for (operand, bytes) in rest.iter().zip(from) {
            operands.push((self.source(operand, *bytes)?, false));
        }
        let draft = self.push(kind, operands);
        draft.aux = mask(8 * to);
        Ok(draft)
    }

    /// Arithmetic of 16, 32 or 64 bits.
    fn plain(&mut self, kinds: [Kind; 2], kind: &str, o: &[Operand<'a>], count: usize) -> Result<(), Wrong> {
        match integer(kind).map(|(bits, _)| bits / 8).filter(|bytes| *bytes > 1) {
            Some(bytes) => self.alike(kinds[usize::from(bytes == 8)], o, bytes, &vec![bytes; count]),
            None => Err(self.wrong(format!("arithmetic of type '{kind}' is not executed"))),
        }
    }

    /// 9.7.8: and, or, xor, not.
    fn logic(&mut self, parts: &[&str], o: &[Operand<'a>]) -> Result<(), Wrong> {
        use Kind::{
            And, AndLong, AndPredicate, Not, NotLong, NotPredicate, Or, OrLong, OrPredicate, Xor, XorLong,
            XorPredicate,
        };
        let kinds = match parts[0] {
            "and" => [AndPredicate, And, AndLong],
            "or" => [OrPredicate, Or, OrLong],
            "xor" => [XorPredicate, Xor, XorLong],
            _ => [NotPredicate, Not, NotLong],
        };
        let [_, kind @ ("pred" | "b16" | "b32" | "b64")] = parts else { return self.refuse(parts) };
        let bytes = type_bytes(kind).unwrap_or(0);
        let count = if parts[0] == "not" { 1 } else { 2 };
        self.alike(kinds[class_of(bytes) as usize], o, bytes, &vec![bytes; count])
    }

    /// 9.7.9: mov of registers, addresses and special registers, and of two halves into a word.
    fn moves(&mut self, kind: &str, o: &[Operand<'a>]) -> Result<(), Wrong> {
        let Some(bytes) = type_bytes(kind).filter(|bytes| *bytes != 1) else {
            return Err(self.wrong(format!("moves of type '{kind}' are not executed")));
        };
        match o {
            [to, Operand::Name("%clock64")] if bytes == 8 => {
                let to = self.result(to, 8)?;
                self.push(Kind::Clock, vec![(to, true)]);
                Ok(())
            }
            [to, Operand::List(halves)] if bytes == 4 && halves.len() == 2 => {
                let to = self.result(to, 4)?;
                let low = self.source(&halves[0], 2)?;
                let high = self.source(&halves[1], 2)?;
                self.push(Kind::Pack, vec![(to, true), (low, false), (high, false)]);
                Ok(())
            }
            _ => {
                let kinds = [Kind::MovePredicate, Kind::Move, Kind::MoveLong];
                self.alike(kinds[class_of(bytes) as usize], o, bytes, &[bytes])
            }
        }
    }

    fn comparison(&mut self, compare: &str, kind: &str, o: &[Operand<'a>]) -> Result<(), Wrong> {
        let names = ["eq", "ne", "lt", "le", "gt", "ge"];
        let code = names.iter().position(|name| *name == compare);
        let (Some(code), Some((bits, signed))) = (code, integer(kind)) else {
            return Err(self.wrong(format!("the instruction 'setp.{compare}.{kind}' is not executed")));
        };
        let equality = code < 2;
        let unordered = kind.starts_with('b') && !equality;
        if bits < 16 || unordered || (bits == 16 && signed && !equality) {
            return Err(self.wrong(format!("the instruction 'setp.{compare}.{kind}' is not executed")));
        }
        let kind = match (bits, signed && !equality) {
            (64, false) => Kind::SetUnsignedLong,
            (64, true) => Kind::SetSignedLong,
            (_, false) => Kind::SetUnsigned,
            (_, true) => Kind::SetSigned,
        };
        let draft = self.masked(kind, o, 0, &[bits / 8, bits / 8])?;
        draft.code = Compare::ALL[code] as u8;
        Ok(())
    }

    fn shift(&mut self, parts: &[&str], o: &[Operand<'a>]) -> Result<(), Wrong> {
        let Some((bits, signed)) = integer(parts[1]) else { return self.refuse(parts) };
        let kind = match (parts[0], bits, signed) {
            ("shl", 64, _) => Kind::ShlLong,
            ("shl", ..) => Kind::Shl,
            (_, 64, _) => Kind::ShrLong,
            (_, _, true) => Kind::ShrSigned,
            _ => Kind::ShrUnsigned,
        };
        self.alike(kind, o, bits / 8, &[bits / 8, 4])
    }

    /// 9.7.9: cvt between integers.
    fn conversion(&mut self, to: &str, from: &str, o: &[Operand<'a>]) -> Result<(), Wrong> {
        let (Some((to_bits, _)), Some((from_bits, signed)), [result, source]) =
            (integer(to), integer(from), o)
        else {
            return self.refuse(&["cvt", to, from]);
        };
        let source = self.wider(source, from_bits / 8)?;
        let Operand::Name(name) = result else { return self.operands(&["cvt", to, from]) };
        let found = self.find(name).filter(|(_, bytes)| 8 * bytes >= to_bits);
        let Some((result, bytes)) = found else {
            return Err(self.wrong(format!("'{name}' is not a register for a result of type '{to}'")));
        };
        // A wider register gets the result extended by its sign, which no shipped form needs.
        if 8 * bytes > to_bits && to.starts_with('s') {
            return self.refuse(&["cvt", to, from]);
        }
        let kept = mask(from_bits.min(to_bits));
        let (kind, aux) = match (source.class, result.class, signed && from_bits < to_bits) {
            (Class::Word, Class::Word, false) => (Kind::Narrow, kept),
            (Class::Word, Class::Long, false) => (Kind::Widen, kept),
            (Class::Long, Class::Word, false) => (Kind::Shorten, kept),
            (Class::Long, Class::Long, false) if kept == u64::MAX => (Kind::MoveLong, kept),
            (Class::Word, Class::Long, true) if to_bits == 64 => (Kind::Extend, mask(to_bits)),
            (Class::Word, Class::Word, true) => (Kind::ExtendWord, mask(to_bits)),
            _ => return self.refuse(&["cvt", to, from]),
        };
        let draft = self.push(kind, vec![(result, true), (source, false)]);
        (draft.aux, draft.code) = (aux, from_bits as u8);
        Ok(())
    }

    /// 9.7.9: cvta, by a thread's own memory's place among generic addresses.
    fn window(&mut self, kind: Kind, o: &[Operand<'a>]) -> Result<(), Wrong> {
        let [to, from] = o else { return self.operands(&["cvta"]) };
        let to = self.result(to, 8)?;
        let from = self.source(from, 8)?;
        let window = self.constant(Class::Long, Constant::Value(LOCAL_WINDOW));
        self.push(kind, vec![(to, true), (from, false), (window, false)]).aux = mask(64);
        Ok(())
    }

    /// Parameters of the kernel are constants; results of calls are registers.
    fn parameter(&mut self, kind: &str, o: &[Operand<'a>]) -> Result<(), Wrong> {
        let (Some(bytes), [to, Operand::Memory(name, offset)]) = (type_bytes(kind), o) else {
            return self.operands(&["ld", "param", kind]);
        };
        let move_kind = if bytes == 8 { Kind::MoveLong } else { Kind::Move };
        let value = match self.entry.parameters.iter().find(|parameter| parameter.name == *name) {
            Some(parameter) if bytes >= 4 && *offset == 0 && parameter.bytes == bytes => {
                let constant = Constant::Parameter(parameter.offset, bytes);
                self.constant(class_of(bytes), constant)
            }
            None if *offset == 0 => self.source(&Operand::Name(name), bytes)?,
            _ => return self.operands(&["ld", "param", kind]),
        };
        let to = self.result(to, bytes)?;
        self.push(move_kind, vec![(to, true), (value, false)]);
        Ok(())
    }

    /// The register of an address, or a variable's address: a word for shared memory, a long for everything else.
    fn base(&mut self, name: &'a str, space: &str) -> Result<Register, Wrong> {
        self.source(&Operand::Name(name), if space == "shared" { 4 } else { 8 })
    }

    /// 9.7.9: ld and st, with or without .volatile, .nc, .v2 and .v4.
    fn memory(&mut self, parts: &[&str], o: &[Operand<'a>]) -> Result<(), Wrong> {
        let load = parts[0] == "ld";
        let mut rest = &parts[1..];
        if rest.first() == Some(&"volatile") {
            rest = &rest[1..];
        }
        let mut space = "generic";
        if let Some(name @ ("global" | "shared" | "local")) = rest.first().copied() {
            (space, rest) = (name, &rest[1..]);
        }
        if load && space == "global" && rest.first() == Some(&"nc") {
            rest = &rest[1..];
        }
        let mut count = 1;
        if let Some(vector @ ("v2" | "v4")) = rest.first().copied() {
            (count, rest) = (if vector == "v2" { 2 } else { 4 }, &rest[1..]);
        }
        let [kind] = rest else { return self.refuse(parts) };
        let Some((bits, false)) = integer(kind) else { return self.refuse(parts) };
        let bytes = bits / 8;
        let (memory, values) = match (load, o) {
            (true, [values, memory]) | (false, [memory, values]) => (memory, values),
            _ => return self.operands(parts),
        };
        let Operand::Memory(base, offset) = memory else { return self.operands(parts) };
        let base = self.base(base, space)?;
        let one;
        let values: &[Operand<'a>] = match values {
            Operand::List(values) if values.len() == count => values,
            value if count == 1 => {
                one = [value.clone()];
                &one
            }
            _ => return self.operands(parts),
        };
        let (mut operands, mut class) = (vec![(base, false)], Class::Word);
        for value in values {
            let register = self.wider(value, bytes)?;
            if operands.len() > 1 && class != register.class {
                return self.operands(parts);
            }
            class = register.class;
            if load && self.constants.contains_key(&register) {
                return self.operands(parts);
            }
            operands.push((register, load));
        }
        let kind = match (load, space) {
            (true, "global") => Kind::LoadGlobal,
            (true, "shared") => Kind::LoadShared,
            (true, "local") => Kind::LoadLocal,
            (true, _) => Kind::LoadGeneric,
            (false, "global") => Kind::StoreGlobal,
            (false, "shared") => Kind::StoreShared,
            (false, "local") => Kind::StoreLocal,
            (false, _) => Kind::StoreGeneric,
        };
        let draft = self.push(kind, operands);
        (draft.code, draft.aux) = (bytes as u8, *offset as u64);
        draft.count = count as u8 | if class == Class::Long { LONGS } else { 0 };
        Ok(())
    }

    /// 9.7.12: call, of the two functions that every device has.
    fn call(&mut self, parts: &[&str], o: &[Operand<'a>]) -> Result<(), Wrong> {
        let known = |name: &str| self.outline.functions.iter().any(|known| known == name);
        match o {
            [Operand::List(result), Operand::Name("malloc"), Operand::List(arguments)] if known("malloc") => {
                let ([result], [argument]) = (result.as_slice(), arguments.as_slice()) else {
                    return self.operands(parts);
                };
                let to = self.result(result, 8)?;
                let bytes = self.source(argument, 8)?;
                self.push(Kind::Allocate, vec![(to, true), (bytes, false)]);
                Ok(())
            }
            [Operand::Name("free"), Operand::List(arguments)] if known("free") => {
                let [argument] = arguments.as_slice() else { return self.operands(parts) };
                let address = self.source(argument, 8)?;
                self.push(Kind::Free, vec![(address, false)]);
                Ok(())
            }
            [Operand::List(_), Operand::Name(name), ..] | [Operand::Name(name), ..] => {
                Err(self.wrong(format!("a call of '{name}' is not executed")))
            }
            _ => self.operands(parts),
        }
    }

    /// 9.7.13: bar.sync, bar.arrive and bar.warp.sync. `bar` is `barrier` with `.aligned`.
    fn barrier(&mut self, parts: &[&str], o: &[Operand<'a>]) -> Result<(), Wrong> {
        let kind = match (parts, o.len()) {
            (["bar", "sync"] | ["barrier", "sync", "aligned"], 1 | 2) => Kind::BarrierSync,
            (["bar", "arrive"] | ["barrier", "arrive", "aligned"], 2) => Kind::BarrierArrive,
            (["bar", "warp", "sync"], 1) => Kind::BarrierWarp,
            _ => return self.refuse(parts),
        };
        let mut operands = Vec::new();
        for operand in o {
            operands.push((self.source(operand, 4)?, false));
        }
        self.push(kind, operands).count = o.len() as u8;
        Ok(())
    }

    fn product(&mut self, parts: &[&str], o: &[Operand<'a>]) -> Result<(), Wrong> {
        let [Operand::List(d), Operand::List(a), Operand::List(b), Operand::List(c)] = o else {
            return self.operands(parts);
        };
        if (d.len(), a.len(), b.len(), c.len()) != (4, 4, 2, 4) {
            return self.operands(parts);
        }
        let mut operands = Vec::new();
        for to in d {
            operands.push((self.result(to, 4)?, true));
        }
        for from in a.iter().chain(b).chain(c) {
            operands.push((self.source(from, 4)?, false));
        }
        self.push(Kind::MultiplyBits, operands);
        Ok(())
    }
}
