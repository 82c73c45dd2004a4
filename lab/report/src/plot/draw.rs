//! Draws a figure as SVG. Only this file uses the drawing library.

use svg::Document;
use svg::node::element::{Circle, Polygon, Polyline, Rectangle, Style, Text, Title};

use super::axis::Range;
use super::colour::{Shape, look};
use super::layout::{
    Area, CATEGORY_MAX, Entry, Inside, Layout, MARGIN, SMALL, SUBTITLE, SWATCH, TITLE, line, shorten, width,
};
use super::{Figure, Mark, Panel, Point, Series};
use crate::Origin;

/// Red, green, blue.
type Colour = (u8, u8, u8);

const BLACK: Colour = (0, 0, 0);
const WHITE: Colour = (255, 255, 255);
const INK: Colour = (40, 40, 40);
const GREY: Colour = (110, 110, 110);
const GRID: Colour = (225, 225, 225);
/// Style with the colours for dark pages. Attributes have the light colours, for viewers without styles.
const DARK: &str = "@media(prefers-color-scheme:dark){\
    .paper{fill:#16191d}.ink{fill:#e4e4e4}.grey{fill:#a5a5a5}\
    .inks{stroke:#e4e4e4}.greys{stroke:#a5a5a5}.grids{stroke:#3a3f45}.black{fill:#e4e4e4}.blacks{stroke:#e4e4e4}}";
/// The part of a category's width that its bars fill.
const GROUP_WIDTH: f64 = 0.8;
/// Half the size of a point, in pixels.
const POINT: i32 = 3;

/// Draws a figure that `check` has accepted.
pub(super) fn draw(figure: &Figure) -> String {
    let layout = Layout::of(figure);
    let paper = Document::new()
        .set("width", layout.width)
        .set("height", layout.height)
        .set("viewBox", (0, 0, layout.width, layout.height))
        .set("role", "img")
        .add(Title::new(in_xml(&figure.title)))
        .add(Style::new(DARK))
        .add(painted(rectangle([(0, 0), (layout.width, layout.height)]), Some(WHITE), None));
    let mut canvas = Canvas { paper };
    canvas.figure(figure, &layout);
    canvas.paper.to_string()
}

/// Horizontal alignment of a text.
#[derive(Clone, Copy)]
enum Across {
    Left,
    Center,
    Right,
}

/// Vertical alignment of a text.
#[derive(Clone, Copy)]
enum Down {
    Top,
    Center,
    Bottom,
}

/// The alignment and style of a text.
#[derive(Clone, Copy)]
struct Lettering {
    height: i32,
    colour: Colour,
    across: Across,
    down: Down,
    is_turned: bool,
}

impl Lettering {
    fn new(height: i32, colour: Colour, across: Across, down: Down) -> Self {
        Self { height, colour, across, down, is_turned: false }
    }

    fn turned(mut self) -> Self {
        self.is_turned = true;
        self
    }
}

/// Colour, shape and kind of a series.
#[derive(Clone, Copy)]
struct Pen {
    colour: Colour,
    shape: Shape,
    is_published: bool,
}

impl Pen {
    fn new(index: usize, is_published: bool) -> Self {
        let (colour, shape) = look(index);
        Self { colour, shape, is_published }
    }
}

struct Canvas {
    paper: Document,
}

impl Canvas {
    fn figure(&mut self, figure: &Figure, layout: &Layout) {
        let title = Lettering::new(TITLE, INK, Across::Left, Down::Top);
        for (index, text) in layout.title.iter().enumerate() {
            self.text(text, (MARGIN, MARGIN + index as i32 * line(TITLE)), title);
        }
        for entry in &layout.legend {
            self.legend(entry);
        }
        for (index, panel) in figure.panels.iter().enumerate() {
            self.panel(panel, index, layout);
        }
        let caption = Lettering::new(SMALL, GREY, Across::Left, Down::Top);
        for (index, text) in layout.caption.iter().enumerate() {
            self.text(text, (MARGIN, layout.caption_top + index as i32 * line(SMALL)), caption);
        }
    }

    fn legend(&mut self, entry: &Entry) {
        let pen = Pen::new(entry.look, entry.is_published);
        let middle = entry.top + SUBTITLE / 2;
        let (left, right) = (entry.left, entry.left + SWATCH);
        match entry.mark {
            Mark::Line => {
                self.line(&[(left, middle), (right, middle)], pen);
                self.point((i32::midpoint(left, right), middle), pen);
            }
            Mark::Points => self.point((i32::midpoint(left, right), middle), pen),
            Mark::Bars => self.bar([(left + 6, middle - 5), (right - 6, middle + 5)], pen),
        }
        let lettering = Lettering::new(SUBTITLE, INK, Across::Left, Down::Center);
        self.text(&entry.text, (right + 6, middle), lettering)
    }

