//! A plot of lines as SVG over sizes that grow by powers of ten.

use std::fmt::Write;

use crate::plot::{STYLE, escaped};

/// One line.
pub(crate) struct Curve {
    pub(crate) label: String,
    /// Size and value, by size.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Lines on one scale, and a limit as a dashed line.
pub(crate) struct LinePlot {
    pub(crate) title: &'static str,
    pub(crate) limit: f64,
    pub(crate) curves: Vec<Curve>,
}

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 560.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 380.0;
/// Lines of the legend below each other.
const LINE_HEIGHT: f64 = 22.0;

impl LinePlot {
    pub(crate) fn to_svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let most = points().map(|point| point.1).fold(self.limit, f64::max) * 1.05;
        let (first, last) =
            points().map(|point| point.0.log10()).fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
        let span = (last - first).max(1.0);
        let x = |size: f64| LEFT + (size.log10() - first) / span * (RIGHT - LEFT);
        let y = |value: f64| BOTTOM - value / most * (BOTTOM - TOP);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}path{{fill:none;stroke-width:2}}.d{{stroke:#9aa4ae;stroke-dasharray:4 4}}</style>\n<text class=\"t\" x=\"8\" y=\"22\">{title}</text>\n<path class=\"d\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/><text class=\"n\" x=\"8\" y=\"{at:.1}\">{limit}</text>\n<path class=\"d\" d=\"M{LEFT} {one:.1}H{RIGHT}\"/><text class=\"n\" x=\"8\" y=\"{one:.1}\">1</text>\n",
            title = escaped(self.title),
            limit = self.limit,
            at = y(self.limit),
            one = y(1.0),
        );
        let written = "a string takes everything";
        let mut power = first.ceil();
        while first <= power && power <= last {
            let size = 10_f64.powf(power);
            writeln!(svg, "<text class=\"n\" x=\"{:.1}\" y=\"400\" text-anchor=\"middle\">{size}</text>", x(size))
                .expect(written);
            power += 1.0;
        }
        for (number, curve) in self.curves.iter().enumerate() {
            let color = format!("hsl({} 65% 50%)", number * 360 / self.curves.len());
            let path: Vec<_> =
                curve.points.iter().map(|&(size, value)| format!("{:.1} {:.1}", x(size), y(value))).collect();
            let base = TOP + number as f64 * LINE_HEIGHT;
            writeln!(
                svg,
                "<path stroke=\"{color}\" d=\"M{}\"/><path stroke=\"{color}\" d=\"M{} {:.1}h16\"/><text x=\"{}\" y=\"{base}\">{}</text>",
                path.join("L"),
                RIGHT + 12.0,
                base - 4.0,
                RIGHT + 34.0,
                escaped(&curve.label)
            )
            .expect(written);
        }
        svg + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_the_smallest_size_to_the_largest() {
        let curve = Curve { label: "a & b".to_owned(), points: vec![(1000.0, 1.0), (1_000_000.0, 2.0)] };
        let svg = LinePlot { title: "some", limit: 2.0, curves: vec![curve] }.to_svg();
        assert!(svg.contains("d=\"M40.0 222.9L560.0 65.7\""), "{svg}");
        assert!(svg.contains("a &amp; b") && svg.contains(">1000000</text>"));
    }
}
