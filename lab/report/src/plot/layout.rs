//! Computes the room for each part of a figure, in pixels.
//!
//! The width of text is a guess. A character is assumed to be 0.6 of the text's height wide, slightly more
//! than sans-serif fonts need.

use super::axis::{Range, Scale};
use super::{Figure, Mark, Panel};
use crate::wrap::{LongWord, wrap_with};

/// Height of the figure's title.
pub(super) const TITLE: i32 = 18;
/// Height of a panel's title and of the legend.
pub(super) const SUBTITLE: i32 = 13;
/// Height of labels, headings of axes and the caption.
pub(super) const SMALL: i32 = 11;
/// Height of a line, as a multiple of the text's height.
const LEADING: f64 = 1.5;
/// Free space around the figure.
pub(super) const MARGIN: i32 = 14;
/// Length of the line before a name in the legend.
pub(super) const SWATCH: i32 = 26;
/// Maximum length of a category's name, in characters. Names with more characters are cut.
pub(super) const CATEGORY_MAX: usize = 18;

/// The width that a text probably needs.
pub(super) fn width(characters: usize, height: i32) -> i32 {
    (characters as f64 * 0.6 * f64::from(height)).ceil() as i32
}

/// Height of a line of text, including the distance to the next line.
pub(super) fn line(height: i32) -> i32 {
    (f64::from(height) * LEADING).round() as i32
}

/// A rectangle. `x` increases to the right, and `y` downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) right: i32,
    pub(super) bottom: i32,
}

impl Area {
    pub(super) fn width(self) -> i32 {
        self.right - self.left
    }

    pub(super) fn height(self) -> i32 {
        self.bottom - self.top
    }
}

/// One entry of the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) text: String,
    /// Index of the name, which determines its colour.
    pub(super) look: usize,
    pub(super) is_published: bool,
    pub(super) mark: Mark,
    pub(super) left: i32,
    pub(super) top: i32,
}

/// The places of all parts.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    pub(super) title: Vec<String>,
    /// Names of series in the order of their colours.
    pub(super) names: Vec<String>,
    pub(super) legend: Vec<Entry>,
    pub(super) panels: Vec<Area>,
    /// The title of each panel, divided into lines.
    pub(super) panel_titles: Vec<Vec<String>>,
    pub(super) caption: Vec<String>,
    pub(super) caption_top: i32,
}

impl Layout {
    pub(super) fn of(figure: &Figure) -> Self {
        let (columns, panel_width, panel_height) = match figure.panels.len() {
            0 | 1 => (1, 760, 420),
            3 => (3, 330, 310),
            2..=4 => (2, 480, 340),
            _ => (3, 420, 310),
        };
        let columns_width = columns * panel_width;
        let width = columns_width + 2 * MARGIN;
        let panel_titles: Vec<_> =
            figure.panels.iter().map(|panel| wrap(&panel.title, panel_width - 20, SUBTITLE)).collect();
        // Panels in a row stand side by side, so all of them have the same room for the title.
        let title_lines = panel_titles.iter().map(Vec::len).max().unwrap_or(1).max(1);
        let panel_height = panel_height + (title_lines as i32 - 1) * line(SUBTITLE);
        let title = wrap(&figure.title, columns_width, TITLE);
        let legend_top = MARGIN + title.len() as i32 * line(TITLE) + 4;
        let names = names(figure);
        let (legend, legend_bottom) = legend(figure, &names, legend_top, width - MARGIN);
        let panels_top = legend_bottom + 8;
        let place = |index: usize| {
            let index = index as i32;
            let left = MARGIN + index % columns * panel_width;
            let top = panels_top + index / columns * panel_height;
            Area { left, top, right: left + panel_width - 8, bottom: top + panel_height - 8 }
        };
        let panels: Vec<_> = (0..figure.panels.len()).map(place).collect();
        let caption_top = panels.last().map_or(panels_top, |last| last.bottom) + 12;
        let caption: Vec<_> =
            figure.caption.iter().flat_map(|text| wrap(text, columns_width, SMALL)).collect();
        let height = caption_top + caption.len() as i32 * line(SMALL) + MARGIN;
        Self { width, height, title, names, legend, panels, panel_titles, caption, caption_top }
    }
}

impl Layout {
    /// Number of title lines above the plots of all panels.
    pub(super) fn title_lines(&self) -> usize {
        self.panel_titles.iter().map(Vec::len).max().unwrap_or(1)
    }
}

/// The names of series without duplicates, in order of appearance.
fn names(figure: &Figure) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for series in figure.panels.iter().flat_map(|panel| &panel.series) {
        if !names.contains(&series.name) {
            names.push(series.name.clone());
        }
    }
    names
}

/// Places the entries of the legend in lines, and returns them with the lower end of the last line.
fn legend(figure: &Figure, names: &[String], top: i32, right: i32) -> (Vec<Entry>, i32) {
    let mut entries: Vec<Entry> = Vec::new();
    let (mut left, mut top) = (MARGIN, top);
    for series in figure.panels.iter().flat_map(|panel| &panel.series) {
        let text = series.legend();
        if entries.iter().any(|entry| entry.text == text) {
            continue;
        }
        let needed = SWATCH + 6 + width(text.chars().count(), SUBTITLE) + 14;
        if left > MARGIN && left + needed > right {
            left = MARGIN;
            top += line(SUBTITLE);
        }
        let look = names.iter().position(|name| *name == series.name).unwrap_or(0);
        let is_published = series.origin == crate::Origin::Published;
        entries.push(Entry { text, look, is_published, mark: series.mark, left, top });
        left += needed;
    }
    (entries, top + line(SUBTITLE))
}

