//! PTX text as statements: chapter 4 of the PTX ISA 9.0, "Syntax", as far as shipped programs use it.
#![forbid(unsafe_code)]

use core::fmt;
use core::ops::Range;

/// A refused program: the line, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: u32,
    pub(super) why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// 4.5: identifiers with their leading `%`, `.` or `$`, numbers, and single marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Text,
    Mark(u8),
}

#[derive(Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, range: Range<usize>, line: u32) -> Lexer<'a> {
        Lexer { text: &text[..range.end], at: range.start, line }
    }

    fn wrong(&self, why: impl Into<String>) -> Wrong {
        Wrong { line: self.line, why: why.into() }
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.text.as_bytes();
        loop {
            let byte = *bytes.get(self.at)?;
            let rest = &bytes[self.at..];
            if byte == b'\n' {
                self.line += 1;
                self.at += 1;
            } else if byte.is_ascii_whitespace() {
                self.at += 1;
            } else if rest.starts_with(b"//") {
                self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            } else if rest.starts_with(b"/*") {
                let end = rest.windows(2).position(|two| two == b"*/").map_or(rest.len(), |end| end + 2);
                self.line += rest[..end].iter().filter(|b| **b == b'\n').count() as u32;
                self.at += end;
            } else if byte == b'"' {
                self.at += rest[1..].iter().position(|b| *b == b'"').map_or(rest.len(), |end| end + 2);
                return Some(Token::Text);
            } else if is_word(byte) {
                let len = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
                self.at += len;
                return Some(Token::Word(&self.text[self.at - len..self.at]));
            } else if byte.is_ascii() {
                self.at += 1;
                return Some(Token::Mark(byte));
            } else {
                // A mark that no rule takes.
                self.at += self.text[self.at..].chars().next().map_or(1, char::len_utf8);
                return Some(Token::Mark(0));
            }
        }
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.clone().next()
    }

    fn takes(&mut self, mark: u8) -> bool {
        let found = self.peek() == Some(Token::Mark(mark));
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, mark: u8) -> Result<(), Wrong> {
        match self.next() {
            Some(Token::Mark(found)) if found == mark => Ok(()),
            found => Err(self.wrong(format!("expected '{}', found {found:?}", mark as char))),
        }
    }

    fn word(&mut self) -> Result<&'a str, Wrong> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            found => Err(self.wrong(format!("expected a name, found {found:?}"))),
        }
    }

    fn number(&mut self) -> Result<u64, Wrong> {
        let minus = self.takes(b'-');
        let word = self.word()?;
        let value = integer(word).ok_or_else(|| self.wrong(format!("'{word}' is not an integer")))?;
        Ok(if minus { value.wrapping_neg() } else { value })
    }

    /// Passes over a block whose first brace has been read; its end is before the last one.
    fn block(&mut self) -> Result<usize, Wrong> {
        let mut depth = 1;
        loop {
            let before = self.at;
            match self.next() {
                Some(Token::Mark(b'{')) => depth += 1,
                Some(Token::Mark(b'}')) => depth -= 1,
                None => return Err(self.wrong("the text ends within a body")),
                _ => {}
            }
            if depth == 0 {
                return Ok(before);
            }
        }
    }

    /// Passes over everything up to a semicolon.
    fn declaration(&mut self) -> Result<(), Wrong> {
        loop {
            match self.next() {
                Some(Token::Mark(b';')) => return Ok(()),
                None => return Err(self.wrong("the text ends within a declaration")),
                _ => {}
            }
        }
    }
}

/// 4.5.1: decimal and hexadecimal integers, with or without the suffix U.
fn integer(word: &str) -> Option<u64> {
    let word = word.strip_suffix('U').unwrap_or(word);
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        // Octal integers begin with a zero.
        None if word.len() > 1 && word.starts_with('0') => None,
        None => word.parse().ok(),
    }
}

