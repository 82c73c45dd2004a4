//! Shows a screen that the user controls by keys. The terminal is as before when the screen ends: after a
//! key, a signal, an error or a panic.

use std::time::Instant;

use anyhow::{Context as _, Result};
use pageset_live::{Monitor, View};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;

use super::TopArgs;
use super::frame::{Frame, WIDTH_MIN};
use super::selection::Selection;
use crate::signals::{PATIENCE, Signals};

/// Minimum height of the terminal in lines: enough for three page sets and all other lines.
const HEIGHT_MIN: u16 = 18;

const HELP: &[&str] = &[
    "q, Ctrl-C   end",
    "f, space    freeze what is shown, or go on",
    "s           sort by change, count, time unchanged, or place",
    "z           one zone after the other, then all",
    "c           one CPU after the other, then all",
    "up, down    page sets above, below; also PgUp, PgDn, Home",
    "?           this page, or back",
    "",
    "`pageset top --help` explains every column.",
    "",
];

/// The next step of the program after the user has pressed a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Draw,
    End,
}

/// The state of the screen.
#[derive(Default)]
struct Screen {
    view: Option<View>,
    selection: Selection,
    is_frozen: bool,
    is_help: bool,
    /// Number of rows above the first visible row.
    scrolled: usize,
}

pub(super) fn run(args: &TopArgs, monitor: Monitor, signals: &Signals) -> Result<()> {
    // Use `try_init`, which also restores the terminal after a panic.
    let mut terminal = ratatui::try_init().context("the terminal cannot be used for a screen; use --once")?;
    let ended = watch(args, monitor, &mut terminal, signals);
    ratatui::restore();
    ended
}

fn watch(
    args: &TopArgs,
    mut monitor: Monitor,
    terminal: &mut DefaultTerminal,
    signals: &Signals,
) -> Result<()> {
    let mut screen = Screen::default();
    let mut due = Instant::now() + args.interval;
    loop {
        terminal.draw(|frame| screen.draw(frame))?;
        loop {
            if signals.has_come() {
                return Ok(());
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                due = Instant::now() + args.interval;
                screen.show(monitor.step()?);
                break;
            }
            if event::poll(left.min(PATIENCE))? {
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => match screen.press(key) {
                        Next::End => return Ok(()),
                        Next::Draw => break,
                    },
                    Event::Resize(..) => break,
                    _ => {}
                }
            }
        }
    }
}

impl Screen {
    /// Shows a new reading. While the screen is frozen, the program goes on reading, so that times and rates
    /// are right when the user ends the freeze.
    fn show(&mut self, view: View) {
        if !self.is_frozen {
            self.view = Some(view);
        }
    }

    fn press(&mut self, key: KeyEvent) -> Next {
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Next::End,
            KeyCode::Char('q') => return Next::End,
            KeyCode::Char('?') => self.is_help = !self.is_help,
            KeyCode::Char('f' | ' ') => self.is_frozen = !self.is_frozen,
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::Down => self.scrolled = self.scrolled.saturating_add(1),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            KeyCode::PageDown => self.scrolled = self.scrolled.saturating_add(10),
            KeyCode::Home => self.scrolled = 0,
            KeyCode::Char(choice @ ('s' | 'z' | 'c')) => {
                self.scrolled = 0;
                match (choice, &self.view) {
                    ('s', _) => self.selection.next_sort(),
                    ('z', Some(view)) => self.selection.next_zone(view),
                    ('c', Some(view)) => self.selection.next_cpu(view),
                    _ => {}
                }
            }
            _ => {}
        }
        Next::Draw
    }

    fn draw(&mut self, frame: &mut ratatui::Frame<'_>) {
        let area = frame.area();
        if usize::from(area.width) < WIDTH_MIN || area.height < HEIGHT_MIN {
            let lines = [
                "The terminal is too small.".to_owned(),
                format!("The screen needs {WIDTH_MIN} columns and {HEIGHT_MIN} lines."),
                "Make the terminal larger, or use --once.".to_owned(),
                "q ends.".to_owned(),
            ];
            frame.render_widget(text(&lines), area);
            return;
        }
        let [body, footer] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(area);
        let state = if self.is_frozen { "frozen" } else { "q end  ? help" };
        let footing = format!("{state}   {}", self.selection.text());
        frame.render_widget(Line::styled(footing, Style::new().add_modifier(Modifier::REVERSED)), footer);
        let Some(view) = &self.view else {
            frame.render_widget(Paragraph::new("reading ..."), body);
            return;
        };
        let width = usize::from(area.width);
        if self.is_help {
            let missing = view.missing.iter().flat_map(|sentence| pageset_report::wrap(sentence, width));
            let lines: Vec<_> = HELP.iter().map(|line| (*line).to_owned()).chain(missing).collect();
            frame.render_widget(text(&lines), body);
            return;
        }
        let lines = Frame::new(view, &self.selection, width);
        // The user can scroll to the last row, but not beyond the last row.
        self.scrolled = self.scrolled.min(lines.rows.len().saturating_sub(1));
        let shown = Frame { rows: lines.rows[self.scrolled..].to_vec(), ..lines };
        frame.render_widget(text(&shown.lines(body.height.into())), body);
    }
}

fn text(lines: &[String]) -> Paragraph<'_> {
    Paragraph::new(Text::from_iter(lines.iter().map(|line| Line::raw(line.as_str()))))
}

#[cfg(test)]
mod tests;
