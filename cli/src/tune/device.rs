//! What `tune` keeps about devices: from what batch size they pay, and how they are used best.
#![forbid(unsafe_code)]

use lanework_cuda::Card;
use lanework_mayo_cuda::{Expand, Multiply, Options, Pace, Ring};
use lanework_race::record::ResultRow;
use lanework_suite::mayo::cuda::{How, forms};
use serde::{Deserialize, Serialize};

/// What identifies a device as far as times go, and the program that it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DevicePrint {
    name: String,
    multiprocessors: u32,
    memory: u64,
    driver: (u32, u32),
    program: String,
}

/// How a device is used for one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeviceChoice {
    /// The devices that it was measured on, in their order. For others it means nothing.
    pub(crate) devices: Vec<DevicePrint>,
    /// Operations and nanoseconds of a small batch, and of a large one.
    small: (usize, f64),
    large: (usize, f64),
    /// Nanoseconds of one operation on the CPU, by its best number of threads.
    cpu: f64,
    /// Operations to a chunk.
    chunk: usize,
    /// Whether all matrices of a chunk are made before any is used.
    whole: bool,
    /// Whether products are of bits. Older profiles lack it.
    #[serde(default)]
    bits: bool,
    /// How matrices are expanded: profiles that lack it are from before there was a choice.
    #[serde(default)]
    expand: Expanded,
}

/// [`Expand`], as a profile keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expanded {
    #[default]
    Alone,
    Beside,
    Fused,
}

/// The choices for one subject, by the devices that they were measured on: each alone, and several together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "OneOrMany")]
pub(crate) struct DeviceChoices(Vec<DeviceChoice>);

/// As profiles have it: older ones hold a single choice.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(DeviceChoice),
    Many(Vec<DeviceChoice>),
}

impl From<OneOrMany> for DeviceChoices {
    fn from(found: OneOrMany) -> DeviceChoices {
        match found {
            OneOrMany::One(choice) => DeviceChoices(vec![choice]),
            OneOrMany::Many(choices) => DeviceChoices(choices),
        }
    }
}

/// The most choices kept for one subject; the oldest is dropped.
const KEPT: usize = 16;

/// How devices are used together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceUse {
    /// Chunks, ring, break-even and the CPU's share.
    pub(crate) options: Options,
    /// Each device's share by its own measured rate; none if one of them has not been measured alone.
    pub(crate) weights: Option<Vec<f64>>,
}

impl DeviceChoices {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The choice for exactly these devices.
    pub(crate) fn of(&self, devices: &[DevicePrint]) -> Option<&DeviceChoice> {
        self.0.iter().find(|choice| choice.devices == devices)
    }

    /// Keeps a choice, in place of an older one for the same devices.
    pub(crate) fn keep(&mut self, choice: DeviceChoice) {
        self.forget(&choice.devices);
        if self.0.len() >= KEPT {
            self.0.remove(0);
        }
        self.0.push(choice);
    }

    /// Drops the choice for these devices.
    pub(crate) fn forget(&mut self, devices: &[DevicePrint]) {
        self.0.retain(|choice| choice.devices != devices);
    }

    /// How to use these devices, if known: as they were measured together, else as their own paces add up.
    pub(crate) fn used(&self, devices: &[DevicePrint], options: Options) -> Option<DeviceUse> {
        let alone: Option<Vec<&DeviceChoice>> =
            devices.iter().map(|one| self.of(std::slice::from_ref(one))).collect();
        let alone = alone.filter(|alone| !alone.is_empty());
        let paces: Option<Vec<Pace>> = alone.as_ref().map(|all| all.iter().map(|c| c.pace()).collect());
        let options = match (self.of(devices), &alone, &paces) {
            (Some(choice), ..) => choice.options(options),
            // A fleet has one chunk and one ring: the first device's.
            (None, Some(alone), Some(paces)) => {
                Pace::together(paces)?.picked(alone[0].options(options), true)
            }
            _ => return None,
        };
        Some(DeviceUse { options, weights: paces.map(|paces| Pace::weights(&paces)) })
    }
}

