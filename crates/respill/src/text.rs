//! The text of an assembly file, cut into statements and otherwise left alone.
//!
//! This module does not interpret instructions: the assembler's bytes give their meaning. It only separates labels,
//! directives, instructions and comments, so that an edit replaces one statement and keeps every other byte.
#![forbid(unsafe_code)]

use core::fmt;
use core::ops::Range;
use std::collections::{BTreeMap, HashMap};

use crate::repeat::{self, Odd};

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `name:`.
    Label,
    /// `.name ...`, or `name = value`.
    Directive,
    /// Anything else: one instruction with its prefixes.
    Instruction,
}

/// A label, a directive or an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The line it begins on, counted from 1.
    pub line: usize,
    /// The place of its text, without spaces and comments around it.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// Why a text cannot be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextError {
    /// A string or a comment that does not end.
    Unterminated {
        /// The line where it begins.
        line: usize,
        /// `string` or `comment`.
        what: &'static str,
    },
    /// A byte of value zero, where the assembler may stop reading.
    Zero {
        /// Its line.
        line: usize,
    },
    /// It begins with a UTF-8 byte order mark, which the assembler takes for a part of the first statement.
    ByteOrderMark,
    /// A directive of the C preprocessor: the text is not yet assembly.
    Preprocessor {
        /// Its line.
        line: usize,
    },
    /// Repetitions that write out more than a million lines or 64 MB, or that lie more than 32 deep one inside another.
    Repeated {
        /// The line of one that does.
        line: usize,
    },
    /// A directive that repeats or makes up statements, so that one line of text is not one instruction.
    Macro {
        /// Its line.
        line: usize,
        /// Its name.
        name: String,
    },
}

impl TextError {
    /// The line it is about.
    #[must_use]
    pub const fn line(&self) -> usize {
        match self {
            TextError::ByteOrderMark => 1,
            TextError::Unterminated { line, .. }
            | TextError::Zero { line }
            | TextError::Preprocessor { line }
            | TextError::Repeated { line }
            | TextError::Macro { line, .. } => *line,
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextError::Unterminated { what, .. } => write!(f, "a {what} that does not end"),
            TextError::Zero { .. } => f.write_str("a NUL byte"),
            TextError::ByteOrderMark => {
                f.write_str("a UTF-8 byte order mark, which assemblers do not know; save the file without it")
            }
            TextError::Preprocessor { .. } => {
                f.write_str("the C preprocessor has not been run over this text; `cc -E` does")
            }
            TextError::Repeated { .. } => {
                let (lines, bytes, deep) = (repeat::MOST, repeat::BYTES, repeat::DEEP);
                write!(
                    f,
                    "its repetitions write out more than {lines} lines or {bytes} bytes, or lie more than {deep} deep"
                )
            }
            TextError::Macro { name, .. } => {
                write!(
                    f,
                    "`{name}` makes up statements; only text in which each instruction is written out is supported"
                )
            }
        }
    }
}

impl core::error::Error for TextError {}

/// An assembly file's text and its statements.
#[derive(Clone, Debug)]
pub struct Text {
    text: String,
    statements: Vec<Statement>,
    /// The text as it was given, where repetitions were written out.
    given: Option<String>,
    /// The first condition that is not made of constants: the statements behind it are kept whatever it says.
    condition: Option<Statement>,
}

/// Directives after which a line of text is no longer one instruction.
const MACROS: [&str; 9] =
    [".macro", ".rept", ".rep", ".irp", ".irpc", ".altmacro", ".include", ".incbin", ".endm"];

