//! Repeated statements, written out: `.rept` and `.irp` of assemblers.
//!
//! What the assembler makes of the written-out text is compared with what it makes of the given one, so nothing here is relied upon.
#![forbid(unsafe_code)]

/// The most lines of a written-out text.
const MOST: usize = 1 << 20;

/// A text with every repetition written out, and for each of its lines the number of the given one. `None` if a repetition is not
/// understood.
pub(crate) fn written_out(text: &str) -> Option<(String, Vec<usize>)> {
    let lines: Vec<(usize, String)> =
        text.lines().enumerate().map(|(n, line)| (n + 1, line.to_owned())).collect();
    let lines = block(&lines)?;
    let (mut out, mut numbers) = (String::new(), Vec::new());
    for (number, line) in lines {
        out.push_str(&line);
        out.push('\n');
        numbers.push(number);
    }
    Some((out, numbers))
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

fn block(lines: &[(usize, String)]) -> Option<Vec<(usize, String)>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some((number_, line)) = lines.get(at) {
        at += 1;
        let Some((name, operands)) = directive(line) else {
            out.push((*number_, line.clone()));
            continue;
        };
        let begins = |name: &str| matches!(name, ".rept" | ".rep" | ".irp");
        if !begins(&name) {
            out.push((*number_, line.clone()));
            continue;
        }
        let (begin, mut depth) = (at, 1);
        while depth > 0 {
            match directive(&lines.get(at)?.1) {
                Some((name, _)) if begins(&name) || name == ".irpc" => depth += 1,
                Some((name, _)) if name == ".endr" => depth -= 1,
                _ => (),
            }
            at += 1;
        }
        let body = &lines[begin..at - 1];
        let copies: Vec<Vec<(usize, String)>> = if name == ".irp" {
            let (symbol, values) = operands.split_once([',', ' '])?;
            let with = |value: &str| {
                let replaced = |line: &str| line.replace(&format!("\\{}", symbol.trim()), value.trim());
                body.iter().map(|(number, line)| (*number, replaced(line))).collect()
            };
            values.split(',').map(with).collect()
        } else {
            vec![body.to_vec(); number(operands).filter(|&times| times * body.len() <= MOST)?]
        };
        for copy in copies {
            out.extend(block(&copy)?);
        }
        if out.len() > MOST {
            return None;
        }
    }
    Some(out)
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
        for odd in [".rept n\n nop\n.endr\n", ".rept 2\n nop\n", ".rept 99999999\n nop\n.endr\n"] {
            assert_eq!(written_out(odd), None, "{odd}");
        }
    }
}