/// 5.2: the bytes of a fundamental type, and 0 for predicates.
pub(super) fn type_bytes(name: &str) -> Option<u32> {
    Some(match name {
        ".pred" | "pred" => 0,
        _ => match name.trim_start_matches('.') {
            "b8" | "u8" | "s8" => 1,
            "b16" | "u16" | "s16" => 2,
            "b32" | "u32" | "s32" => 4,
            "b64" | "u64" | "s64" => 8,
            _ => return None,
        },
    })
}

/// A variable of the module, with its initial bytes.
#[derive(Debug)]
pub(super) struct Global {
    pub(super) name: String,
    pub(super) align: u32,
    pub(super) bytes: Vec<u8>,
}

/// A parameter of an entry, or the space that a call's argument is passed in.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) bytes: u32,
    pub(super) offset: u32,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) parameters: Vec<Parameter>,
    /// The most threads of a block, by `.maxntid`.
    pub(super) max_threads: Option<u32>,
    pub(super) body: Range<usize>,
    pub(super) line: u32,
}

/// A module without the bodies of its entries, which are parsed when they are wanted.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) globals: Vec<Global>,
    pub(super) entries: Vec<Entry>,
    /// Names of arrays in shared memory without a size: all begin where dynamic shared memory does (5.4.3).
    pub(super) dynamic_shared: Vec<String>,
    /// Functions that are called, and defined elsewhere.
    pub(super) functions: Vec<String>,
}

pub(super) fn outline(text: &str) -> Result<Outline, Wrong> {
    let mut lexer = Lexer::new(text, 0..text.len(), 1);
    let mut out = Outline::default();
    while let Some(token) = lexer.next() {
        let Token::Word(word) = token else {
            return Err(lexer.wrong(format!("expected a directive, found {token:?}")));
        };
        match word {
            // 11.1: other versions have other opcodes, which are refused by their own names.
            ".version" | ".target" | ".address_size" => {
                lexer.word()?;
            }
            ".visible" | ".weak" => {}
            ".extern" => external(&mut lexer, &mut out)?,
            ".global" => out.globals.push(global(&mut lexer)?),
            ".entry" => out.entries.push(entry(&mut lexer)?),
            _ => return Err(lexer.wrong(format!("the directive '{word}' is not executed"))),
        }
    }
    Ok(out)
}

fn external(lexer: &mut Lexer<'_>, out: &mut Outline) -> Result<(), Wrong> {
    match lexer.word()? {
        ".shared" => {
            let variable = variable(lexer)?;
            if variable.count.is_some() {
                return Err(lexer.wrong("shared memory of a fixed size is not executed"));
            }
            out.dynamic_shared.push(variable.name.to_owned());
            lexer.expect(b';')
        }
        ".func" => {
            if lexer.takes(b'(') {
                while !lexer.takes(b')') {
                    lexer.next().ok_or_else(|| lexer.wrong("the text ends within a function"))?;
                }
            }
            out.functions.push(lexer.word()?.to_owned());
            lexer.declaration()
        }
        word => Err(lexer.wrong(format!("the external '{word}' is not executed"))),
    }
}

/// 5.4: `.align 4 .b8 name[count]`.
struct Variable<'a> {
    name: &'a str,
    bytes: u32,
    align: u32,
    /// Elements of an array; `None` for one without a size.
    count: Option<u64>,
}

fn variable<'a>(lexer: &mut Lexer<'a>) -> Result<Variable<'a>, Wrong> {
    let (mut word, mut align) = (lexer.word()?, None);
    if word == ".align" {
        align = Some(lexer.number()? as u32);
        word = lexer.word()?;
    }
    let Some(bytes) = type_bytes(word).filter(|b| *b > 0) else {
        return Err(lexer.wrong(format!("the type '{word}' is not executed")));
    };
    let name = lexer.word()?;
    let mut count = Some(1);
    if lexer.takes(b'[') {
        count = if lexer.takes(b']') {
            None
        } else {
            let count = lexer.number()?;
            lexer.expect(b']')?;
            Some(count)
        };
    }
    // 5.4.5: without a word, a multiple of an element's size.
    Ok(Variable { name, bytes, align: align.unwrap_or(bytes), count })
}

