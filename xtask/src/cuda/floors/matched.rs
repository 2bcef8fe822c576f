//! Which loop of the text a loop of the machine code comes from, by their accesses to memories.
#![forbid(unsafe_code)]

use super::Counted;
use super::declared::ACCESSES;

/// What the accesses of a loop ask for, each executed once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Trip {
    /// Wavefronts and sectors.
    Asked([f64; 2]),
    /// Some access was never executed where they were counted, or the loops do not match.
    Unknown,
}

impl Trip {
    pub(super) fn asked(self) -> Option<[f64; 2]> {
        match self {
            Trip::Asked(asked) => Some(asked),
            Trip::Unknown => None,
        }
    }

    /// Clocks beyond one for each access.
    pub(super) fn longer(self, counted: &Counted) -> f64 {
        let [lds, sts, atoms, ldg, stg] = accesses(counted);
        let Trip::Asked([wavefronts, sectors]) = self else { return 0.0 };
        (wavefronts - lds - sts - atoms) + (sectors / 4.0 - ldg - stg).max(0.0)
    }
}

/// A loop's own accesses.
fn accesses(counted: &Counted) -> [f64; ACCESSES.len()] {
    ACCESSES.map(|name| counted.names.get(name).copied().unwrap_or(0.0))
}

/// How often the accesses of one loop are in another.
fn factor(text: &[f64], code: &[f64]) -> Option<f64> {
    let at = text.iter().position(|count| *count > 0.0)?;
    let factor = code[at] / text[at];
    let all = text.iter().zip(code).all(|(text, code)| text * factor == *code);
    (factor >= 1.0 && factor.fract() == 0.0 && all).then_some(factor)
}

/// The fewest accesses by which a loop is known among others.
const TELLING: f64 = 3.0;

/// For each loop of the machine code what its accesses ask for. If the loops of the text match all of them in one way alone, they decide.
/// Otherwise a loop has what the one loop of the text asks for that has the same accesses at the same depth, if no other loop of the
/// code has them.
pub(super) fn matched(text: &[Vec<f64>], code: &[Counted]) -> Vec<Trip> {
    let mut trips = vec![Trip::Unknown; code.len()];
    let Some((_, loops)) = code.split_last() else { return trips };
    let depth = |mut at: usize| {
        let mut depth = 0.0;
        while let Some(outer) = loops[at].inside {
            (at, depth) = (outer, depth + 1.0);
        }
        depth
    };
    let own: Vec<([f64; ACCESSES.len()], f64)> =
        (0..loops.len()).map(|n| (accesses(&loops[n]), depth(n))).collect();
    let with: Vec<usize> = (0..loops.len()).filter(|n| own[*n].0 != [0.0; ACCESSES.len()]).collect();
    // How often the accesses of a loop of the text are in one of the code.
    let fits = |one: &[f64], n: usize| match one.split_at_checked(1 + ACCESSES.len()) {
        Some((key, _)) if key[0] == own[n].1 => factor(&key[1..], &own[n].0),
        _ => None,
    };
    let asked = |one: &[f64], times: f64| match one.get(1 + ACCESSES.len()..) {
        Some([wavefronts, sectors]) => Trip::Asked([wavefronts * times, sectors * times]),
        _ => Trip::Unknown,
    };
    if let Some(all) = aligned(text.len(), with.len(), |j, i| fits(&text[j], with[i])) {
        trips.fill(Trip::Asked([0.0; 2]));
        for ((j, times), n) in all.into_iter().zip(&with) {
            trips[*n] = asked(&text[j], times);
        }
        return trips;
    }
    for n in &with {
        let same = |one: &&Vec<f64>| fits(one, *n) == Some(1.0);
        let alike = with.iter().filter(|other| own[**other] == own[*n]).count();
        let mut found = text.iter().filter(same);
        if let (Some(one), None, 1) = (found.next(), found.next(), alike)
            && own[*n].0.iter().sum::<f64>() >= TELLING
        {
            trips[*n] = asked(one, 1.0);
        }
    }
    trips
}