/// The parts inside a panel.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    /// The area between the axes.
    pub(super) plot: Area,
    pub(super) x: Range,
    pub(super) y: Range,
    /// Whether the labels of the x axis are turned upright.
    pub(super) is_turned: bool,
    /// Only every n-th tick of the x axis has a label.
    pub(super) x_every: usize,
}

impl Inside {
    /// Computes the parts inside a panel with this many title lines.
    pub(super) fn of(panel: &Panel, area: Area, title_lines: usize) -> Self {
        let points = || panel.series.iter().flat_map(|series| &series.points);
        let has_bars = panel.series.iter().any(|series| series.mark == Mark::Bars);
        let ys = points().flat_map(|point| {
            let range = point.range.map(|(low, high)| [low, high]);
            range.into_iter().flatten().chain([point.y])
        });
        // Bars begin at 0 if the axis includes 0.
        let zero = (has_bars && panel.y.scale == Scale::Linear).then_some(0.0);
        let y_ticks = usize::try_from(area.height() / 50).unwrap_or(1);
        let y = Range::of(&panel.y, ys.chain(zero), y_ticks);
        let left = area.left + line(SMALL) + width(y.label_length_max(), SMALL) + 10;
        let plot_width = area.right - 10 - left;
        let x_ticks = usize::try_from(plot_width / 70).unwrap_or(1);
        let x = Range::of(&panel.x, points().map(|point| point.x), x_ticks);
        let is_turned = width(x.label_length_sum(), SMALL) > plot_width;
        let label_height =
            if is_turned { width(x.label_length_max().min(CATEGORY_MAX), SMALL) + 6 } else { line(SMALL) };
        let upright = usize::try_from(plot_width / line(SMALL)).unwrap_or(1).max(1);
        let x_every = if is_turned { x.ticks.len().div_ceil(upright).max(1) } else { 1 };
        let top = area.top + title_lines as i32 * line(SUBTITLE) + 2;
        let bottom = area.bottom - label_height - 6 - line(SMALL);
        Self { plot: Area { left, top, right: area.right - 10, bottom }, x, y, is_turned, x_every }
    }

    pub(super) fn x_pixel(&self, value: f64) -> i32 {
        self.plot.left + (self.x.fraction(value) * f64::from(self.plot.width())).round() as i32
    }

    pub(super) fn y_pixel(&self, value: f64) -> i32 {
        self.plot.bottom - (self.y.fraction(value) * f64::from(self.plot.height())).round() as i32
    }
}

/// Divides the text into lines that probably fit. A word that is too long gets its own line.
pub(super) fn wrap(text: &str, room: i32, height: i32) -> Vec<String> {
    let fitting = (1..=text.chars().count()).take_while(|characters| width(*characters, height) <= room);
    let lines = wrap_with(text, fitting.last().unwrap_or(1), LongWord::Whole);
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

/// Returns the text, or its beginning if the text is too long.
pub(super) fn shorten(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(characters.saturating_sub(1)).collect();
    kept + "\u{2026}"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::plot::{Axis, Series};

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrap("one two three", width(7, SMALL), SMALL), ["one two", "three"]);
        assert_eq!(wrap("", 100, SMALL), Vec::<String>::new());
        assert_eq!(shorten("patch10", 7), "patch10");
        assert_eq!(shorten("patch10", 6), "patch\u{2026}");
    }

    #[test]
    fn panels_and_legend_do_not_overlap() {
        let mut figure = Figure::new("f");
        for index in 0..7 {
            let mut panel = Panel::new("p", Axis::linear("x", ""), Axis::linear("y", ""));
            let name = format!("a series with a rather long name {index}");
            panel.push(Series::new(name, Origin::Measured, Mark::Line, [(0.0, 0.0)]));
            figure.push(panel);
        }
        let layout = Layout::of(&figure);
        assert_eq!(layout.names.len(), 7);
        for (index, area) in layout.panels.iter().enumerate() {
            assert!(area.right <= layout.width && area.bottom <= layout.caption_top);
            for other in &layout.panels[..index] {
                assert!(other.right <= area.left || other.bottom <= area.top, "{other:?} {area:?}");
            }
        }
        for entry in &layout.legend {
            assert!(entry.top + SUBTITLE <= layout.panels[0].top, "{entry:?}");
        }
    }

    #[test]
    fn the_longest_title_makes_room_in_all_panels() {
        let mut figure = Figure::new("f");
        for title in
            ["short", "a title of so many words that no panel of a figure with three columns has room for it"]
        {
            figure.push(Panel::new(title, Axis::linear("x", ""), Axis::linear("y", "")));
        }
        let layout = Layout::of(&figure);
        assert_eq!(layout.panel_titles[1].join(" "), figure.panels[1].title);
        assert_eq!(layout.panel_titles.iter().map(Vec::len).max(), Some(2));
        assert_eq!(layout.title_lines(), 2);
    }

    #[test]
    fn many_long_categories_are_turned_and_thinned() {
        let names: Vec<_> = (0..100).map(|index| format!("machine {index}")).collect();
        let mut panel = Panel::new("p", Axis::categories("machine", names), Axis::linear("y", ""));
        panel.push(Series::new("s", Origin::Measured, Mark::Bars, [(0.0, 3.0)]));
        let inside = Inside::of(&panel, Area { left: 0, top: 0, right: 400, bottom: 300 }, 1);
        assert!(inside.is_turned && inside.x_every > 1);
        assert_eq!(inside.y.low, 0.0, "bars begin at 0");
    }
}