fn global(lexer: &mut Lexer<'_>) -> Result<Global, Wrong> {
    let variable = variable(lexer)?;
    let size = variable.count.unwrap_or(0).checked_mul(variable.bytes.into()).filter(|n| *n <= 1 << 30);
    let Some(size) = size else { return Err(lexer.wrong("a variable of more than 1 GiB")) };
    // Variables without a value are zero (5.4.4).
    let mut bytes = Vec::with_capacity(size as usize);
    if lexer.takes(b'=') {
        lexer.expect(b'{')?;
        while !lexer.takes(b'}') {
            let value = lexer.number()?;
            bytes.extend_from_slice(&value.to_le_bytes()[..variable.bytes as usize]);
            lexer.takes(b',');
        }
    }
    lexer.expect(b';')?;
    if bytes.len() as u64 > size {
        return Err(lexer.wrong(format!("'{}' has more values than places", variable.name)));
    }
    bytes.resize(size as usize, 0);
    Ok(Global { name: variable.name.to_owned(), align: variable.align, bytes })
}

/// The kernel's parameters lie one after the other, each aligned to its size (CUDA's driver passes them so).
pub(super) fn parameters_end(parameters: &[Parameter]) -> u32 {
    parameters.last().map_or(0, |last| last.offset + last.bytes)
}

fn entry(lexer: &mut Lexer<'_>) -> Result<Entry, Wrong> {
    let name = lexer.word()?.to_owned();
    let mut parameters: Vec<Parameter> = Vec::new();
    if lexer.takes(b'(') {
        while !lexer.takes(b')') {
            let word = lexer.word()?;
            if word != ".param" {
                return Err(lexer.wrong(format!("expected a parameter, found '{word}'")));
            }
            let variable = variable(lexer)?;
            if variable.count != Some(1) {
                return Err(lexer.wrong("parameters by value that are arrays are not executed"));
            }
            let (bytes, name) = (variable.bytes, variable.name.to_owned());
            let offset = parameters_end(&parameters).next_multiple_of(bytes);
            parameters.push(Parameter { name, bytes, offset });
            lexer.takes(b',');
        }
    }
    let mut max_threads = None;
    // 11.4: how ptxas may use registers changes no result.
    loop {
        match lexer.next() {
            Some(Token::Mark(b'{')) => break,
            Some(Token::Word(".maxntid")) => {
                let mut product = lexer.number()?;
                while lexer.takes(b',') {
                    product = product.saturating_mul(lexer.number()?);
                }
                max_threads = u32::try_from(product).ok();
            }
            Some(Token::Word(".minnctapersm" | ".maxnreg" | ".noreturn")) => {
                if matches!(lexer.peek(), Some(Token::Word(word)) if integer(word).is_some()) {
                    lexer.next();
                }
            }
            found => return Err(lexer.wrong(format!("expected a body, found {found:?}"))),
        }
    }
    let (start, line) = (lexer.at, lexer.line);
    let end = lexer.block()?;
    Ok(Entry { name, parameters, max_threads, body: start..end, line })
}