impl DevicePrint {
    /// The prints of these cards' devices.
    pub(crate) fn of<'a>(cards: impl IntoIterator<Item = &'a Card>) -> Vec<DevicePrint> {
        let program = lanework_mayo_cuda::program();
        let of = |card: &Card| DevicePrint {
            name: card.name.clone(),
            multiprocessors: card.multiprocessors,
            memory: card.memory,
            driver: card.driver,
            program: program.clone(),
        };
        cards.into_iter().map(of).collect()
    }
}

impl DeviceChoice {
    fn pace(&self) -> Pace {
        Pace { small: self.small, large: self.large, cpu: self.cpu }
    }

    /// `options` with this choice.
    pub(crate) fn options(&self, options: Options) -> Options {
        let ring = if self.whole { Ring::Whole } else { Ring::Cache };
        let expand = match self.expand {
            Expanded::Alone => Expand::Alone,
            Expanded::Beside => Expand::Beside,
            Expanded::Fused => Expand::Fused,
        };
        let multiply = if self.bits { Multiply::Bits } else { Multiply::Masks };
        self.pace().picked(Options { chunk: self.chunk, ring, expand, multiply, ..options }, true)
    }

    /// In words.
    pub(super) fn told(&self) -> String {
        let share = self.pace().cpu_share() * 100.0;
        let matrices = match (self.expand, self.whole) {
            (Expanded::Fused, _) => "in the products' kernel",
            (Expanded::Beside, _) => "beside products",
            (Expanded::Alone, true) => "all at once",
            (Expanded::Alone, false) => "by the cache",
        };
        let products = if self.bits { ", products of bits" } else { "" };
        match self.pace().break_even() {
            Some(from) => format!(
                "pays from {from} operations, {share:.0} % for the CPU, chunks of {}, matrices {matrices}{products}",
                self.chunk
            ),
            None => "never pays: the CPU keeps all".to_owned(),
        }
    }
}