    fn panel(&mut self, panel: &Panel, index: usize, layout: &Layout) {
        let (area, names) = (layout.panels[index], &layout.names);
        let inside = Inside::of(panel, area, layout.title_lines());
        let plot = inside.plot;
        let lettering = Lettering::new(SUBTITLE, INK, Across::Left, Down::Top);
        for (at, text) in layout.panel_titles[index].iter().enumerate() {
            self.text(text, (area.left + 4, area.top + at as i32 * line(SUBTITLE)), lettering);
        }
        self.axes(&inside);
        let below = (i32::midpoint(plot.left, plot.right), area.bottom);
        let heading = Lettering::new(SMALL, INK, Across::Center, Down::Bottom);
        self.text(&panel.x.heading(), below, heading);
        let beside = (area.left, i32::midpoint(plot.top, plot.bottom));
        let upright = Lettering::new(SMALL, INK, Across::Center, Down::Top).turned();
        let room = (f64::from(plot.height()) / width(1, SMALL) as f64) as usize;
        self.text(&shorten(&panel.y.heading(), room), beside, upright);
        let bars = panel.series.iter().filter(|series| series.mark == Mark::Bars).count();
        let mut bar = 0;
        for series in &panel.series {
            let index = names.iter().position(|name| *name == series.name).unwrap_or(0);
            let pen = Pen::new(index, series.origin == Origin::Published);
            if series.mark == Mark::Bars {
                self.bars(&inside, series, pen, (bar, bars));
                bar += 1;
            } else {
                self.points(&inside, series, pen);
            }
        }
    }

    fn axes(&mut self, inside: &Inside) {
        let Area { left, top, right, bottom } = inside.plot;
        let side = Lettering::new(SMALL, GREY, Across::Right, Down::Center);
        for tick in &inside.y.ticks {
            let y = inside.y_pixel(*tick);
            self.stroke(&[(left, y), (right, y)], GRID);
            self.text(&inside.y.label_of(*tick), (left - 5, y), side);
        }
        let below = if inside.is_turned {
            Lettering::new(SMALL, GREY, Across::Right, Down::Center).turned()
        } else {
            Lettering::new(SMALL, GREY, Across::Center, Down::Top)
        };
        for tick in inside.x.ticks.iter().step_by(inside.x_every) {
            let x = inside.x_pixel(*tick);
            self.stroke(&[(x, bottom), (x, bottom + 4)], GREY);
            self.text(&shorten(&inside.x.label_of(*tick), CATEGORY_MAX), (x, bottom + 6), below);
        }
        self.stroke(&[(left, top), (left, bottom), (right, bottom)], GREY)
    }

    fn points(&mut self, inside: &Inside, series: &Series, pen: Pen) {
        let place = |point: &Point| (inside.x_pixel(point.x), inside.y_pixel(point.y));
        let places: Vec<_> = series.points.iter().map(place).collect();
        if series.mark == Mark::Line {
            self.line(&places, pen);
        }
        for (point, place) in series.points.iter().zip(&places) {
            self.whisker(inside, point, place.0, pen);
            self.point(*place, pen);
        }
    }

    /// Draws the bars of one series in each category. `index` is the number of the series among `count`
    /// series.
    fn bars(&mut self, inside: &Inside, series: &Series, pen: Pen, (index, count): (usize, usize)) {
        let each = GROUP_WIDTH / count as f64;
        let floor = inside.y_pixel(base(&inside.y));
        for point in &series.points {
            let left = point.x - GROUP_WIDTH / 2.0 + index as f64 * each;
            let (left, right) = (inside.x_pixel(left), inside.x_pixel(left + each));
            let top = inside.y_pixel(point.y);
            self.bar([(left, top.min(floor)), ((right - 1).max(left + 1), top.max(floor))], pen);
            self.whisker(inside, point, i32::midpoint(left, right), pen);
        }
    }

    /// Draws a line from the smallest to the largest run.
    fn whisker(&mut self, inside: &Inside, point: &Point, x: i32, pen: Pen) {
        let Some((low, high)) = point.range else { return };
        let (low, high) = (inside.y_pixel(low), inside.y_pixel(high));
        self.stroke(&[(x, low), (x, high)], pen.colour);
        self.stroke(&[(x - POINT, low), (x + POINT, low)], pen.colour);
        self.stroke(&[(x - POINT, high), (x + POINT, high)], pen.colour)
    }

