//! Puts a figure on paper. The only file that knows the drawing library.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Range;
use super::colour::{Shape, look};
use super::layout::{
    Area, CATEGORY_MAX, Entry, Inside, Layout, MARGIN, SMALL, SUBTITLE, SWATCH, TITLE, line, shorten, width,
    wrap,
};
use super::{Figure, Mark, Panel, PlotError, Point, Series};
use crate::Origin;

type Paper<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), PlotError>;

const INK: RGBColor = RGBColor(40, 40, 40);
const GREY: RGBColor = RGBColor(110, 110, 110);
const GRID: RGBColor = RGBColor(225, 225, 225);
/// Part of a category that its bars fill.
const GROUP_WIDTH: f64 = 0.8;
/// Half the size of a point, in pixels.
const POINT: i32 = 3;
/// What SVG calls the size of a font is this much smaller than what the library calls it.
const FONT_SCALE: f64 = 1.24;

/// Draws a figure that `check` has accepted.
pub(super) fn draw(figure: &Figure) -> Result<String, PlotError> {
    let layout = Layout::of(figure);
    let mut svg = String::new();
    {
        let size = (layout.width.unsigned_abs(), layout.height.unsigned_abs());
        let paper = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        paper.fill(&WHITE).map_err(failed)?;
        let canvas = Canvas { paper: &paper };
        canvas.figure(figure, &layout)?;
        paper.present().map_err(failed)?;
    }
    Ok(svg)
}

fn failed(error: impl std::fmt::Display) -> PlotError {
    PlotError::Drawing { reason: error.to_string() }
}

/// How a text stands at its place.
#[derive(Clone, Copy)]
struct Lettering {
    height: i32,
    colour: RGBColor,
    anchor: Pos,
    is_turned: bool,
}

impl Lettering {
    fn new(height: i32, colour: RGBColor, horizontal: HPos, vertical: VPos) -> Self {
        Self { height, colour, anchor: Pos::new(horizontal, vertical), is_turned: false }
    }

    fn turned(mut self) -> Self {
        self.is_turned = true;
        self
    }
}

/// Colour, shape and kind of a series.
#[derive(Clone, Copy)]
struct Pen {
    colour: RGBColor,
    shape: Shape,
    is_published: bool,
}

impl Pen {
    fn new(index: usize, is_published: bool) -> Self {
        let ((red, green, blue), shape) = look(index);
        Self { colour: RGBColor(red, green, blue), shape, is_published }
    }
}

struct Canvas<'a, 'b> {
    paper: &'a Paper<'b>,
}

impl Canvas<'_, '_> {
    fn figure(&self, figure: &Figure, layout: &Layout) -> Drawn {
        let title = Lettering::new(TITLE, INK, HPos::Left, VPos::Top);
        for (index, text) in layout.title.iter().enumerate() {
            self.text(text, (MARGIN, MARGIN + index as i32 * line(TITLE)), title)?;
        }
        for entry in &layout.legend {
            self.legend(entry)?;
        }
        for (panel, area) in figure.panels.iter().zip(&layout.panels) {
            self.panel(panel, *area, &layout.names)?;
        }
        let caption = Lettering::new(SMALL, GREY, HPos::Left, VPos::Top);
        for (index, text) in layout.caption.iter().enumerate() {
            self.text(text, (MARGIN, layout.caption_top + index as i32 * line(SMALL)), caption)?;
        }
        Ok(())
    }

    fn legend(&self, entry: &Entry) -> Drawn {
        let pen = Pen::new(entry.look, entry.is_published);
        let middle = entry.top + SUBTITLE / 2;
        let (left, right) = (entry.left, entry.left + SWATCH);
        match entry.mark {
            Mark::Line => {
                self.line(&[(left, middle), (right, middle)], pen)?;
                self.point((i32::midpoint(left, right), middle), pen)?;
            }
            Mark::Points => self.point((i32::midpoint(left, right), middle), pen)?,
            Mark::Bars => self.bar([(left + 6, middle - 5), (right - 6, middle + 5)], pen)?,
        }
        let lettering = Lettering::new(SUBTITLE, INK, HPos::Left, VPos::Center);
        self.text(&entry.text, (right + 6, middle), lettering)
    }

