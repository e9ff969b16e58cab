//! A plot as SVG: lines through measured points, both axes logarithmic.

use std::fmt::Write as _;

/// What is measured of one database: pairs of how many objects there are, and the figure.
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// Told apart without colours by their dashes, too.
const LINES: [(&str, &str); 3] = [("#1f6feb", "none"), ("#d1242f", "6 3"), ("#57606a", "2 2")];

/// From the power of ten below all values to the one above.
struct Axis {
    from: f64,
    to: f64,
    begin: f64,
    length: f64,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64> + Clone, begin: f64, length: f64) -> Self {
        let from = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let to = values.fold(0.0, f64::max).log10().ceil();
        Axis { from, to: to.max(from + 1.0), begin, length }
    }

    fn at(&self, value: f64) -> f64 {
        self.begin + (value.log10() - self.from) / (self.to - self.from) * self.length
    }

    fn powers(&self) -> impl Iterator<Item = f64> + use<> {
        (self.from as i32..=self.to as i32).map(|power| 10_f64.powi(power))
    }
}

/// `unit` is that of the figures. Nothing is drawn of what is not above 0.
pub fn plot(title: &str, unit: &str, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|series| &series.points).filter(|(_, figure)| *figure > 0.0);
    let x = Axis::of(points().map(|(objects, _)| *objects), LEFT, WIDTH - LEFT - RIGHT);
    let y = Axis::of(points().map(|(_, figure)| *figure), HEIGHT - BOTTOM, TOP + BOTTOM - HEIGHT);
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/><text x="{LEFT}" y="20" font-size="14">{title}, {unit}</text>"#
    );
    let mut draw = |text: std::fmt::Arguments<'_>| _ = svg.write_fmt(text);
    for objects in x.powers() {
        let at = x.at(objects);
        draw(format_args!(r##"<path d="M{at:.1} {TOP}V{}" stroke="#d0d7de"/>"##, HEIGHT - BOTTOM));
        draw(format_args!(r#"<text x="{at:.1}" y="{}" text-anchor="middle">{objects}</text>"#, HEIGHT - BOTTOM + 18.0));
    }
    for figure in y.powers() {
        let at = y.at(figure);
        draw(format_args!(r##"<path d="M{LEFT} {at:.1}H{}" stroke="#d0d7de"/>"##, WIDTH - RIGHT));
        draw(format_args!(r#"<text x="{}" y="{:.1}" text-anchor="end">{figure}</text>"#, LEFT - 6.0, at + 4.0));
    }
    draw(format_args!(r#"<text x="{}" y="{}" text-anchor="middle">objects</text>"#, WIDTH / 2.0, HEIGHT - 10.0));
    for (at, series) in series.iter().enumerate() {
        let (colour, dashes) = LINES[at % LINES.len()];
        let drawn = series.points.iter().filter(|(_, figure)| *figure > 0.0);
        let places: Vec<String> =
            drawn.map(|(objects, figure)| format!("{:.1},{:.1}", x.at(*objects), y.at(*figure))).collect();
        let places = places.join(" ");
        draw(format_args!(
            r#"<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>"#
        ));
        let (from, line) = (WIDTH - RIGHT - 110.0, TOP + 14.0 + 18.0 * at as f64);
        draw(format_args!(
            r#"<path d="M{from} {line}h24" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/><text x="{}" y="{}">{}</text>"#,
            from + 30.0,
            line + 4.0,
            series.name
        ));
    }
    svg.push_str("</svg>\n");
    svg
}