/// 6: what an instruction works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operand<'a> {
    /// A register or another name.
    Name(&'a str),
    Number(u64),
    /// `[name+offset]`.
    Memory(&'a str, i64),
    /// `{a, b}`, or `(a, b)` of a call.
    List(Vec<Operand<'a>>),
    /// `a|p`.
    Pair(&'a str, &'a str),
}

#[derive(Debug)]
pub(super) struct Statement<'a> {
    /// The guard's predicate, and whether it is negated.
    pub(super) guard: Option<(&'a str, bool)>,
    pub(super) opcode: &'a str,
    pub(super) operands: Vec<Operand<'a>>,
}

/// A part of a body.
#[derive(Debug)]
pub(super) enum Item<'a> {
    Open,
    Close,
    Label(&'a str),
    /// Registers of this many bytes, 0 for predicates: one of this name, or so many with numbers.
    Registers {
        bytes: u32,
        name: &'a str,
        count: Option<u32>,
    },
    /// Memory of a thread.
    Local {
        name: &'a str,
        bytes: u64,
        align: u32,
    },
    /// A call's argument or result.
    Argument {
        name: &'a str,
        bytes: u32,
    },
    Instruction(Statement<'a>),
}

/// The next part of a body and its line; `None` at the end.
pub(super) fn item<'a>(lexer: &mut Lexer<'a>) -> Result<Option<(u32, Item<'a>)>, Wrong> {
    let Some(token) = lexer.next() else { return Ok(None) };
    let line = lexer.line;
    let item = match token {
        Token::Mark(b'{') => Item::Open,
        Token::Mark(b'}') => Item::Close,
        Token::Mark(b'@') => {
            let negated = lexer.takes(b'!');
            let guard = Some((lexer.word()?, negated));
            let opcode = lexer.word()?;
            Item::Instruction(Statement { guard, opcode, operands: operands(lexer)? })
        }
        Token::Word(".reg") => {
            let word = lexer.word()?;
            let Some(bytes) = type_bytes(word).filter(|b| *b != 1) else {
                return Err(lexer.wrong(format!("registers of type '{word}' are not executed")));
            };
            let name = lexer.word()?;
            let mut count = None;
            if lexer.takes(b'<') {
                let number = lexer.number()?;
                count = Some(u32::try_from(number).map_err(|_| lexer.wrong("too many registers"))?);
                lexer.expect(b'>')?;
            }
            lexer.expect(b';')?;
            Item::Registers { bytes, name, count }
        }
        Token::Word(".local") => {
            let Variable { name, bytes, align, count } = variable(lexer)?;
            lexer.expect(b';')?;
            Item::Local { name, bytes: u64::from(bytes).saturating_mul(count.unwrap_or(0)), align }
        }
        Token::Word(".param") => {
            let Variable { name, bytes, .. } = variable(lexer)?;
            lexer.expect(b';')?;
            Item::Argument { name, bytes }
        }
        Token::Word(".pragma") => {
            // 11.3: a hint for ptxas.
            lexer.declaration()?;
            return self::item(lexer);
        }
        Token::Word(word) if word.starts_with('.') => {
            return Err(lexer.wrong(format!("the directive '{word}' is not executed")));
        }
        Token::Word(word) if lexer.takes(b':') => Item::Label(word),
        Token::Word(opcode) => {
            Item::Instruction(Statement { guard: None, opcode, operands: operands(lexer)? })
        }
        token => return Err(lexer.wrong(format!("expected an instruction, found {token:?}"))),
    };
    Ok(Some((line, item)))
}

fn operands<'a>(lexer: &mut Lexer<'a>) -> Result<Vec<Operand<'a>>, Wrong> {
    let mut all = Vec::new();
    while !lexer.takes(b';') {
        all.push(operand(lexer)?);
        if lexer.peek() != Some(Token::Mark(b';')) {
            lexer.expect(b',')?;
        }
    }
    Ok(all)
}

fn operand<'a>(lexer: &mut Lexer<'a>) -> Result<Operand<'a>, Wrong> {
    match lexer.peek() {
        Some(Token::Mark(open @ (b'{' | b'('))) => {
            lexer.next();
            let close = if open == b'{' { b'}' } else { b')' };
            let mut list = Vec::new();
            while !lexer.takes(close) {
                list.push(operand(lexer)?);
                lexer.takes(b',');
            }
            Ok(Operand::List(list))
        }
        Some(Token::Mark(b'[')) => {
            lexer.next();
            let base = lexer.word()?;
            let mut offset = 0;
            if lexer.takes(b'+') || lexer.peek() == Some(Token::Mark(b'-')) {
                offset = lexer.number()? as i64;
            }
            lexer.expect(b']')?;
            Ok(Operand::Memory(base, offset))
        }
        Some(Token::Mark(b'-')) => Ok(Operand::Number(lexer.number()?)),
        _ => {
            let word = lexer.word()?;
            if lexer.takes(b'|') {
                return Ok(Operand::Pair(word, lexer.word()?));
            }
            Ok(integer(word).map_or(Operand::Name(word), Operand::Number))
        }
    }
}