    fn panel(&self, panel: &Panel, area: Area, names: &[String]) -> Drawn {
        let inside = Inside::of(panel, area);
        let plot = inside.plot;
        let title = wrap(&panel.title, plot.width(), SUBTITLE).into_iter().next().unwrap_or_default();
        let whole = title.len() == panel.title.len();
        let title = if whole { title } else { title + " \u{2026}" };
        self.text(&title, (plot.left, area.top), Lettering::new(SUBTITLE, INK, HPos::Left, VPos::Top))?;
        self.axes(&inside)?;
        let below = (i32::midpoint(plot.left, plot.right), area.bottom);
        let heading = Lettering::new(SMALL, INK, HPos::Center, VPos::Bottom);
        self.text(&panel.x.heading(), below, heading)?;
        let beside = (area.left, i32::midpoint(plot.top, plot.bottom));
        let upright = Lettering::new(SMALL, INK, HPos::Center, VPos::Top).turned();
        let room = (f64::from(plot.height()) / width(1, SMALL) as f64) as usize;
        self.text(&shorten(&panel.y.heading(), room), beside, upright)?;
        let bars = panel.series.iter().filter(|series| series.mark == Mark::Bars).count();
        let mut bar = 0;
        for series in &panel.series {
            let index = names.iter().position(|name| *name == series.name).unwrap_or(0);
            let pen = Pen::new(index, series.origin == Origin::Published);
            if series.mark == Mark::Bars {
                self.bars(&inside, series, pen, (bar, bars))?;
                bar += 1;
            } else {
                self.points(&inside, series, pen)?;
            }
        }
        Ok(())
    }

    fn axes(&self, inside: &Inside) -> Drawn {
        let Area { left, top, right, bottom } = inside.plot;
        let side = Lettering::new(SMALL, GREY, HPos::Right, VPos::Center);
        for tick in &inside.y.ticks {
            let y = inside.y_pixel(*tick);
            self.stroke(&[(left, y), (right, y)], GRID)?;
            self.text(&inside.y.label_of(*tick), (left - 5, y), side)?;
        }
        let below = if inside.is_turned {
            Lettering::new(SMALL, GREY, HPos::Right, VPos::Center).turned()
        } else {
            Lettering::new(SMALL, GREY, HPos::Center, VPos::Top)
        };
        for tick in inside.x.ticks.iter().step_by(inside.x_every) {
            let x = inside.x_pixel(*tick);
            self.stroke(&[(x, bottom), (x, bottom + 4)], GREY)?;
            self.text(&shorten(&inside.x.label_of(*tick), CATEGORY_MAX), (x, bottom + 6), below)?;
        }
        self.stroke(&[(left, top), (left, bottom), (right, bottom)], GREY)
    }

    fn points(&self, inside: &Inside, series: &Series, pen: Pen) -> Drawn {
        let place = |point: &Point| (inside.x_pixel(point.x), inside.y_pixel(point.y));
        let places: Vec<_> = series.points.iter().map(place).collect();
        if series.mark == Mark::Line {
            self.line(&places, pen)?;
        }
        for (point, place) in series.points.iter().zip(&places) {
            self.whisker(inside, point, place.0, pen)?;
            self.point(*place, pen)?;
        }
        Ok(())
    }

