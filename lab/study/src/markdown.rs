//! Tables of a study's page.
#![forbid(unsafe_code)]

/// A table in Markdown that is a table on a terminal too.
pub fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let width = |i: usize| {
        rows.iter()
            .chain([&header.to_vec()])
            .filter_map(|r| r.get(i))
            .map(|c| c.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(i, &w)| {
                let cell = cells.get(i).map_or("", String::as_str);
                let gap = " ".repeat(w - cell.chars().count());
                if i == 0 { format!("{cell}{gap}") } else { format!("{gap}{cell}") }
            })
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(i, &w)| if i == 0 { "-".repeat(w + 2) } else { format!("{}:", "-".repeat(w + 1)) })
        .collect();
    let body: String = rows.iter().map(|r| line(r)).collect();
    format!("{}|{}|\n{body}", line(header), rule.join("|"))
}

/// Cells from literals.
pub fn strings(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|c| (*c).to_owned()).collect()
}

/// A cell with nothing in it.
pub const NONE: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let t = table(&strings(&["a", "bb"]), &[strings(&["×1.00", "2"]), strings(&["x", "333"])]);
        let lines: Vec<usize> = t.lines().map(|l| l.chars().count()).collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|&l| l == lines[0]), "{t}");
        assert!(t.contains("| ×1.00 |   2 |"), "{t}");
    }
}
