//! A plot of bars as SVG, written by hand: small, and legible on light and on dark ground.

use std::fmt::Write;

/// One bar.
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) value: f64,
    /// What stands behind it.
    pub(crate) text: String,
    pub(crate) ours: bool,
}

/// Bars below each other, on one scale.
pub(crate) struct Plot<'a> {
    pub(crate) title: &'a str,
    pub(crate) bars: Vec<Bar>,
}

const WIDTH: usize = 920;
/// Where the bars begin and where the longest ends.
const LEFT: usize = 300;
const RIGHT: usize = 640;
const LINE_HEIGHT: usize = 22;
const TOP: usize = 40;

pub(crate) const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1f2328}.t{font-size:15px;font-weight:600}.n{fill:#59636e}\
    .o{fill:#1f6feb}.p{fill:#9aa4ae}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.n{fill:#9198a1}.o{fill:#4493f8}.p{fill:#656c76}}";

impl Plot<'_> {
    pub(crate) fn to_svg(&self) -> String {
        let height = TOP + self.bars.len() * LINE_HEIGHT + 10;
        let longest = self.bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n<text class=\"t\" x=\"8\" y=\"22\">{title}</text>\n",
            title = escaped(self.title)
        );
        for (number, bar) in self.bars.iter().enumerate() {
            let top = TOP + number * LINE_HEIGHT;
            let width = (bar.value / longest * (RIGHT - LEFT) as f64).max(1.0);
            let class = if bar.ours { "o" } else { "p" };
            let written = writeln!(
                svg,
                "<text x=\"{}\" y=\"{base}\" text-anchor=\"end\">{}</text><rect class=\"{class}\" x=\"{LEFT}\" y=\"{top}\" width=\"{width:.1}\" height=\"15\" rx=\"2\"/><text class=\"n\" x=\"{:.1}\" y=\"{base}\">{}</text>",
                LEFT - 8,
                escaped(&bar.label),
                LEFT as f64 + width + 6.0,
                escaped(&bar.text),
                base = top + 12,
            );
            written.expect("a string takes everything");
        }
        svg + "</svg>\n"
    }
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_a_bar_for_each_and_escapes_what_it_is_given() {
        let bar =
            |label: &str, value| Bar { label: label.to_owned(), value, text: "5 < 6".to_owned(), ours: value > 1.0 };
        let svg = Plot { title: "A & B", bars: vec![bar("one", 1.0), bar("two", 2.0)] }.to_svg();
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains("A &amp; B") && svg.contains("5 &lt; 6"));
        assert!(svg.contains("width=\"340.0\"") && svg.contains("width=\"170.0\""), "the longest takes all the room");
    }
}