    /// The bars of series `index` of `count` in each category.
    fn bars(&self, inside: &Inside, series: &Series, pen: Pen, (index, count): (usize, usize)) -> Drawn {
        let each = GROUP_WIDTH / count as f64;
        let floor = inside.y_pixel(base(&inside.y));
        for point in &series.points {
            let left = point.x - GROUP_WIDTH / 2.0 + index as f64 * each;
            let (left, right) = (inside.x_pixel(left), inside.x_pixel(left + each));
            let top = inside.y_pixel(point.y);
            self.bar([(left, top.min(floor)), ((right - 1).max(left + 1), top.max(floor))], pen)?;
            self.whisker(inside, point, i32::midpoint(left, right), pen)?;
        }
        Ok(())
    }

    /// From the smallest to the largest run.
    fn whisker(&self, inside: &Inside, point: &Point, x: i32, pen: Pen) -> Drawn {
        let Some((low, high)) = point.range else { return Ok(()) };
        let (low, high) = (inside.y_pixel(low), inside.y_pixel(high));
        self.stroke(&[(x, low), (x, high)], pen.colour)?;
        self.stroke(&[(x - POINT, low), (x + POINT, low)], pen.colour)?;
        self.stroke(&[(x - POINT, high), (x + POINT, high)], pen.colour)
    }

    fn bar(&self, corners: [(i32, i32); 2], pen: Pen) -> Drawn {
        let alpha = if pen.is_published { 0.25 } else { 1.0 };
        self.paper.draw(&Rectangle::new(corners, pen.colour.mix(alpha).filled())).map_err(failed)?;
        self.paper.draw(&Rectangle::new(corners, pen.colour.stroke_width(1))).map_err(failed)
    }

    fn line(&self, places: &[(i32, i32)], pen: Pen) -> Drawn {
        let style = pen.colour.stroke_width(2);
        if pen.is_published {
            self.paper
                .draw(&plotters::element::DashedPathElement::new(places.to_vec(), 6, 4, style))
                .map_err(failed)
        } else {
            self.paper.draw(&PathElement::new(places.to_vec(), style)).map_err(failed)
        }
    }

    /// A point in the shape of its series, hollow if it is published.
    fn point(&self, place: (i32, i32), pen: Pen) -> Drawn {
        let (inner, outer) = (if pen.is_published { WHITE } else { pen.colour }, pen.colour.stroke_width(1));
        match pen.shape {
            Shape::Circle => {
                self.paper.draw(&Circle::new(place, POINT, inner.filled())).map_err(failed)?;
                self.paper.draw(&Circle::new(place, POINT, outer)).map_err(failed)
            }
            Shape::Triangle => {
                self.paper.draw(&TriangleMarker::new(place, POINT + 2, inner.filled())).map_err(failed)?;
                let (x, y) = place;
                let corners = [(x - 4, y + 3), (x + 4, y + 3), (x, y - 5), (x - 4, y + 3)];
                self.stroke(&corners, pen.colour)
            }
            Shape::Cross => self.paper.draw(&Cross::new(place, POINT, outer)).map_err(failed),
        }
    }

    fn stroke(&self, places: &[(i32, i32)], colour: RGBColor) -> Drawn {
        self.paper.draw(&PathElement::new(places.to_vec(), colour.stroke_width(1))).map_err(failed)
    }

    fn text(&self, text: &str, place: (i32, i32), lettering: Lettering) -> Drawn {
        // XML has no place for control characters.
        let text: String = text.chars().map(|c| if is_in_xml(c) { c } else { '\u{FFFD}' }).collect();
        let size = f64::from(lettering.height) * FONT_SCALE;
        let style = TextStyle::from(("sans-serif", size)).color(&lettering.colour).pos(lettering.anchor);
        let style = if lettering.is_turned { style.transform(FontTransform::Rotate270) } else { style };
        self.paper.draw(&Text::new(text, place, style)).map_err(failed)
    }
}

/// Where bars begin: at 0 if the axis has it.
fn base(axis: &Range) -> f64 {
    0.0_f64.clamp(axis.low, axis.high)
}

fn is_in_xml(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{FFFE}' | '\u{FFFF}')
}
