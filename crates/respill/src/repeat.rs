//! Repeated statements, written out: `.rept` and `.irp` of assemblers.
//!
//! What the assembler makes of the written-out text is compared with what it makes of the given one, so nothing here is relied upon.
#![forbid(unsafe_code)]

/// The most lines that repetitions go through, each as often as it is repeated.
pub(crate) const MOST: usize = 1 << 20;

/// The most bytes of these lines.
pub(crate) const BYTES: usize = 1 << 26;

/// The most repetitions one inside another.
pub(crate) const DEEP: usize = 32;

/// Why repetitions are not written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Odd {
    /// One is not understood.
    Unknown,
    /// The one in this line goes beyond [`MOST`], [`BYTES`] or [`DEEP`].
    Long(usize),
}

/// A text with every repetition written out, and for each of its lines the number of the given one.
///
/// # Errors
/// [`Odd`].
pub(crate) fn written_out(text: &str) -> Result<(String, Vec<usize>), Odd> {
    let lines: Vec<(usize, String)> =
        text.lines().enumerate().map(|(n, line)| (n + 1, line.to_owned())).collect();
    let mut out = Writer { text: String::new(), numbers: Vec::new(), lines: 0, bytes: 0 };
    out.block(&lines, 0)?;
    Ok((out.text, out.numbers))
}

/// The directive of a line that has nothing else, in lower case, and its operands.
fn directive(line: &str) -> Option<(String, &str)> {
    let line = line.split(['#', ';']).next().unwrap_or("").trim();
    let line = line.split("//").next().unwrap_or("").trim();
    let end = line.find(|c: char| c.is_whitespace()).unwrap_or(line.len());
    line.starts_with('.').then(|| (line[..end].to_ascii_lowercase(), line[end..].trim()))
}

fn number(said: &str) -> Option<usize> {
    match said.strip_prefix("0x") {
        Some(digits) => usize::from_str_radix(digits, 16).ok(),
        None => said.parse().ok(),
    }
}

struct Writer {
    text: String,
    numbers: Vec<usize>,
    /// Repeated so far.
    lines: usize,
    bytes: usize,
}

impl Writer {
    /// Counts what the repetition in a line goes through next.
    fn spend(&mut self, at: usize, lines: usize, bytes: usize) -> Result<(), Odd> {
        self.lines = self.lines.saturating_add(lines);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.lines > MOST || self.bytes > BYTES { Err(Odd::Long(at)) } else { Ok(()) }
    }

    fn block(&mut self, lines: &[(usize, String)], depth: usize) -> Result<(), Odd> {
        let begins = |name: &str| matches!(name, ".rept" | ".rep" | ".irp");
        let mut at = 0;
        while let Some((number_, line)) = lines.get(at) {
            at += 1;
            let Some((name, operands)) = directive(line).filter(|(name, _)| begins(name)) else {
                self.text.push_str(line);
                self.text.push('\n');
                self.numbers.push(*number_);
                continue;
            };
            let (begin, mut open) = (at, 1);
            while open > 0 {
                match directive(&lines.get(at).ok_or(Odd::Unknown)?.1) {
                    Some((name, _)) if begins(&name) || name == ".irpc" => open += 1,
                    Some((name, _)) if name == ".endr" => open -= 1,
                    _ => (),
                }
                at += 1;
            }
            if depth == DEEP {
                return Err(Odd::Long(*number_));
            }
            let body = &lines[begin..at - 1];
            let bytes = body.iter().map(|(_, line)| line.len() + 1).sum::<usize>();
            if name == ".irp" {
                let (symbol, values) = operands.split_once([',', ' ']).ok_or(Odd::Unknown)?;
                let symbol = format!("\\{}", symbol.trim());
                let places: usize = body.iter().map(|(_, line)| line.matches(&symbol).count()).sum();
                for value in values.split(',').map(str::trim) {
                    let more = bytes.saturating_add(places.saturating_mul(value.len()));
                    self.spend(*number_, body.len().max(1), more)?;
                    let copy: Vec<(usize, String)> =
                        body.iter().map(|(number, line)| (*number, line.replace(&symbol, value))).collect();
                    self.block(&copy, depth + 1)?;
                }
            } else {
                for _ in 0..number(operands).ok_or(Odd::Unknown)? {
                    self.spend(*number_, body.len().max(1), bytes)?;
                    self.block(body, depth + 1)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_written_out_with_their_lines() {
        let text = "f:\n .rept 2 # twice\n nop\n .irp r,rax, rcx\n push %\\r\n .endr\n .endr\n ret\n";
        let (out, lines) = written_out(text).expect("understood");
        assert_eq!(out, "f:\n nop\n push %rax\n push %rcx\n nop\n push %rax\n push %rcx\n ret\n");
        assert_eq!(lines, [1, 3, 5, 5, 3, 5, 5, 8]);
        for odd in
            [".rept n\n nop\n.endr\n", ".rept 2\n nop\n", ".irp r\n nop\n.endr\n", ".rept -1\n nop\n.endr\n"]
        {
            assert_eq!(written_out(odd), Err(Odd::Unknown), "{odd}");
        }
        assert_eq!(written_out(".rept 0\n nop\n.endr\n ret\n"), Ok((" ret\n".to_owned(), vec![4])));
    }

    #[test]
    fn what_would_be_written_out_is_bounded() {
        let nested = |times: usize, depth: usize| {
            let (begin, end) = (format!(".rept {times}\n"), ".endr\n");
            format!("nop\n{}nop\n{}", begin.repeat(depth), end.repeat(depth))
        };
        let most = usize::MAX;
        let values = "rax,".repeat(1 << 15);
        for (text, line) in [
            // Their product with the lines inside overflows, or nothing is inside.
            (format!(".rept {most}\n nop\n nop\n.endr\n"), 1),
            (format!("nop\n.rept {most}\n.endr\n"), 2),
            (".rept 99999999\n nop\n.endr\n".to_owned(), 1),
            (nested(1 << 10, 3), 4),
            (nested(1, DEEP + 1), DEEP + 2),
            // Values times lines, and the bytes of values times their places.
            (format!(".irp r,{values}\n{}.endr\n", "nop\n".repeat(64)), 1),
            (format!(".irp r,{}\n# {}\n.endr\n", "a".repeat(1 << 14), "\\r".repeat(1 << 14)), 1),
            (format!(".rept 1000\n# {}\n.endr\n", "a".repeat(1 << 17)), 1),
        ] {
            assert_eq!(written_out(&text), Err(Odd::Long(line)), "{}", &text[..text.len().min(80)]);
        }
        assert!(written_out(&nested(1, DEEP)).is_ok());
    }
}