impl Text {
    /// Cuts `text` into statements. Repetitions are written out first.
    ///
    /// # Errors
    /// The fault, with its line.
    pub fn new(text: impl Into<String>) -> Result<Text, TextError> {
        let text = text.into();
        if let Some(at) = text.find('\0') {
            return Err(TextError::Zero { line: text[..at].matches('\n').count() + 1 });
        }
        if text.starts_with('\u{feff}') {
            return Err(TextError::ByteOrderMark);
        }
        let fault = match Cutter::new(&text).run() {
            Ok((statements, condition)) => return Ok(Text { text, statements, given: None, condition }),
            Err(fault) => fault,
        };
        let repeats = matches!(&fault, TextError::Macro { name, .. } if matches!(name.as_str(), ".rept" | ".rep" | ".irp"));
        if !repeats {
            return Err(fault);
        }
        let (written, lines) = match repeat::written_out(&text) {
            Ok(written) => written,
            Err(Odd::Long(line)) => return Err(TextError::Repeated { line }),
            Err(Odd::Unknown) => return Err(fault),
        };
        let (mut statements, mut condition) = Cutter::new(&written).run().map_err(|_| fault)?;
        for statement in statements.iter_mut().chain(&mut condition) {
            statement.line = lines.get(statement.line - 1).copied().unwrap_or(statement.line);
        }
        Ok(Text { text: written, statements, given: Some(text), condition })
    }

    /// The line and the text of the first condition that is not made of constants.
    pub(crate) fn condition(&self) -> Option<(usize, &str)> {
        self.condition.as_ref().map(|said| (said.line, &self.text[said.span.clone()]))
    }

    /// The text as it was given, if it is not the one that was cut.
    #[must_use]
    pub(crate) fn given(&self) -> Option<&str> {
        self.given.as_deref()
    }

    /// The statements in their order.
    #[must_use]
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A statement's text.
    #[must_use]
    pub fn of(&self, statement: usize) -> &str {
        &self.text[self.statements[statement].span.clone()]
    }

    /// A directive's name in small letters, as the assembler reads it, and what follows.
    pub(crate) fn directive(&self, statement: usize) -> Option<(String, &str)> {
        let said = Some(self.of(statement)).filter(|_| self.statements[statement].kind == Kind::Directive)?;
        let end = said.find(|c: char| !is_name(c.encode_utf8(&mut [0; 4]))).unwrap_or(said.len());
        Some((said[..end].to_ascii_lowercase(), said[end..].trim()))
    }

    /// The text with some statements replaced, or text added before or behind them; every other byte is kept.
    #[must_use]
    pub fn edited(&self, edits: &Edits) -> String {
        self.edited_parts(edits).0
    }

    /// The same, and the places of each edited statement's parts.
    #[must_use]
    pub fn edited_parts(&self, edits: &Edits) -> (String, BTreeMap<usize, Parts>) {
        let mut out = String::with_capacity(self.text.len() + 64 * edits.list.len());
        let mut parts = BTreeMap::new();
        let mut at = 0;
        let mut list: Vec<&Edit> = edits.list.iter().collect();
        list.sort_by_key(|edit| edit.statement);
        for group in list.chunk_by(|a, b| a.statement == b.statement) {
            let statement = group[0].statement;
            let span = &self.statements[statement].span;
            out.push_str(&self.text[at..span.start]);
            let said = |place: Place| group.iter().filter(move |edit| edit.place == place);
            let start = out.len();
            said(Place::Before).for_each(|edit| out.push_str(&edit.text));
            let instead = out.len();
            let mut replaced = false;
            for edit in said(Place::Instead) {
                out.push_str(&edit.text);
                replaced = true;
            }
            if !replaced {
                out.push_str(&self.text[span.clone()]);
            }
            let behind = out.len();
            said(Place::Behind).for_each(|edit| out.push_str(&edit.text));
            parts.insert(
                statement,
                Parts {
                    before: start..instead,
                    itself: instead..behind,
                    replaced,
                    behind: behind..out.len(),
                },
            );
            at = span.end;
        }
        out.push_str(&self.text[at..]);
        (out, parts)
    }
}

