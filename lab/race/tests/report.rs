//! The page of `lanework report`: its content, that nothing leads out of it, and that a real browser shows it.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use base64ct::{Base64, Encoding};
use common::{World, plan, row};
use lanework_race::clock::Monotonic;
use lanework_race::gate::Gate;
use lanework_race::machine::{Machine, PeerBuild};
use lanework_race::race::in_process;
use lanework_race::record::{Record, ResultRow};
use lanework_race::report::{Options, ReportError, html};
use lanework_race::study::Study;
use lanework_race::subject::Subject;
use lanework_race::table::csv;
use lanework_race::verdict::Verdict;
use sha2::{Digest, Sha256};

/// A record with everything that a page can show: sizes, threads, floors, something absent, names that would break markup.
fn record() -> Record {
    let world = World::new(21);
    let mut record = Record::new(
        "planted <b>study</b>",
        "lanework bench 'planted & more' --save",
        Machine::inspect(&Monotonic::new(), vec![]),
    );
    for (i, size) in [16_u64, 1024, 65536].into_iter().enumerate() {
        let ns = 10.0 * size as f64;
        let gate = Gate::new(|| Ok(vec![row(10, 0)]));
        let subject = Subject::new(format!("planted/copy/{size}"), gate, world.variant("portable", ns))
            .bytes(size)
            .with(world.variant("avx512", ns / (3.0 + i as f64)))
            .with(world.variant("slow <i>", ns * 1.5))
            .with(world.variant("avx512+batch", ns / 4.0))
            .with(world.variant("avx512+threads=2", ns / 7.0))
            .with(world.absent("gpu", "no \"device\" <here>"));
        record.add(in_process(&subject, &plan(), &world.clock).expect("races"));
    }
    for r in record.results.iter_mut().filter(|r| r.variant == "avx512") {
        r.floor = Some(r.median / 2.0);
    }
    record.page = Some(
        // Six one bits are base64's slash: three question marks in a row have them at any offset.
        "# Does it <u>pay</u>???\n\n| who | how much |\n|---|---:|\n| lanes | ×3.14159 |\n\n## Verdict\n\n- **HOLDS**: it is planted.\n"
            .to_owned(),
    );
    record
}

/// Cut to where it matters: a failing comparison of pages is unreadable.
fn has(page: &str, what: &str) {
    assert!(page.contains(what), "the page lacks {what:?}");
}

#[test]
fn everything_of_a_record_is_on_the_page() {
    let record = record();
    // The template's engine escapes slashes too.
    let page = html(&[record], &Options::default()).expect("a page");
    for what in [
        "planted/copy/16",
        "planted/copy: by size",
        "By threads",
        "Distance to the floor",
        "avx512: computed floor",
        "cycles per byte",
        "lanework bench &#x27;planted &amp; more&#x27; --save",
        "slow &lt;i&gt;",
        "no &quot;device&quot; &lt;here&gt;",
        "planted &lt;b&gt;study",
        "30 cases passed",
        "hardware counters",
        "one process: effects of memory layout",
        "CPU features",
        "<h3>Does it &lt;u&gt;pay&lt;/u&gt;???</h3>",
        "×3.14159</td>",
        "<strong>HOLDS</strong>: it is planted.",
    ] {
        has(&page, what);
    }
    assert!(!page.contains("<b>study") && !page.contains("slow <i>"), "markup of the record's got through");
    // A chart of ratios and one of spreads for each race, and one each by size, threads and floor.
    assert_eq!(page.matches("<svg ").count(), 3 * 2 + 3);
    assert_eq!(page.matches("</svg>").count(), 9);
    assert!(matches!(html(&[], &Options::default()), Err(ReportError::Nothing)));
}

