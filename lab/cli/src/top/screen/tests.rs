//! Tests which characters the screen shows of a sample view.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::sample;
use super::*;

/// Draws the screen, and returns its lines without spaces at their ends.
fn drawn(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn pressed(screen: &mut Screen, keys: &str) -> Next {
    keys.chars().fold(Next::Draw, |_, key| screen.press(KeyEvent::from(KeyCode::Char(key))))
}

fn screen_of(cpus: u32) -> Screen {
    Screen { view: Some(sample::view(cpus)), ..Screen::default() }
}

#[track_caller]
fn expect(screen: &mut Screen, expected: &str) {
    let found = drawn(screen, 80, 24).join("\n");
    assert_eq!(found.trim_end(), expected.trim_end(), "found:\n{found}");
}

#[test]
fn two_cpus() {
    expect(&mut screen_of(2), include_str!("two_cpus.txt"));
}

#[test]
fn sixty_four_cpus() {
    expect(&mut screen_of(64), include_str!("sixty_four_cpus.txt"));
}

#[test]
fn keys_choose_and_scroll() {
    let mut screen = screen_of(64);
    assert_eq!(pressed(&mut screen, "sz"), Next::Draw);
    assert!(drawn(&mut screen, 80, 24)[23].ends_with("zone 0 DMA32, all CPUs, by count"));
    for _ in 0..1000 {
        screen.press(KeyEvent::from(KeyCode::PageDown));
    }
    let lines = drawn(&mut screen, 80, 24);
    assert!(lines.iter().any(|line| line.starts_with("   0  DMA32   63 ")), "{lines:#?}");
    assert_eq!(pressed(&mut screen, "q"), Next::End);
    assert_eq!(screen.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Next::End);
}

#[test]
fn a_frozen_screen_keeps_its_view() {
    let mut screen = screen_of(2);
    pressed(&mut screen, "f");
    screen.show(sample::view(3));
    assert_eq!(screen.view.as_ref().unwrap().totals.cpus, 2);
    pressed(&mut screen, " ");
    screen.show(sample::view(3));
    assert_eq!(screen.view.as_ref().unwrap().totals.cpus, 3);
}

#[test]
fn help_says_what_is_missing() {
    let mut screen = screen_of(2);
    pressed(&mut screen, "?");
    let lines = drawn(&mut screen, 80, 24);
    assert!(lines[0].starts_with("q, Ctrl-C"));
    assert!(lines.contains(&"No time is measured.".to_owned()), "{lines:#?}");
}

#[test]
fn any_size_is_drawn() {
    for width in [1, 2, 59, 60, 80, 200] {
        for height in [1, 2, 17, 18, 100] {
            for cpus in [1, 64] {
                let lines = drawn(&mut screen_of(cpus), width, height);
                let is_small = lines[0].starts_with("The terminal"[..12.min(width.into())].trim_end());
                assert_eq!(is_small, width < 60 || height < 18, "{width}x{height}");
            }
        }
    }
    assert_eq!(drawn(&mut Screen::default(), 80, 24)[0], "reading ...");
}