/// The place of an edited statement in the new text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The text added before it.
    pub before: Range<usize>,
    /// Its replacement, or itself.
    pub itself: Range<usize>,
    /// Whether it was replaced.
    pub replaced: bool,
    /// The text added behind it.
    pub behind: Range<usize>,
}

/// The position of an edit's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    Instead,
    Behind,
}

#[derive(Clone, Debug)]
struct Edit {
    statement: usize,
    place: Place,
    text: String,
}

/// Changes to a text, each at a statement.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    list: Vec<Edit>,
}

impl Edits {
    /// Puts `text` before a statement, behind what was put there earlier.
    pub fn before(&mut self, statement: usize, text: impl Into<String>) {
        self.list.push(Edit { statement, place: Place::Before, text: text.into() });
    }

    /// Puts `text` in a statement's place.
    pub fn instead(&mut self, statement: usize, text: impl Into<String>) {
        self.list.push(Edit { statement, place: Place::Instead, text: text.into() });
    }

    /// Puts `text` behind a statement.
    pub fn behind(&mut self, statement: usize, text: impl Into<String>) {
        self.list.push(Edit { statement, place: Place::Behind, text: text.into() });
    }

    /// Whether there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

struct Cutter<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    out: Vec<Statement>,
    /// Of each open `.if`: whether its statements are assembled, and whether that is known and it had no `.else`.
    open: Vec<(bool, bool)>,
    condition: Option<Statement>,
    /// Names that are numbers at this place of the text.
    constants: HashMap<&'a str, i64>,
}

impl<'a> Cutter<'a> {
    fn new(text: &'a str) -> Cutter<'a> {
        let (open, out, constants) = (Vec::new(), Vec::new(), HashMap::new());
        Cutter { text, at: 0, line: 1, out, open, condition: None, constants }
    }

    /// The statements that are assembled, and the first condition that is not made of constants.
    fn run(mut self) -> Result<(Vec<Statement>, Option<Statement>), TextError> {
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            match bytes[self.at] {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | b';' => self.at += 1,
                b'#' => self.comment_to_line_end()?,
                b'/' if self.text[self.at..].starts_with("/*") => self.block_comment()?,
                b'/' => self.comment_to_line_end()?,
                _ => self.statement()?,
            }
        }
        Ok((self.out, self.condition))
    }

    /// Puts down a statement, unless a condition leaves it out.
    fn push(&mut self, statement: Statement) {
        if self.open.iter().all(|(assembled, _)| *assembled) {
            self.out.push(statement);
        }
    }

    /// Follows `.if`, `.else` and `.endif` with conditions made of numbers, each on a line of its own.
    fn conditional(&mut self, name: &str, rest: &str, statement: &Statement) {
        let Range { start, end } = statement.span;
        let before = self.text[..start].rsplit('\n').next().unwrap_or("");
        let behind = self.text[end..].split('\n').next().unwrap_or("").trim_start();
        let alone = before.trim().is_empty() && (behind.is_empty() || behind.starts_with('#'));
        let live = self.open.iter().all(|(assembled, _)| *assembled);
        let known = match (name, self.open.last_mut()) {
            (".if", _) => {
                let said = if live { self.holds(rest) } else { Some(false) };
                self.open.push((said.unwrap_or(true), said.is_some()));
                said.is_some()
            }
            // Unknown ones are followed to their ends.
            (".endif", Some(_)) => {
                self.open.pop();
                rest.is_empty()
            }
            (".else", Some((assembled, first @ true))) => {
                (*assembled, *first) = (!*assembled, false);
                rest.is_empty()
            }
            _ if name.starts_with(".if") => {
                self.open.push((true, false));
                false
            }
            _ => false,
        };
        if !(known && alone) {
            self.condition.get_or_insert_with(|| statement.clone());
        }
    }