/// Memory is counted in KiB and is less or more, never a time and faster or slower.
#[test]
fn memory_is_not_called_fast() {
    let mut record = record();
    let mut peak = record.results[0].clone();
    (peak.subject, peak.unit, peak.bytes) = ("process/peak".into(), "KiB".into(), None);
    (peak.median, peak.ratio, peak.low, peak.high) = (2000.0, 3.0, 2.9, 3.1);
    peak.verdict = Verdict::Faster;
    peak.samples.clear();
    peak.baseline_samples.clear();
    let more = ResultRow {
        variant: "fat".into(),
        verdict: Verdict::Slower,
        ratio: 0.5,
        low: 0.4,
        high: 0.6,
        ..peak.clone()
    };
    record.results = vec![peak, more];
    record.controls.clear();
    let page = html(&[record], &Options::default()).expect("a page");
    for what in [
        "<b>0</b> faster",
        "<b>1</b> less memory",
        "<b>1</b> more memory",
        "▲ less",
        "▼ more",
        "baseline / variant",
        "2000 KiB",
    ] {
        has(&page, what);
    }
    assert!(!page.contains("▲ faster") && !page.contains("times as fast"), "memory is called fast");
}

/// Other people's code first, then the answers, each with a link to its record; there the sentences come before the study's page.
#[test]
fn the_first_screen_has_the_peers_and_the_answers() {
    let row = |r: &ResultRow, variant: &str, ratio: f64, verdict: Verdict| ResultRow {
        variant: variant.into(),
        ratio,
        low: ratio * 0.99,
        high: ratio * 1.01,
        verdict,
        floor: None,
        ..r.clone()
    };
    let mut raced = record();
    let peer = |name: &str| PeerBuild {
        name: name.into(),
        version: format!("{name} 7.1"),
        compiler: String::new(),
        flags: String::new(),
    };
    let first = raced.results[0].clone();
    raced.study = "bench-planted-peers".into();
    raced.page = None;
    raced.machine.peers = vec![peer("theirs"), peer("old")];
    raced.results = vec![
        row(&first, "theirs-plain", 0.25, Verdict::Slower),
        row(&first, "old", 1.25, Verdict::Faster),
        row(&first, "ours-too", 3.0, Verdict::Faster),
    ];
    let asked = Study::from_toml(
        "asked",
        "question = \"Does it pay?\"\n[answer]\nclaimed = \"Twice.\"\n\
         found = \"It is {{ ratio('planted/copy/16', 'avx512', 'portable') }} here.\"\nwhy = \"So.\"\n\
         chart = [['planted/copy/16', 'avx512', 'portable', 'wide lanes']]\n[original]\n",
    )
    .expect("a study");
    let mut answers = record();
    answers.study = "asked".into();
    let mut only_theirs = raced.clone();
    only_theirs.results.truncate(2);
    let alone = html(&[only_theirs], &Options::default()).expect("a page");
    let note = "other people's code and the baseline is ours";
    assert!(
        alone.contains(note)
            && !html(std::slice::from_ref(&raced), &Options::default()).expect("a page").contains(note)
    );
    let older = Record { date: "2020-01-01T00:00:00Z".into(), ..answers.clone() };
    let mut other = record();
    other.study = "asked".into();
    other.results.truncate(0);
    let headline = [("planted/copy/16", "Copying 16 bytes"), ("planted/none", "Nothing")];
    let options = Options { studies: &[asked], headline: &headline, ..Options::default() };
    let page = html(&[raced, other, older, answers.clone()], &options).expect("a page");
    let (screen, rest) = page.split_once("<main ").expect("chapters");
    // The ratio is ours over the peer's, and so is the verdict.
    has(screen, "Copying 16 bytes: theirs-plain ×4.00 ▲ faster; old ×0.800 ▼ slower");
    has(screen, "theirs is theirs 7.1; old is old 7.1");
    assert_eq!(screen.matches("<svg ").count(), 1, "a headline that no record has");
    assert!(!screen.contains("ours-too"), "our own variant among the peers");
    // One answer of a study, from its newest record, whose chapter comes first.
    assert_eq!(screen.matches("Does it pay?").count(), 1);
    let told = answers.results.iter().find(|r| r.variant == "avx512").expect("a row");
    let found = format!("It is {} here.", lanework_race::table::times(told.ratio));
    has(screen, &found);
    has(screen, "<a href=\"#r4\">Does it pay?</a>");
    assert!(rest.starts_with("id=\"r4\""), "{}", &rest[..40]);
    let chapter = rest.split("<main ").next().expect("a chapter");
    let decides = "What decides: wide lanes ×";
    for part in ["<b>Claimed.</b> Twice.", &found, "<b>Why.</b> So.", decides, "The study's whole page"] {
        has(chapter, part);
    }
    assert_eq!(chapter.matches("Made by").count(), 1);
    // A record that lacks the row has its chapter, which says so in place of the sentences.
    let last = page.split("<main id=\"r2\"").nth(1).expect("its chapter").split("<main ").next().expect("it");
    assert!(!last.contains("Claimed."));
    has(last, "<b>No answer:</b> the record has no row of planted/copy/16: avx512 against portable");
    has(screen, "4 records; ");
}