/// For each loop of the code the loop of the text that it comes from, and how often it has its accesses, if there is one way alone. Both come
/// in the order of their places; one of the text may have become several behind one another, as a loop of several trips at once and
/// one for the rest.
fn aligned(
    text: usize,
    code: usize,
    fits: impl Fn(usize, usize) -> Option<f64>,
) -> Option<Vec<(usize, f64)>> {
    // In how many ways the first loops of the code come from the first loops of the text, and the last of the former from the last of the
    // latter; two stand for more.
    let mut ways = vec![vec![0u32; text + 1]; code + 1];
    ways[0][0] = 1;
    for i in 0..code {
        for j in (0..text).filter(|j| fits(*j, i).is_some()) {
            // The first of this loop of the text, or another of it.
            ways[i + 1][j + 1] = (ways[i][j] + ways[i][j + 1]).min(2);
        }
    }
    if ways[code][text] != 1 {
        return None;
    }
    let (mut all, mut j) = (Vec::new(), text);
    for i in (0..code).rev() {
        all.push((j - 1, fits(j - 1, i)?));
        j -= usize::from(ways[i][j - 1] > 0);
    }
    all.reverse();
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(inside: Option<usize>, names: &[(&str, f64)]) -> Counted {
        let names = names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Counted { inside, names, ..Counted::default() }
    }

    fn planted() -> Vec<Counted> {
        vec![
            code(None, &[("STS", 1.0), ("MOV", 3.0)]),
            code(None, &[("LOP3", 1.0)]),
            code(None, &[("LDG", 2.0)]),
            code(Some(2), &[("LDS", 4.0), ("LDG", 8.0)]),
            code(Some(2), &[("LDS", 1.0), ("LDG", 2.0)]),
            code(None, &[("EXIT", 1.0)]),
        ]
    }

    fn text() -> Vec<Vec<f64>> {
        vec![
            vec![0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 4.0, 0.0],
            vec![0.0, 0.0, 0.0, 0.0, 2.0, 0.0],
            vec![1.0, 1.0, 0.0, 0.0, 2.0, 0.0, 3.0, 16.0],
        ]
    }

    #[test]
    fn loops_match_in_order_with_multiples_and_rests() {
        let (code, text) = (planted(), text());
        let found = matched(&text, &code);
        let none = Trip::Asked([0.0; 2]);
        let two = [Trip::Asked([12.0, 64.0]), Trip::Asked([3.0, 16.0])];
        assert_eq!(found, [Trip::Asked([4.0, 0.0]), none, Trip::Unknown, two[0], two[1], none]);
        // Eight wavefronts beyond four accesses, and sixteen fours of sectors beyond eight.
        assert_eq!(found[3].longer(&code[3]), 8.0 + 8.0);
    }

    type Change = fn(&mut Vec<Vec<f64>>);

    #[test]
    fn other_counts_orders_and_two_ways_are_refused() {
        let changes: [(Change, [bool; 2]); 6] = [
            // One loop alone has three accesses that are those of one of the text.
            (|text| text[0][2] = 2.0, [false, true]),
            (|text| text.swap(0, 1), [false, true]),
            (|text| text[2][0] = 0.0, [false, false]),
            (|text| text[2][4] = 1.0, [false, false]),
            (|text| drop(text.pop()), [false, false]),
            (|text| text.push(vec![1.0, 4.0, 0.0, 0.0, 8.0, 0.0, 5.0, 6.0]), [true, true]),
        ];
        for (change, known) in changes {
            let mut text = text();
            change(&mut text);
            let found = matched(&text, &planted());
            let asked = |n: usize| found[n].asked().is_some();
            assert_eq!([asked(3), asked(4)], known, "{text:?}: {found:?}");
            assert!(!asked(0) && !asked(1) && !asked(2) && !asked(5), "{text:?}");
        }
        // Three loops of the code that are alike, for two of the text: which is the rest of which is unknown.
        let alike = [0, 1, 2, 3].map(|n| code(None, if n < 3 { &[("LDS", 5.0)] } else { &[] }));
        let one = vec![0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        assert_eq!(matched(&[one.clone(), one.clone()], &alike), [Trip::Unknown; 4]);
        assert_eq!(matched(&[one.clone(), one.clone(), one], &alike)[0], Trip::Asked([1.0, 0.0]));
    }
}