    /// Whether a condition holds, if it is a number or compares two.
    fn holds(&self, said: &str) -> Option<bool> {
        let value = |said: &str| integer(said.trim()).or_else(|| self.constants.get(said.trim()).copied());
        let compared = ["==", "!=", "<=", ">=", "<", ">"].into_iter().find_map(|by| {
            let (one, two) = said.split_once(by)?;
            Some((by, value(one), value(two)))
        });
        match compared {
            None => Some(value(said)? != 0),
            Some((by, one, two)) => {
                let (one, two) = (one?, two?);
                Some(match by {
                    "==" => one == two,
                    "!=" => one != two,
                    "<=" => one <= two,
                    ">=" => one >= two,
                    "<" => one < two,
                    _ => one > two,
                })
            }
        }
    }

    /// Notes what a name is from here on, if that is a number.
    fn assign(&mut self, said: &'a str, name: &str, rest: &'a str) {
        if self.open.iter().any(|(assembled, _)| !assembled) {
            return;
        }
        let assigned = match name {
            ".set" | ".equ" | ".equiv" | ".eqv" => rest.split_once(','),
            _ if name.starts_with('.') && !assigns(said) => None,
            _ => said.split_once('='),
        };
        let Some((name, value)) = assigned.map(|(name, value)| (name.trim(), value.trim())) else { return };
        match integer(value) {
            Some(value) => self.constants.insert(name, value),
            None => self.constants.remove(name),
        };
    }

    /// A `#` in front is the preprocessor's where one of its words follows.
    fn comment_to_line_end(&mut self) -> Result<(), TextError> {
        let rest = &self.text[self.at..];
        let line = rest.lines().next().unwrap_or("");
        let words =
            ["include", "define", "if", "ifdef", "ifndef", "else", "elif", "endif", "undef", "pragma"];
        let first = self.text[..self.at].rsplit('\n').next().is_none_or(|before| before.trim().is_empty());
        let word = line.strip_prefix('#').map_or("", |said| said.trim_start());
        let name = word.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
        // `# if` in prose is a comment; the preprocessor's own lines have no space, or sit in the first column.
        if first && words.contains(&name) && line.starts_with(&format!("#{name}")) {
            return Err(TextError::Preprocessor { line: self.line });
        }
        self.at += line.len();
        Ok(())
    }

    fn block_comment(&mut self) -> Result<(), TextError> {
        let rest = &self.text[self.at..];
        let Some(end) = rest.find("*/") else {
            return Err(TextError::Unterminated { line: self.line, what: "comment" });
        };
        self.line += rest[..end].matches('\n').count();
        self.at += end + 2;
        Ok(())
    }

    /// One statement, up to a separator, a comment or the line's end.
    fn statement(&mut self) -> Result<(), TextError> {
        let bytes = self.text.as_bytes();
        let (start, line) = (self.at, self.line);
        let mut end = start;
        while self.at < bytes.len() {
            match bytes[self.at] {
                b'\n' | b';' | b'#' => break,
                b'/' if matches!(bytes.get(self.at + 1), Some(b'/' | b'*')) => break,
                b'"' => {
                    self.string()?;
                    end = self.at;
                    continue;
                }
                // A character, perhaps behind a backslash, and perhaps with a quote behind it.
                b'\'' if bytes.get(self.at + 1).is_some_and(|&byte| byte.is_ascii() && byte != b'\n') => {
                    self.at += if bytes[self.at + 1] == b'\\' { 2 } else { 1 };
                    if bytes.get(self.at).is_some_and(|&byte| byte.is_ascii() && byte != b'\n') {
                        self.at += 1;
                    }
                    self.at += usize::from(bytes.get(self.at) == Some(&b'\''));
                    end = self.at;
                    continue;
                }
                b':' if is_name(&self.text[start..end]) => {
                    self.at += 1;
                    self.push(Statement { line, span: start..self.at, kind: Kind::Label });
                    return Ok(());
                }
                _ => (),
            }
            self.at += 1;
            if !bytes[self.at - 1].is_ascii_whitespace() {
                end = self.at;
            }
        }
        let said = &self.text[start..end];
        let kind = if said.starts_with('.') || assigns(said) { Kind::Directive } else { Kind::Instruction };
        if kind == Kind::Directive {
            // Its operand may follow without a space: `.include"file"`.
            let end = said.find(|c: char| !is_name(c.encode_utf8(&mut [0; 4]))).unwrap_or(said.len());
            let name = said[..end].to_ascii_lowercase();
            if MACROS.contains(&name.as_str()) {
                return Err(TextError::Macro { line, name });
            }
            let rest = said[end..].trim();
            if name.starts_with(".if")
                || name.starts_with(".else")
                || matches!(name.as_str(), ".endif" | ".endc")
            {
                let statement = Statement { line, span: start..start + said.len(), kind };
                self.conditional(&name, rest, &statement);
                // It is a part of both texts, and names no place.
                self.out.push(statement);
                return Ok(());
            }
            self.assign(said, &name, rest);
        } else if said.starts_with('"') {
            // The name of a directive in quotes.
            return Err(TextError::Macro { line, name: said.to_owned() });
        }
        self.push(Statement { line, span: start..end, kind });
        Ok(())
    }