#[test]
fn what_a_study_says_is_kept_in_its_record() {
    let mut record = record();
    record.findings = Some(serde_json::json!({ "holds": true, "told": ["×3.14159"] }));
    let again = Record::from_json(&record.to_packed_json().expect("packs")).expect("reads");
    assert_eq!((&again.page, &again.findings), (&record.page, &record.findings));
    record.page = None;
    record.findings = None;
    let plain = record.to_json().expect("text");
    assert!(!plain.contains("\"page\"") && !plain.contains("\"findings\""));
    assert!(!html(&[record], &Options::default()).expect("a page").contains("class=\"prose\""));
}

#[test]
fn nothing_leads_out_of_the_page() {
    let page = html(&[record(), record()], &Options::default()).expect("a page");
    for what in ["src=", "@import", "url(", "http:", "https:", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(what), "the page has {what}");
    }
    // One script, which the policy names by its hash, and one list that is not a script.
    assert_eq!(
        (page.matches("<script").count(), page.matches("<script type=\"application/json\"").count()),
        (2, 1)
    );
    let script = page.split("<script>").nth(1).and_then(|t| t.split("</script>").next()).expect("a script");
    let hash = Base64::encode_string(&Sha256::digest(script.as_bytes()));
    let policy = page.split("Content-Security-Policy\" content=\"").nth(1).and_then(|t| t.split('"').next());
    let policy = policy.expect("a policy").replace("&#x27;", "'");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(policy.contains(&format!("script-src 'sha256-{hash}';")), "{policy}");
    for link in page.split("href=\"").skip(1) {
        let link = link.split('"').next().expect("a link");
        assert!(link.starts_with("data:") || link.starts_with('#'), "{}", &link[..link.len().min(60)]);
    }
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|t| t.split('"').next()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert!(count >= 4 && ids.len() == count, "ids repeat");
}

/// What a compressed link holds, as text.
fn unpacked(page: &str, file: &str) -> String {
    use std::io::Read as _;
    let at = page.find(&format!("download=\"{file}\"")).unwrap_or_else(|| panic!("no link to {file}"));
    let link = page[at..].split("href=\"data:application/gzip;base64,").nth(1);
    let data = link.and_then(|t| t.split('"').next()).expect("a link");
    let bytes = Base64::decode_vec(data).expect("base64");
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip");
    text
}

#[test]
fn a_record_can_be_taken_away_without_its_samples() {
    let record = record();
    let page = html(std::slice::from_ref(&record), &Options::default()).expect("a page");
    let file = format!("{}-planted-b-study-b-summary.json.gz", &record.date[..10]);
    let text = unpacked(&page, &file);
    // Still a record, and the same in everything but the intervals that replace the samples.
    assert_eq!(Record::from_json(&text).expect("a record").results.len(), record.results.len());
    let mut summary: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for row in summary["results"].as_array_mut().expect("rows") {
        row.as_object_mut().expect("a row").remove("median_interval").expect("an interval of the median");
    }
    let rest = without_samples(&record);
    for part in ["schema", "study", "command", "plan", "results", "controls", "remarks", "page"] {
        assert!(summary[part] == rest[part], "{part} of the summary is not the record's");
    }
    assert_eq!(summary.as_object().map(|o| o.len()), rest.as_object().map(|o| o.len()));
}

