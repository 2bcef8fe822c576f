//! An assembled text: the instructions of its sections of code, and what they and the data name.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use lanework_respill::assembler::object_of;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionKind, SymbolKind};

/// A section and a distance from its start.
type Place = (usize, u64);

#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) i: Instruction,
    pub(crate) place: Place,
    /// The instruction after it, if one begins there.
    pub(crate) next: Option<usize>,
    /// Of a near branch: the instruction it goes to, or the name of a place in another file.
    pub(crate) to: Option<Result<usize, String>>,
    /// The names in its displacement and its constant.
    pub(crate) named: [Option<String>; 2],
}

/// A section's name, its bytes, and what the linker fills in.
type Data = (String, Vec<u8>, Vec<(u64, String)>);

/// The code of one object.
#[derive(Debug, Default)]
pub(crate) struct Image {
    pub(crate) ops: Vec<Op>,
    pub(crate) at: HashMap<Place, usize>,
    /// The instructions at labels, and the labels of instructions.
    pub(crate) labels: BTreeMap<String, usize>,
    pub(crate) names: HashMap<usize, BTreeSet<String>>,
    /// Instructions at labels that other files see, or that are declared to be functions.
    pub(crate) functions: BTreeSet<usize>,
    pub(crate) exported: BTreeSet<usize>,
    /// Instructions whose address the text or the data take.
    pub(crate) taken: BTreeSet<usize>,
    pub(crate) data: Vec<Data>,
    /// Whether there are tables of exception handlers.
    pub(crate) handlers: bool,
}

struct Symbols {
    /// By section and distance: the names there.
    by_place: BTreeMap<Place, BTreeSet<String>>,
    code: BTreeSet<usize>,
}

impl Symbols {
    /// A name for a place that does not depend on the length of the code before it.
    fn name(&self, place: Place) -> String {
        let before = self.by_place.range((place.0, 0)..=place).next_back();
        match before {
            Some((at, names)) if *at == place || !self.code.contains(&place.0) => {
                format!("{}+{}", names.iter().next().map_or("", |name| name), place.1 - at.1)
            }
            // Between labels of code, or in data without a label.
            _ if self.code.contains(&place.0) => format!("code {}+{}", place.0, place.1),
            _ => format!("section {}+{}", place.0, place.1),
        }
    }

    /// The label at or before a place.
    fn before(&self, place: Place) -> Option<u64> {
        self.by_place.range((place.0, 0)..=place).next_back().map(|(at, _)| at.1)
    }
}

