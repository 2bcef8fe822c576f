//! The headline as a picture: for each job, every peer's time as a multiple of ours, on a logarithmic axis.
#![forbid(unsafe_code)]

use lanework_race::table::{amount, times};

use super::headline::Headline;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 660.0;
const LINE: f64 = 20.0;
const TOP: f64 = 44.0;

/// A card of its own colours, which follow the reader's light or dark setting.
const STYLE: &str = "\
svg { font: 13px system-ui, sans-serif; }\n\
.card { fill: #ffffff; stroke: #d0d7de; }\n\
text { fill: #1f2328; }\n\
.job { font-weight: 600; }\n\
.axis { fill: #59636e; font-size: 11px; }\n\
.grid { stroke: #d0d7de; }\n\
.ours { stroke: #0a7d4f; stroke-width: 2; }\n\
.word { fill: #0a7d4f; font-weight: 600; }\n\
.bar { stroke: #4c5fd5; stroke-width: 3; }\n\
.peer { fill: #4c5fd5; }\n\
@media (prefers-color-scheme: dark) {\n\
  .card { fill: #0d1117; stroke: #3d444d; }\n\
  text { fill: #e6edf3; }\n\
  .axis { fill: #9198a1; }\n\
  .grid { stroke: #3d444d; }\n\
  .ours { stroke: #3fb984; }\n\
  .word { fill: #3fb984; }\n\
  .bar { stroke: #9aa8ff; }\n\
  .peer { fill: #9aa8ff; }\n\
}\n";

/// Text inside an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The axis: powers of two from the first below every figure to the first above.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn around(factors: impl Iterator<Item = f64>) -> Axis {
        let logs: Vec<f64> = factors.map(f64::log2).collect();
        let low = logs.iter().copied().fold(0.0, f64::min).floor();
        let high = logs.iter().copied().fold(1.0, f64::max).ceil();
        Axis { low, high }
    }

    /// The position of a factor.
    fn x(&self, factor: f64) -> f64 {
        LEFT + (factor.log2() - self.low) / (self.high - self.low) * (RIGHT - LEFT)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        (self.low as i32..=self.high as i32).map(|power| f64::from(power).exp2())
    }
}

/// The picture.
pub(super) fn svg(headline: &Headline) -> String {
    let all = headline.jobs.iter().flat_map(|job| &job.peers);
    let axis = Axis::around(all.flat_map(|row| row.factor()));
    let lines: usize = headline.jobs.iter().map(|job| job.peers.len() + 1).sum();
    let bottom = TOP + lines as f64 * LINE + headline.jobs.len() as f64 * 6.0;
    let height = bottom + 34.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>Time of each peer as a multiple of ours</title>\n<style>\n{STYLE}</style>\n\
         <rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n",
        WIDTH - 1.0,
        height - 1.0
    );
    for tick in axis.ticks() {
        let (x, y) = (axis.x(tick), bottom + 16.0);
        out += &format!(
            "<text class=\"axis\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">×{tick}</text>\n"
        );
    }
    let one = axis.x(1.0);
    out += &format!("<text class=\"word\" x=\"{one:.1}\" y=\"32\" text-anchor=\"middle\">ours</text>\n");
    out += &format!(
        "<text class=\"axis\" x=\"{RIGHT}\" y=\"32\" text-anchor=\"end\">time of each peer / time of ours, logarithmic</text>\n"
    );
    let mut y = TOP;
    for job in &headline.jobs {
        y += LINE;
        let ours =
            job.peers.first().map_or(String::new(), |r| format!(", ours {}", amount(r, r.baseline_median)));
        out += &format!(
            "<text class=\"job\" x=\"14\" y=\"{y:.1}\">{}<tspan font-weight=\"400\">{}</tspan></text>\n",
            escaped(&job.label),
            escaped(&ours)
        );
        let (top, end) = (y + 5.0, y + 4.0 + job.peers.len() as f64 * LINE);
        for tick in axis.ticks() {
            let (x, class) = (axis.x(tick), if tick == 1.0 { "ours" } else { "grid" });
            out += &format!(
                "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{end:.1}\"/>\n"
            );
        }
        for row in &job.peers {
            y += LINE;
            let ratio = row.factor()[0];
            let (x, middle) = (axis.x(ratio), y - 4.5);
            out += &format!(
                "<text x=\"{}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>\n",
                LEFT - 10.0,
                escaped(&row.variant)
            );
            out += &format!(
                "<line class=\"bar\" x1=\"{one:.1}\" x2=\"{x:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\n\
                 <circle class=\"peer\" cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"4.5\"/>\n"
            );
            out += &format!("<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>\n", x.max(one) + 9.0, times(ratio));
        }
        y += 6.0;
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_stands_between_the_powers_of_two_around_it() {
        let axis = Axis::around([0.7, 5.0].into_iter());
        assert_eq!((axis.low, axis.high), (-1.0, 3.0));
        assert_eq!(axis.ticks().collect::<Vec<_>>(), [0.5, 1.0, 2.0, 4.0, 8.0]);
        assert!(axis.x(0.5) == LEFT && axis.x(8.0) == RIGHT && axis.x(2.0) > axis.x(1.0));
        // Without a slower or faster peer the axis still has a length.
        let flat = Axis::around([1.0].into_iter());
        assert!(flat.x(1.0) == LEFT && flat.x(2.0) == RIGHT);
    }

    #[test]
    fn names_from_records_are_escaped() {
        assert_eq!(escaped("a<b>&c"), "a&lt;b&gt;&amp;c");
    }
}