fn without_samples(record: &Record) -> serde_json::Value {
    let mut rest = serde_json::to_value(record).expect("JSON");
    for list in ["results", "controls"] {
        for row in rest[list].as_array_mut().expect("rows") {
            let row = row.as_object_mut().expect("a row");
            assert!(row.remove("samples").is_some() && row.remove("baseline_samples").is_some());
        }
    }
    rest
}

/// The value with one kind of number: a browser's 1 is our 1.0.
fn numbers(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(n) => n.as_f64().into(),
        Value::Array(all) => all.into_iter().map(numbers).collect(),
        Value::Object(all) => all.into_iter().map(|(key, value)| (key, numbers(value))).collect(),
        other => other,
    }
}

/// A page that shows the report in a frame, presses every button in it, and keeps what would be saved, by its name.
fn pressed(folder: &Path, report: &str) -> PathBuf {
    let probe = format!(
        "<body><iframe id=f src=\"{report}\"></iframe><pre id=got></pre><script>\
         f.onload = async () => {{ const w = f.contentWindow, saved = [];\
         let blob; w.URL.createObjectURL = (b) => {{ blob = b; return '#'; }};\
         w.HTMLAnchorElement.prototype.click = function () {{ saved.push([this.download, blob]); }};\
         const buttons = [...f.contentDocument.querySelectorAll('.take button')];\
         for (const b of buttons) {{ const before = saved.length; b.click();\
         for (let i = 0; i < 100000 && saved.length === before; i++) await new Promise((r) => setTimeout(r, 10)); }}\
         const all = [buttons.length]; for (const [name, b] of saved) all.push([name, b.type, await b.text()]);\
         const bytes = new TextEncoder().encode(JSON.stringify(all));\
         got.textContent = btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join('')); }}</script>"
    );
    let path = folder.join("pressed.html");
    std::fs::write(&path, probe).expect("written");
    path
}

#[test]
fn tables_can_be_taken_away() {
    let Some(browser) = browser() else { return };
    let record = record();
    let floor = |row: &ResultRow, _: &Machine| (row.variant == "slow <i>").then_some(row.median / 4.0);
    let folder = tempfile::tempdir().expect("a folder");
    for samples in [false, true] {
        let options = Options { samples, floor: Some(&floor), ..Options::default() };
        let page = html(std::slice::from_ref(&record), &options).expect("a page");
        std::fs::write(folder.path().join("report.html"), page).expect("written");
        let probe = pressed(folder.path(), "report.html");
        // The browser's clock runs ahead while threads unpack: it needs hours.
        let (document, console) = look(&browser, &probe, &["--dump-dom", "--virtual-time-budget=10000000"]);
        assert_eq!(console, Vec::<String>::new());
        let got = document.split("<pre id=\"got\">").nth(1).and_then(|t| t.split('<').next());
        let got = Base64::decode_vec(got.expect("a list")).expect("base64");
        let got: Vec<serde_json::Value> = serde_json::from_slice(&got).expect("JSON");
        assert_eq!(got[0].as_u64(), Some(got.len() as u64 - 1), "a button gave nothing");
        let file = format!("{}-planted-b-study-b", &record.date[..10]);
        let of = |name: &str, kind: &str| {
            let name = format!("{file}-{name}");
            let found =
                got[1..].iter().find(|f| f[0] == *name).unwrap_or_else(|| panic!("no {name}: {got:?}"));
            assert_eq!(found[1], format!("{kind};charset=utf-8"));
            found[2].as_str().expect("text").to_owned()
        };
        // Exactly as the command would print it, with the page's floors added.
        let mut rows = record.results.clone();
        for row in rows.iter_mut().filter(|row| row.floor.is_none()) {
            row.floor = floor(row, &record.machine);
        }
        assert!(rows.iter().any(|row| row.variant == "slow <i>" && row.floor.is_some()));
        assert_eq!(of("planted.csv", "text/csv"), csv(&rows));
        let json: serde_json::Value =
            serde_json::from_str(&of("planted.json", "application/json")).expect("JSON");
        let all = Record { results: rows, ..record.clone() };
        // A page without samples has the intervals that replace them.
        let all = if samples {
            without_samples(&all)["results"].take()
        } else {
            serde_json::to_value(all.without_samples().results).expect("JSON")
        };
        assert!(numbers(json) == numbers(all), "another JSON");
        let machine = of("machine.csv", "text/csv");
        assert!(machine.starts_with("what,value\nCPU,"), "{machine}");
        let machine: serde_json::Value =
            serde_json::from_str(&of("machine.json", "application/json")).expect("JSON");
        assert_eq!(machine[0]["what"], "CPU");
        assert!(of("gates.csv", "text/csv").contains("planted,planted,10,0,0,"));
    }
}