    fn bar(&mut self, corners: [(i32, i32); 2], pen: Pen) {
        let opacity = if pen.is_published { 0.25 } else { 1.0 };
        let bar = rectangle(corners).set("fill-opacity", opacity);
        self.put(painted(bar, Some(pen.colour), Some(pen.colour)));
    }

    fn line(&mut self, places: &[(i32, i32)], pen: Pen) {
        let line = path(places, pen.colour).set("stroke-width", 2);
        self.put(if pen.is_published { line.set("stroke-dasharray", "6,4") } else { line });
    }

    /// Draws a point in the shape of its series. Points of published values are hollow.
    fn point(&mut self, (x, y): (i32, i32), pen: Pen) {
        let (inner, outer) = (Some(if pen.is_published { WHITE } else { pen.colour }), Some(pen.colour));
        match pen.shape {
            Shape::Circle => {
                let circle = Circle::new().set("cx", x).set("cy", y).set("r", POINT);
                self.put(painted(circle, inner, outer));
            }
            Shape::Triangle => {
                let corners = [(x - 4, y + 3), (x + 4, y + 3), (x, y - 5)];
                let triangle = Polygon::new().set("points", points(&corners));
                self.put(painted(triangle, inner, outer));
            }
            Shape::Cross => {
                self.stroke(&[(x - POINT, y - POINT), (x + POINT, y + POINT)], pen.colour);
                self.stroke(&[(x - POINT, y + POINT), (x + POINT, y - POINT)], pen.colour);
            }
        }
    }

    fn stroke(&mut self, places: &[(i32, i32)], colour: Colour) {
        self.put(path(places, colour));
    }

    fn text(&mut self, text: &str, (x, y): (i32, i32), lettering: Lettering) {
        let anchor = match lettering.across {
            Across::Left => "start",
            Across::Center => "middle",
            Across::Right => "end",
        };
        let below = match lettering.down {
            Down::Top => "0.76em",
            Down::Center => "0.35em",
            Down::Bottom => "0",
        };
        let text = Text::new(in_xml(text))
            .set("x", x)
            .set("y", y)
            .set("dy", below)
            .set("text-anchor", anchor)
            .set("font-family", "sans-serif")
            .set("font-size", lettering.height);
        let text = painted(text, Some(lettering.colour), None);
        self.put(if lettering.is_turned {
            text.set("transform", format!("rotate(270, {x}, {y})"))
        } else {
            text
        });
    }

    fn put(&mut self, node: impl svg::Node) {
        svg::Node::append(&mut self.paper, node);
    }
}

fn rectangle([(left, top), (right, bottom)]: [(i32, i32); 2]) -> Rectangle {
    Rectangle::new().set("x", left).set("y", top).set("width", right - left).set("height", bottom - top)
}

fn path(places: &[(i32, i32)], colour: Colour) -> Polyline {
    painted(Polyline::new().set("points", points(places)).set("fill", "none"), None, Some(colour))
}

fn points(places: &[(i32, i32)]) -> String {
    let places: Vec<_> = places.iter().map(|(x, y)| format!("{x},{y}")).collect();
    places.join(" ")
}

/// Gives a node its colours, and the classes that change these colours on a dark page.
fn painted<N: svg::Node>(mut node: N, fill: Option<Colour>, stroke: Option<Colour>) -> N {
    let mut classes = Vec::new();
    for (attribute, colour, suffix) in [("fill", fill, ""), ("stroke", stroke, "s")] {
        let Some(colour) = colour else { continue };
        node.assign(attribute, css(colour));
        classes.extend(changes_when_dark(colour).map(|class| format!("{class}{suffix}")));
    }
    if !classes.is_empty() {
        node.assign("class", classes.join(" "));
    }
    node
}

/// The class of a colour that would be invisible or too bright on a dark page.
fn changes_when_dark(colour: Colour) -> Option<&'static str> {
    match colour {
        WHITE => Some("paper"),
        INK => Some("ink"),
        GREY => Some("grey"),
        GRID => Some("grid"),
        BLACK => Some("black"),
        _ => None,
    }
}

fn css((red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The value where bars begin: 0 if the axis includes 0, and otherwise the end of the axis that is nearest
/// to 0.
fn base(axis: &Range) -> f64 {
    0.0_f64.clamp(axis.low, axis.high)
}

/// Replaces control characters in the text by U+FFFD, because XML does not allow most of them.
fn in_xml(text: &str) -> String {
    text.chars().map(|c| if is_in_xml(c) { c } else { '\u{FFFD}' }).collect()
}

fn is_in_xml(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{FFFE}' | '\u{FFFF}')
}