/// What the races of one subject show about the devices. None if a time is missing; the usual form if no other is faster
/// beyond doubt.
pub(super) fn choose(
    name: &str,
    emulated: bool,
    devices: &[DevicePrint],
    rows: &[&ResultRow],
) -> Option<DeviceChoice> {
    let [small, usual, others @ ..] = forms(emulated);
    let row = |how: &How| rows.iter().find(|r| r.variant == how.name(name)).copied();
    let on_cpu = |r: &&&ResultRow| r.variant.ends_with("+batch") || r.variant.contains("+threads=");
    let cpu = rows.iter().filter(on_cpu).map(|r| r.median).min_by(f64::total_cmp)?;
    let (first, base) = (row(&small)?, row(&usual)?);
    // All raced against one baseline, so disjoint intervals tell which is faster.
    let wins = |r: &ResultRow| r.verdict.is_settled() && r.low > base.high;
    let (how, best) = others
        .iter()
        .filter_map(|how| Some((how, row(how)?)))
        .filter(|(_, r)| wins(r))
        .max_by(|(_, a), (_, b)| a.ratio.total_cmp(&b.ratio))
        .unwrap_or((&usual, base));
    let took = |how: &How, r: &ResultRow| (how.batch, r.median * how.batch as f64);
    Some(DeviceChoice {
        devices: devices.to_vec(),
        small: took(&small, first),
        large: took(how, best),
        cpu,
        chunk: how.chunk,
        whole: how.ring == Ring::Whole,
        expand: match how.expand {
            Expand::Alone => Expanded::Alone,
            Expand::Beside => Expanded::Beside,
            Expand::Fused => Expanded::Fused,
        },
        bits: how.multiply == Multiply::Bits,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{row, timed};
    use super::*;

    /// Nanoseconds of one operation: 100 ns each on the device and 6400 to start, 250 on the CPU's threads.
    fn rows() -> Vec<ResultRow> {
        vec![
            timed(row("avx2", "faster", 0.9, 1.0, 1.1), 500.0),
            timed(row("avx2+batch", "faster", 0.9, 1.0, 1.1), 500.0),
            timed(row("avx2+threads=2", "faster", 1.9, 2.0, 2.1), 250.0),
            timed(row("cuda+batch=64", "faster", 2.0, 2.5, 3.0), 200.0),
            timed(row("cuda+batch=8192", "faster", 4.8, 4.9, 5.0), 100.0 + 6400.0 / 8192.0),
            timed(row("cuda+batch=8192+whole", "faster", 4.9, 5.1, 5.2), 98.0),
            timed(row("cuda+batch=8192+chunk=256", "faster", 4.0, 4.1, 4.2), 120.0),
            timed(row("cuda+batch=8192+chunk=4096", "faster", 4.8, 4.9, 5.0), 101.0),
            timed(row("cuda+batch=8192+beside", "faster", 4.8, 4.9, 5.0), 101.0),
            timed(row("cuda+batch=8192+fused", "faster", 4.8, 4.9, 5.0), 101.0),
        ]
    }

    fn chosen(rows: &[ResultRow]) -> Option<DeviceChoice> {
        choose("cuda", false, &[], &rows.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_pace_is_that_of_the_line_through_both_batches() {
        let choice = chosen(&rows()).expect("every time is there");
        assert_eq!((choice.chunk, choice.whole), (1024, false), "no other form is faster beyond doubt");
        let options = choice.options(Options::default());
        // 6400 / (250 - 100), and 100 of 350.
        assert_eq!((options.break_even, options.chunk, options.ring), (43, 1024, Ring::Cache));
        assert!((options.cpu_share - 100.0 / 350.0).abs() < 1e-6, "{options:?}");
        assert!(choice.told().contains("from 43 operations, 29 % for the CPU"), "{}", choice.told());
        let text = serde_json::to_string(&choice).expect("JSON");
        assert_eq!(serde_json::from_str::<DeviceChoice>(&text).expect("the same"), choice);
    }

    #[test]
    fn a_form_that_is_faster_beyond_doubt_is_kept() {
        let mut rows = rows();
        rows[5] = timed(row("cuda+batch=8192+whole", "faster", 5.5, 5.6, 5.7), 90.0);
        let choice = chosen(&rows).expect("every time is there");
        assert!(choice.whole && choice.options(Options::default()).ring == Ring::Whole);
        rows[7] = timed(row("cuda+batch=8192+chunk=4096", "faster", 5.8, 5.9, 6.0), 85.0);
        let choice = chosen(&rows).expect("every time is there");
        assert_eq!((choice.chunk, choice.whole), (4096, false));
        rows[9] = timed(row("cuda+batch=8192+fused", "faster", 6.8, 6.9, 7.0), 72.0);
        let choice = chosen(&rows).expect("every time is there");
        assert_eq!(choice.options(Options::default()).expand, Expand::Fused);
        assert!(choice.told().contains("in the products' kernel"), "{}", choice.told());
        // An older profile lacks it.
        let mut text = serde_json::to_value(&choice).expect("JSON");
        assert!(text.as_object_mut().is_some_and(|map| map.remove("expand").is_some()));
        let old: DeviceChoice = serde_json::from_value(text).expect("a profile");
        assert_eq!(old.options(Options::default()).expand, Expand::Alone);
        rows.push(timed(row("cuda+batch=8192+bits", "faster", 15.0, 16.0, 17.0), 31.0));
        let choice = chosen(&rows).expect("every time is there");
        assert!(choice.told().ends_with("products of bits"), "{}", choice.told());
        let options = choice.options(Options::default());
        assert_eq!((options.chunk, options.multiply), (1024, Multiply::Bits));
        // An older profile lacks them.
        let text = serde_json::to_string(&choice).expect("JSON").replace(",\"bits\":true", "");
        let old: DeviceChoice = serde_json::from_str(&text).expect("as it was");
        assert_eq!(old.options(Options::default()).multiply, Multiply::Masks);
    }

    fn print(name: &str) -> DevicePrint {
        DevicePrint {
            name: name.to_owned(),
            multiprocessors: 4,
            memory: 1,
            driver: (13, 0),
            program: String::new(),
        }
    }

    #[test]
    fn devices_share_by_the_rates_that_each_was_measured_at() {
        let (fast, slow) = ([print("fast")], [print("slow")]);
        let both = [print("fast"), print("slow")];
        let mut choices = DeviceChoices::default();
        let choice = chosen(&rows()).expect("every time is there");
        assert_eq!(choices.used(&both, Options::default()), None);
        choices.keep(DeviceChoice { devices: fast.to_vec(), ..choice.clone() });
        assert_eq!(choices.used(&both, Options::default()), None, "nothing is known of the other");
        let (small, large) = ((64, 6400.0 + 64.0 * 300.0), (8192, 6400.0 + 8192.0 * 300.0));
        choices.keep(DeviceChoice { devices: slow.to_vec(), small, large, ..choice.clone() });
        let used = choices.used(&both, Options::default()).expect("both are known");
        let weights = used.weights.clone().expect("both are known");
        assert!((weights[0] / weights[1] - 3.0).abs() < 1e-6, "{weights:?}");
        // 75 ns each together: 6400 / (250 - 75), and 75 of 325.
        assert_eq!(used.options.break_even, 37);
        assert!((used.options.cpu_share - 75.0 / 325.0).abs() < 1e-6, "{used:?}");
        // In the other order, the weights are swapped.
        let other = [print("slow"), print("fast")];
        let turned = choices.used(&other, Options::default()).and_then(|u| u.weights).expect("known");
        assert_eq!(turned, [weights[1], weights[0]]);
        // A joint measurement comes before sums, and the devices still share by their own rates.
        choices.keep(DeviceChoice { devices: both.to_vec(), chunk: 77, ..choice.clone() });
        let used = choices.used(&both, Options::default()).expect("known");
        assert_eq!((used.options.chunk, used.options.break_even, used.weights), (77, 43, Some(weights)));
        // A newer choice replaces an older one; a profile with a single choice is still read.
        choices.keep(DeviceChoice { devices: slow.to_vec(), ..choice.clone() });
        assert_eq!(choices.0.len(), 3);
        let even = choices.used(&both, Options::default()).and_then(|u| u.weights).expect("known");
        assert_eq!(even[0], even[1]);
        choices.forget(&slow);
        assert_eq!(choices.used(&both, Options::default()).and_then(|u| u.weights), None);
        let text = serde_json::to_string(&choice).expect("JSON");
        assert_eq!(serde_json::from_str::<DeviceChoices>(&text).expect("one").0, [choice]);
        let text = serde_json::to_string(&choices).expect("JSON");
        assert_eq!(serde_json::from_str::<DeviceChoices>(&text).expect("many"), choices);
    }

    #[test]
    fn nothing_is_kept_where_a_time_is_missing_and_a_slow_device_gets_nothing() {
        for missing in [3, 4] {
            let mut rows = rows();
            rows.remove(missing);
            assert_eq!(chosen(&rows), None);
        }
        assert_eq!(chosen(&rows()[3..]), None, "the CPU's");
        let mut rows = rows();
        rows[3] = timed(row("cuda+batch=64", "slower", 0.1, 0.2, 0.3), 900.0);
        rows.drain(5..);
        rows[4] = timed(row("cuda+batch=8192", "slower", 0.1, 0.2, 0.3), 800.0);
        let choice = chosen(&rows).expect("every time is there");
        assert_eq!(choice.options(Options::default()).break_even, usize::MAX);
        assert!(choice.told().contains("never pays"));
    }
}