#[test]
fn a_page_can_hold_every_sample() {
    let record = record();
    let floor = |row: &ResultRow, _: &Machine| (row.variant == "slow <i>").then_some(row.median / 4.0);
    let options = Options { samples: true, floor: Some(&floor), ..Options::default() };
    let page = html(std::slice::from_ref(&record), &options).expect("a page");
    let text = unpacked(&page, &format!("{}-planted-b-study-b.json.gz", &record.date[..10]));
    let whole = Record::from_json(&text).expect("a record");
    assert!(
        whole.results == record.results && whole.controls == record.controls,
        "the record came out another"
    );
    // A floor that the record lacks is on the page and not in the record; one that it has stays.
    assert!(page.contains("slow &lt;i&gt;: computed floor") && page.contains("avx512: computed floor"));
    assert!(
        !html(&[record], &Options::default()).expect("a page").contains("slow &lt;i&gt;: computed floor")
    );
}

/// Two hundred races of one variant are one strip, and the page does not grow with them.
#[test]
fn races_run_over_and_over_are_a_strip() {
    let mut record = record();
    let row = ResultRow { floor: None, ..record.results[0].clone() };
    record.results = (0..200)
        .map(|i| {
            let mut row = row.clone();
            row.ratio = row.low + (row.high - row.low) * f64::from(i) / 199.0;
            row
        })
        .collect();
    let page = html(&[record], &Options::default()).expect("a page");
    assert_eq!(page.matches("<svg ").count(), 2, "a strip, and one shape of all samples");
    let strip = page.split("<svg ").nth(1).and_then(|t| t.split("</svg>").next()).expect("a strip");
    // A dot is a line without length, and takes a few letters.
    assert!(strip.len() < 200 * 8 + 3000, "a strip of {} bytes", strip.len());
    assert!(strip.matches("h0").count() == 200 && page.contains("200 races: 200 "));
    assert!(page.contains("<summary>The table (200 rows)</summary>"));
}

/// Two races of one subject may have done different amounts of work: their times do not belong on one line.
#[test]
fn threads_of_two_races_are_not_mixed() {
    let mut record = record();
    let row = record.results[0].clone();
    let of = |variant: &str, baseline: &str, ns: f64| ResultRow {
        subject: "planted/both".into(),
        variant: variant.into(),
        baseline: baseline.into(),
        floor: None,
        bytes: None,
        median: ns,
        baseline_median: 1000.0,
        ..row.clone()
    };
    // A tenth of the work in the second race.
    record.results = vec![of("a+threads=2", "a", 600.0), of("a+threads=4", "b", 30.0), of("a", "b", 100.0)];
    let page = html(&[record], &Options::default()).expect("a page");
    let of_threads =
        page.split("By threads: speed").nth(1).and_then(|t| t.split("</svg>").next()).expect("a chart");
    // Both races have as many points, so the first one's are shown: one and two threads. The key has a mark too.
    assert_eq!(of_threads.matches("h0").count(), 2 + 1);
}