    fn string(&mut self) -> Result<(), TextError> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(&byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => return Ok(()),
                b'\n' => break,
                _ => (),
            }
        }
        Err(TextError::Unterminated { line: self.line, what: "string" })
    }
}

/// A number that every assembler reads alike.
fn integer(said: &str) -> Option<i64> {
    let (digits, base) = said.strip_prefix("0x").map_or((said, 10), |digits| (digits, 16));
    let plain = base == 16 || digits == "0" || !digits.starts_with('0');
    let digit = |byte: u8| char::from(byte).is_digit(base);
    (plain && !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(digit))
        .then(|| i64::from_str_radix(digits, base).ok())
        .flatten()
}

/// `name = value`, which no instruction looks like.
fn assigns(statement: &str) -> bool {
    statement.split_once('=').is_some_and(|(name, _)| is_name(name.trim_end()))
}

fn is_name(text: &str) -> bool {
    (text.len() > 2 && text.starts_with('"') && text.ends_with('"'))
        || (!text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b'@') || b >= 0x80))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(usize, Kind, String)> {
        let text = Text::new(text).expect("a text");
        (0..text.statements().len())
            .map(|i| (text.statements()[i].line, text.statements()[i].kind, text.of(i).to_owned()))
            .collect()
    }

    #[test]
    fn statements_comments_and_strings() {
        use Kind::{Directive, Instruction, Label};
        let got = cut(
            "a: b: movq %rax, 8(%rsp) # 8-byte Spill\n\t.ascii \"x;#:/*\"; nop // c\n/* two\nlines */ ret\nv = 3\n1:\tlock addl $1, (%rdi)",
        );
        let want = [
            (1, Label, "a:"),
            (1, Label, "b:"),
            (1, Instruction, "movq %rax, 8(%rsp)"),
            (2, Directive, ".ascii \"x;#:/*\""),
            (2, Instruction, "nop"),
            (4, Instruction, "ret"),
            (5, Directive, "v = 3"),
            (6, Label, "1:"),
            (6, Instruction, "lock addl $1, (%rdi)"),
        ];
        assert_eq!(got, want.map(|(line, kind, text)| (line, kind, text.to_owned())));
    }

    #[test]
    fn characters_begin_no_string_and_no_comment() {
        let got = cut(
            "cmpb $'\"', %al; movb $'#,%cl # '\n movb $'\\'', %dl; movb $';', %bl\n movb $'é, %bl; movb $'\n nop",
        );
        let want = [
            "cmpb $'\"', %al",
            "movb $'#,%cl",
            "movb $'\\'', %dl",
            "movb $';', %bl",
            "movb $'é, %bl",
            "movb $'",
            "nop",
        ];
        assert_eq!(got.iter().map(|(.., said)| said.as_str()).collect::<Vec<_>>(), want);
    }

    #[test]
    fn an_edit_keeps_every_other_byte() {
        let text = Text::new("f:\r\n  movq %rax, (%rsp)   # kept\n\tret\n").expect("a text");
        let mut edits = Edits::default();
        edits.instead(1, "movq %rax, %mm0");
        edits.before(2, "emms\n\t");
        assert_eq!(text.edited(&edits), "f:\r\n  movq %rax, %mm0   # kept\n\temms\n\tret\n");
        assert_eq!(text.edited(&Edits::default()), text.text());
        let (said, parts) = text.edited_parts(&edits);
        assert_eq!(parts.keys().copied().collect::<Vec<_>>(), [1, 2]);
        assert_eq!((&said[parts[&1].itself.clone()], parts[&1].replaced), ("movq %rax, %mm0", true));
        assert_eq!((&said[parts[&2].before.clone()], parts[&2].replaced), ("emms\n\t", false));
        assert_eq!(&said[parts[&2].itself.clone()], "ret");
    }

    #[test]
    fn what_a_constant_condition_leaves_out_is_no_statement() {
        let said =
            |text: &str| cut(text).into_iter().map(|(.., said)| said).filter(|said| !said.starts_with('.'));
        for (condition, first) in [
            ("1", true),
            ("0", false),
            ("0x10", true),
            ("2 > 1", true),
            ("2<=1", false),
            ("n == 4", true),
            ("n != 4", false),
            ("m", false),
        ] {
            let text = format!(
                ".set n, 4\nm = 0\n.if {condition}\n nop\n.if 1 # in\n in\n.endif\n.else\n ret\n.endif\n end\n"
            );
            let kept: Vec<String> = said(&text).filter(|said| said != "m = 0").collect();
            let want: &[&str] = if first { &["nop", "in", "end"] } else { &["ret", "end"] };
            assert_eq!(kept, want, "{condition}");
            assert_eq!(Text::new(text).expect("a text").condition(), None, "{condition}");
        }
        for text in [
            ".if . - f > 16\n nop\n.else\n ret\n.endif\n",
            ".ifdef f\n nop\n.endif\n ret\n",
            ".set n, f - g\n.if n\n nop\n.endif\n ret\n",
            ".set n, 1\n.set n, . - f\n.if n\n nop\n.endif\n ret\n",
            ".if 0; .else; nop; .endif\n ret\n",
            "f: .if 0\n nop\n.endif\n ret\n",
            ".if 0\n nop\n.elseif 1\n ret\n.endif\n",
            ".if 010\n nop\n.endif\n ret\n",
            ".if 0\n nop\n.else\n.else\n ret\n.endif\n",
            ".if 1\n nop\n ret\n.endc\n",
        ] {
            let text = Text::new(text).expect("a text");
            let line = text.condition().expect("not constant").0;
            assert!(line >= 1, "{}", text.text());
        }
        let unknown = Text::new("nop\n.if . - f > 16\n nop\n.else\n ret\n.endif\n").expect("a text");
        assert_eq!(unknown.condition(), Some((2, ".if . - f > 16")));
        assert_eq!(unknown.statements().len(), 6, "nothing is left out");
    }

    #[test]
    fn what_cannot_be_cut_is_named_by_its_line() {
        for (text, line) in [
            ("nop\n.ascii \"x\n", 2),
            ("/* a\n b", 1),
            ("\n\n#include <x>\n", 3),
            ("nop; .macro m\n", 1),
            (".rept 3", 1),
            (".rept(3)", 1),
            ("nop\n.INCLUDE\"x\"", 2),
            ("nop\n\".quad\" f", 2),
        ] {
            assert_eq!(Text::new(text).expect_err("refused").line(), line, "{text:?}");
        }
        assert!(Text::new("# if you see this\n #APP\n").is_ok());
    }
}