impl Image {
    /// Nothing where the assembler refuses the text.
    pub(crate) fn of(text: &str) -> Option<Image> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("text.o");
        let text = numbered(text);
        object_of(&text, true, &path).ok()?;
        let bytes = std::fs::read(&path).expect("an object");
        let file = object::File::parse(&*bytes).expect("an object");
        let mut symbols = Symbols { by_place: BTreeMap::new(), code: BTreeSet::new() };
        let mut out = Image::default();
        let (mut functions, mut exported) = (Vec::new(), Vec::new());
        symbols.code =
            file.sections().filter(|s| s.kind() == SectionKind::Text).map(|s| s.index().0).collect();
        for symbol in file.symbols() {
            let (Some(section), Ok(name)) = (symbol.section_index(), symbol.name()) else { continue };
            if name.is_empty() || symbol.kind() == SymbolKind::Section {
                continue;
            }
            let place = (section.0, symbol.address());
            symbols.by_place.entry(place).or_default().insert(name.to_owned());
            if symbol.is_global() {
                exported.push(place);
            }
            if symbol.is_global() || symbol.kind() == SymbolKind::Text {
                functions.push(place);
            }
        }
        // What the linker fills in: the field, the symbol's name or place, and the addend.
        let mut fields: BTreeMap<Place, (Result<Place, String>, i64, bool)> = BTreeMap::new();
        for section in file.sections() {
            for (at, relocation) in section.relocations() {
                let RelocationTarget::Symbol(target) = relocation.target() else { continue };
                let symbol = file.symbol_by_index(target).expect("a symbol");
                let what = match symbol.section_index() {
                    Some(section) if symbol.kind() == SymbolKind::Section => Ok((section.0, 0)),
                    Some(section) => Ok((section.0, symbol.address())),
                    None => Err(symbol.name().unwrap_or_default().to_owned()),
                };
                let relative = !matches!(relocation.kind(), object::RelocationKind::Absolute);
                fields.insert((section.index().0, at), (what, relocation.addend(), relative));
            }
        }
        for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
            let code = section.uncompressed_data().expect("bytes");
            out.decode(section.index().0, &code, &symbols);
        }
        for n in 0..out.ops.len() {
            let (section, offset) = out.ops[n].place;
            out.ops[n].next = out.at.get(&(section, offset + out.ops[n].i.len() as u64)).copied();
        }
        for (place, names) in &symbols.by_place {
            if let Some(&op) = out.at.get(place) {
                out.labels.extend(names.iter().map(|name| (name.clone(), op)));
                out.names.entry(op).or_default().extend(names.iter().cloned());
            }
        }
        out.functions = functions.iter().filter_map(|place| out.at.get(place).copied()).collect();
        out.exported = exported.iter().filter_map(|place| out.at.get(place).copied()).collect();
        out.refer(&fields, &symbols);
        for section in file.sections() {
            let name = section.name().unwrap_or_default().to_owned();
            out.handlers |= name.starts_with(".gcc_except_table");
            use SectionKind::{Data, ReadOnlyData, ReadOnlyDataWithRel, ReadOnlyString, Tls};
            if !matches!(section.kind(), Data | ReadOnlyData | ReadOnlyDataWithRel | ReadOnlyString | Tls)
                || name.starts_with(".eh_frame")
                || name.starts_with(".gcc_except_table")
                || name.starts_with(".note")
            {
                continue;
            }
            let index = section.index().0;
            let filled =
                fields.range((index, 0)..(index + 1, 0)).map(|(&(_, at), (what, addend, relative))| {
                    let name = match what {
                        Err(name) => format!("{name}+{addend}"),
                        Ok((section, base)) => {
                            let mut place = (*section, base.wrapping_add_signed(*addend));
                            // The distance of a label from the table's begin, counted from the field.
                            if *relative && symbols.code.contains(section) {
                                let begin = symbols.before((index, at)).unwrap_or(0);
                                place.1 = place.1.wrapping_sub(at - begin);
                            }
                            out.taken.extend(out.at.get(&place));
                            symbols.name(place)
                        }
                    };
                    (at, name)
                });
            let filled = filled.collect();
            out.data.push((name, section.uncompressed_data().expect("bytes").into_owned(), filled));
        }
        Some(out)
    }

    fn decode(&mut self, section: usize, code: &[u8], symbols: &Symbols) {
        let mut begins: Vec<u64> =
            symbols.by_place.range((section, 0)..(section + 1, 0)).map(|(place, _)| place.1).collect();
        begins.insert(0, 0);
        begins.push(code.len() as u64);
        for pair in begins.windows(2) {
            let mut offset = pair[0];
            while offset < pair[1] {
                let bytes = &code[offset as usize..];
                let i = Decoder::with_ip(64, bytes, offset, DecoderOptions::NONE).decode();
                let place = (section, offset);
                if !self.at.contains_key(&place) {
                    self.at.insert(place, self.ops.len());
                    self.ops.push(Op { i, place, next: None, to: None, named: [None, None] });
                }
                offset += i.len().max(1) as u64;
            }
        }
    }

    fn refer(&mut self, fields: &BTreeMap<Place, (Result<Place, String>, i64, bool)>, symbols: &Symbols) {
        for n in 0..self.ops.len() {
            let Op { i, place: (section, offset), .. } = self.ops[n];
            if i.is_invalid() {
                continue;
            }
            let end = offset + i.len() as u64;
            let field = fields.range((section, offset)..(section, end));
            let resolved: Vec<(u64, Result<Place, String>)> = field
                .map(|(&(_, at), (what, addend, relative))| {
                    // Counted from the field's place, while the processor counts from the instruction's end.
                    let addend = if *relative { addend + (end - at) as i64 } else { *addend };
                    let what = match what {
                        Ok((section, base)) => Ok((*section, base.wrapping_add_signed(addend))),
                        Err(name) => Err(format!("{name}+{addend}")),
                    };
                    (at, what)
                })
                .collect();
            if matches!(i.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16) {
                let place = match resolved.into_iter().next() {
                    None => Ok((section, i.near_branch_target())),
                    Some((_, place)) => place,
                };
                self.ops[n].to = match place {
                    Ok(place) => self.at.get(&place).map(|&op| Ok(op)),
                    Err(name) => Some(Err(name.trim_end_matches("+0").to_owned())),
                };
                continue;
            }
            let in_code = |place: &Result<Place, String>| {
                place.as_ref().ok().and_then(|place| self.at.get(place)).copied()
            };
            let mut taken: Vec<usize> = Vec::new();
            let mut named = [None, None];
            let bytes = i.len() as u64;
            for (at, place) in &resolved {
                taken.extend(in_code(place));
                let name = match place {
                    Ok(place) => symbols.name(*place),
                    Err(name) => name.clone(),
                };
                // A constant follows a displacement.
                let has_memory = (0..i.op_count()).any(|k| i.op_kind(k) == OpKind::Memory);
                let constant = i.immediate_bytes();
                let last = constant > 0 && at - offset + constant >= bytes;
                named[usize::from(last || !has_memory)] = Some(name);
            }
            if i.is_ip_rel_memory_operand() && named[0].is_none() {
                let place = (section, i.ip_rel_memory_address());
                taken.extend(in_code(&Ok(place)));
                named[0] = Some(symbols.name(place));
            }
            self.ops[n].named = named;
            self.taken.extend(taken);
        }
    }

    /// Whether control may go elsewhere than to the next instruction.
    pub(crate) fn leaves(&self, op: usize) -> bool {
        self.ops[op].i.is_invalid() || self.ops[op].i.flow_control() != FlowControl::Next
    }
}