/// Batches of several sizes are a chart of the time of an item, whichever way their unit of work counts.
#[test]
fn batches_have_a_chart_by_their_size() {
    let mut record = record();
    let row = record.results.iter().find(|r| r.variant == "avx512").expect("a row").clone();
    let of = |subject: String, bytes: Option<u64>, ns: f64| ResultRow {
        subject,
        bytes,
        floor: None,
        median: ns,
        baseline_median: 2.0 * ns,
        ..row.clone()
    };
    record.results = [1_u64, 8, 64]
        .into_iter()
        .flat_map(|n| {
            let item = 1000.0 + 8000.0 / n as f64;
            [
                of(format!("planted/mac-batch/{n}x1024"), Some(n * 1024), item * n as f64),
                of(format!("planted/verify-batch/{n}"), None, item),
            ]
        })
        .collect();
    let page = html(&[record], &Options::default()).expect("a page");
    for family in ["planted/mac-batch, messages of 1024 bytes", "planted/verify-batch"] {
        has(&page, &format!("{family}: by size of the batch"));
        // From 9 µs to 1.125 µs, though one's unit is the batch and the other's an item.
        let words =
            page.split(&format!("aria-label=\"{family}: micro")).nth(1).and_then(|t| t.split('"').next());
        let words = words.expect("words").to_owned();
        assert!(words.contains("avx512 ×8.00 in batches of 64"), "{words}");
    }
    assert!(!page.contains("mac-batch: by size<"), "bytes of a batch are no size of a buffer");
}

/// Each mark has a colour by its class, which the style sheet has for light pages and for dark ones.
#[test]
fn every_colour_of_a_chart_has_a_dark_one() {
    let page = html(&[record()], &Options::default()).expect("a page");
    let (style, body) = page.split_once("</style>").expect("a style");
    let (light, dark) = style.split_once("prefers-color-scheme: dark").expect("a dark half");
    let mut seen = Vec::new();
    for drawing in body.split("<svg ").skip(1).filter_map(|t| t.split("</svg>").next()) {
        for class in drawing.split("class=\"").skip(1).filter_map(|t| t.split('"').next()) {
            let colour = class.split(' ').find(|word| style.contains(&format!("svg .{word} {{ --c: var(--")));
            let colour = colour.unwrap_or_else(|| panic!("{class} has no colour"));
            let rule =
                style.split(&format!("svg .{colour} {{ --c: var(")).nth(1).and_then(|t| t.split(')').next());
            let name = format!("{}:", rule.expect("a rule"));
            assert!(light.contains(&name) && dark.contains(&name), "{name} is not in both");
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
    }
    // Marks of a verdict, ink and noise at least.
    assert!(seen.len() >= 6, "{seen:?}");
}

/// The browser, or `None` with a message where there is none; a failure where `LANEWORK_REQUIRE_BROWSER` is 1.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|dir| ["chromium", "chromium-browser", "google-chrome"].map(|name| dir.join(name)))
        .find(|p| p.is_file());
    if found.is_none() {
        let why = "SKIPPED: the report in a browser, since there is no chromium";
        assert!(std::env::var("LANEWORK_REQUIRE_BROWSER").as_deref() != Ok("1"), "{why}");
        // Past the test harness's capture.
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{why}");
    }
    found
}