/// Labels that are numbers get names, since assemblers keep none of them.
fn numbered(text: &str) -> String {
    let name = |number: &str, n: usize| format!(".Lnumber{number}_{n}");
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = String::new();
    for line in text.lines() {
        let mut rest = line;
        let start = line.trim_start();
        if let Some((number, behind)) = start.split_once(':')
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
        {
            let n = count.entry(number).or_default();
            *n += 1;
            out.push_str(&name(number, *n));
            out.push(':');
            rest = behind;
        }
        let inside = |b: u8| b.is_ascii_alphanumeric() || b"_.$%".contains(&b);
        let bytes = rest.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let end = (at..bytes.len()).find(|&k| !inside(bytes[k])).unwrap_or(bytes.len()).max(at + 1);
            let word = &rest[at..end];
            let (number, way) = word.split_at(word.len().saturating_sub(1));
            match count.get(number) {
                Some(n) if way == "b" => out.push_str(&name(number, *n)),
                n if way == "f" && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
                    out.push_str(&name(number, n.copied().unwrap_or(0) + 1));
                }
                _ => out.push_str(word),
            }
            at = end;
        }
        out.push('\n');
    }
    out
}

trait Immediate {
    fn immediate_bytes(&self) -> u64;
}

impl Immediate for Instruction {
    /// Bytes of a constant at the end.
    fn immediate_bytes(&self) -> u64 {
        (0..self.op_count())
            .map(|n| match self.op_kind(n) {
                OpKind::Immediate8
                | OpKind::Immediate8to16
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64 => 1,
                OpKind::Immediate16 => 2,
                OpKind::Immediate32 | OpKind::Immediate32to64 => 4,
                OpKind::Immediate64 => 8,
                _ => 0,
            })
            .sum()
    }
}

/// Whether two instructions are the same but for their places and what the linker fills in.
pub(crate) fn same(a: &Op, b: &Op) -> bool {
    let plain = |op: &Op| {
        let mut i = op.i;
        if op.named[0].is_some() {
            i.set_memory_displacement64(0);
        }
        i
    };
    if a.to.is_some() || b.to.is_some() {
        return a.i.mnemonic() == b.i.mnemonic();
    }
    a.named == b.named && plain(a) == plain(b)
}