/// A browser's view of a file: the document after scripts ran, and the console's messages.
fn look(browser: &Path, file: &Path, options: &[&str]) -> (String, Vec<String>) {
    let profile = tempfile::tempdir().expect("a folder");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--enable-logging=stderr", "--hide-scrollbars", "--virtual-time-budget=3000"])
        .args(["--allow-file-access-from-files", "--window-size=1100,1600"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(options)
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser runs");
    assert!(output.status.success(), "{}", output.status);
    let said = String::from_utf8_lossy(&output.stderr);
    let console = said.lines().filter(|l| l.contains("CONSOLE")).map(str::to_owned).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

/// A page that shows the report in a frame of this width, and records how far its content sticks out.
fn framed(folder: &Path, report: &str, width: u32) -> PathBuf {
    let probe = format!(
        "<body style=\"margin:0\"><iframe id=f src=\"{report}\" width={width} height=1600 style=\"border:0\"></iframe><script>\
         f.onload = () => {{ const d = f.contentDocument, r = d.documentElement;\
         document.title = 'beyond ' + (r.scrollWidth - r.clientWidth) + ' charts ' +\
         [...d.querySelectorAll('figure svg')].filter(s => s.getBoundingClientRect().width > 200 || s.closest('details')).length +\
         ' text ' + Math.floor(Math.min(...[...d.querySelectorAll('figure svg')].filter(s => !s.closest('details')).flatMap(s => \
         [...s.querySelectorAll('text')].map(t => parseFloat(getComputedStyle(t).fontSize) * s.getBoundingClientRect().width / s.viewBox.baseVal.width)))) +\
         ' hidden ' + [...d.querySelectorAll('table.results tr')].filter(t => !t.closest('details') && [3, 5].some(i => \
         t.children[i].getBoundingClientRect().right > t.closest('.scroll').getBoundingClientRect().right)).length +\
         ' paper ' + getComputedStyle(d.body).backgroundColor + ' ink ' +\
         getComputedStyle(d.querySelector('svg text')).fill; }}</script>"
    );
    let path = folder.join(format!("probe-{width}.html"));
    std::fs::write(&path, probe).expect("written");
    path
}

#[test]
fn a_real_browser_shows_it() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.html");
    std::fs::write(&file, html(&[record()], &Options::default()).expect("a page")).expect("written");
    let (light, dark) =
        ("--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0");

    let (document, console) = look(&browser, &file, &["--dump-dom", light]);
    assert_eq!(console, Vec::<String>::new());
    assert!(document.contains("The machine") && document.trim_end().ends_with("</html>"));

    // On desks, a tablet and a phone, in light and dark mode: nothing wider than the page, every chart there, its text at least 11
    // pixels high, and the ratio and the verdict of every row in sight.
    for width in [390, 768, 1280, 1920] {
        let probe = framed(folder.path(), "report.html", width);
        for (scheme, paper, ink) in [
            (light, "paper rgb(255, 255, 255)", "ink rgb(91, 100, 114)"),
            (dark, "paper rgb(20, 23, 29)", "ink rgb(163, 171, 186)"),
        ] {
            let (document, console) = look(&browser, &probe, &["--dump-dom", scheme]);
            assert_eq!(console, Vec::<String>::new());
            let title = document.split("<title>").nth(1).and_then(|t| t.split("</title>").next());
            let title = title.unwrap_or("nothing").to_owned();
            assert!(title.starts_with("beyond 0 charts 9 "), "{width}: {title}");
            assert!(title.contains(paper) && title.contains(ink), "{width}: {title}");
            assert!(title.contains(" hidden 0 "), "{width}: {title}");
            let text = title.split(" text ").nth(1).and_then(|t| t.split(' ').next()?.parse::<u32>().ok());
            assert!(text.is_some_and(|pixels| pixels >= 11), "{width}: {title}");
        }
    }

    // A script put into a page does not run there.
    let stranger = html(&[record()], &Options::default())
        .expect("a page")
        .replace("</body>", "<script>document.title = 'it ran'</script></body>");
    std::fs::write(folder.path().join("stranger.html"), stranger).expect("written");
    let (document, console) = look(&browser, &folder.path().join("stranger.html"), &["--dump-dom"]);
    assert!(!document.contains("<title>it ran") && console.len() == 1, "{console:?}");

    // The same checks find the faults of a faulty page.
    let planted = folder.path().join("planted.html");
    std::fs::write(&planted, "<body><svg></svg><script>console.error('planted')</script>").expect("written");
    assert_eq!(look(&browser, &planted, &["--dump-dom"]).1.len(), 1);
    let wide = html(&[record()], &Options::default())
        .expect("a page")
        .replace("<h1>", "<h1 style=\"width:2000px\">");
    std::fs::write(folder.path().join("report.html"), wide).expect("written");
    let (document, _) = look(&browser, &framed(folder.path(), "report.html", 390), &["--dump-dom", light]);
    assert!(document.contains("beyond ") && !document.contains("beyond 0"), "a page too wide was not seen");
    let small = html(&[record()], &Options::default())
        .expect("a page")
        .replace("svg .small { font-size: 12px; }", "svg .small { font-size: 9px; }");
    std::fs::write(folder.path().join("report.html"), small.replace("display: none", "color: red"))
        .expect("written");
    let (document, _) = look(&browser, &framed(folder.path(), "report.html", 390), &["--dump-dom", light]);
    assert!(document.contains(" text 8 ") || document.contains(" text 9 "), "small text was not seen");
    assert!(!document.contains(" hidden 0 "), "a hidden verdict was not seen");
}
