//! Tests plots. Plots must be well-formed, complete and reproducible, and a figure that cannot be drawn must
//! give an error.

use pageset_report::plot::{Axis, Figure, Mark, Panel, Point, Scale, Series};
use pageset_report::{Origin, Provenance, Seeds};
use proptest::prelude::*;

/// Returns the texts of the plot, in order of drawing.
fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).expect("a plot is well-formed");
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|node| node.text().unwrap_or_default().trim().to_owned()).collect()
}

fn count(svg: &str, tag: &str) -> usize {
    let document = roxmltree::Document::parse(svg).expect("a plot is well-formed");
    document.descendants().filter(|node| node.has_tag_name(tag)).count()
}

fn kbuild() -> Figure {
    let policies = ["base", "patch1", "patch3", "patch5", "patch7", "patch9", "patch10"];
    let published = [43.6, 40.3, 40.5, 37.9, 9.8, 9.4, 12.6];
    let ours = [43.0, 41.0, 40.0, 38.0, 12.0, 11.0, 14.0];
    let points = |values: [f64; 7]| values.into_iter().enumerate().map(|(x, y)| (x as f64, y));
    let mut panel = Panel::new(
        "kbuild",
        Axis::categories("policy", policies),
        Axis::from_zero("zone lock", "% of CPU time"),
    );
    panel.push(Series::new("zone lock", Origin::Published, Mark::Bars, points(published)));
    panel.push(Series::new("zone lock", Origin::Simulated, Mark::Bars, points(ours)));
    let mut figure = Figure::new("Time in the zone lock, kbuild");
    figure.push(panel);
    figure.note("Example values.");
    figure
}

fn batches() -> Figure {
    let mut figure = Figure::new("Contention moves from the zone lock to the LRU lock");
    for machine in ["Skylake-EX", "Broadwell-EX <4S> & \"more\""] {
        let mut panel =
            Panel::new(machine, Axis::log("batch", "pages"), Axis::from_zero("share of CPU time", "%"));
        let zone = [(31.0, 64.0), (63.0, 24.0), (127.0, 3.0), (511.0, 1.0)];
        panel.push(Series::new("zone", Origin::Published, Mark::Line, zone));
        let ours = zone.map(|(x, y)| Point { x, y: y * 0.8, range: Some((y * 0.7, y)) });
        panel.push(Series::new("zone", Origin::Simulated, Mark::Line, ours));
        panel.push(Series::new("LRU", Origin::Measured, Mark::Points, [(31.0, 8.0), (511.0, 69.0)]));
        figure.push(panel);
    }
    figure.with_provenance(&Provenance {
        command: "pageset reproduce batch-size".to_owned(),
        machine: "sim".to_owned(),
        seeds: Some(Seeds::one(1)),
        ..Provenance::default()
    })
}

#[test]
fn a_bar_chart_has_all_its_bars_and_names() {
    let svg = kbuild().to_svg().expect("the figure can be drawn");
    let texts = texts(&svg);
    for text in ["Time in the zone lock, kbuild", "zone lock (published)", "zone lock (simulated)"] {
        assert!(texts.iter().any(|found| found == text), "{text} in {texts:?}");
    }
    for text in ["base", "patch10", "policy", "zone lock (% of CPU time)", "40", "Example values."] {
        assert!(texts.iter().any(|found| found == text), "{text} in {texts:?}");
    }
    // Each series has 7 bars and one rectangle in the legend. The background is one more rectangle.
    assert_eq!(count(&svg, "rect"), 2 * (7 + 1) + 1);
}

#[test]
fn a_figure_has_a_title_for_readers_who_cannot_see_it_and_can_be_read_on_a_dark_page() {
    let svg = kbuild().to_svg().expect("the figure can be drawn");
    let document = roxmltree::Document::parse(&svg).unwrap();
    let first = document.root_element().first_element_child().unwrap();
    assert_eq!((first.tag_name().name(), first.text()), ("title", Some(kbuild().title())));
    let style = document.descendants().find(|node| node.has_tag_name("style")).unwrap().text().unwrap();
    assert!(style.trim().starts_with("@media(prefers-color-scheme:dark)"));
    // Each class must have a rule, and each dark colour must have a class.
    for node in document.descendants() {
        for class in node.attribute("class").unwrap_or_default().split(' ').filter(|class| !class.is_empty())
        {
            assert!(style.contains(&format!(".{class}{{")), "{class}");
        }
        for (attribute, suffix) in [("fill", ""), ("stroke", "s")] {
            if node.attribute(attribute) == Some("#282828") {
                assert!(
                    node.attribute("class")
                        .unwrap_or_default()
                        .split(' ')
                        .any(|class| class == format!("ink{suffix}"))
                );
            }
        }
    }
}

#[test]
fn panels_share_legend_and_caption() {
    let svg = batches().to_svg().expect("the figure can be drawn");
    let texts = texts(&svg);
    assert!(texts.iter().any(|text| text == "Broadwell-EX <4S> & \"more\""), "{texts:?}");
    assert_eq!(texts.iter().filter(|text| *text == "zone (published)").count(), 1);
    assert_eq!(texts.last().map(String::as_str), Some("seed: 1"));
    assert!(texts.iter().any(|text| text == "command: pageset reproduce batch-size"));
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    for (figure, golden) in [(kbuild(), "bars"), (batches(), "panels")] {
        let svg = figure.to_svg().expect("the figure can be drawn");
        let path = format!("{}/tests/plots/{golden}.svg", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("PLOTS").is_some_and(|value| value == "overwrite") {
            std::fs::write(&path, &svg).expect("the golden plot can be written");
        }
        let expected = std::fs::read_to_string(&path).expect("the golden plot is there");
        assert!(svg == expected, "{path} differs; PLOTS=overwrite renews it: look at the picture");
    }
}

fn axis() -> impl Strategy<Value = Axis> {
    let names = proptest::collection::vec(any::<String>(), 0..40);
    let scale = prop_oneof![
        Just(Scale::Linear),
        Just(Scale::FromZero),
        Just(Scale::Log),
        names.prop_map(Scale::Categories)
    ];
    (any::<String>(), any::<String>(), scale).prop_map(|(label, unit, scale)| Axis::new(label, unit, scale))
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1e3..1e3,
        4 => (0_u8..8).prop_map(f64::from),
        1 => prop::num::f64::ANY,
        1 => (prop::num::f64::NORMAL, -160.0..160.0).prop_map(|(value, power)| value.signum() * 10_f64.powf(power)),
    ]
}

fn series() -> impl Strategy<Value = Series> {
    let mark = prop_oneof![Just(Mark::Line), Just(Mark::Points), Just(Mark::Bars)];
    let origin = prop_oneof![Just(Origin::Published), Just(Origin::Simulated)];
    let range = prop::option::of((value(), value()));
    let point = (value(), value(), range).prop_map(|(x, y, range)| Point { x, y, range });
    (any::<String>(), origin, mark, prop::collection::vec(point, 0..6))
        .prop_map(|(name, origin, mark, points)| Series::new(name, origin, mark, points))
}

/// Regression test. The property test below found this case: a bar has width one, and an axis that ends at
/// 1e-12 is narrower.
#[test]
fn a_bar_that_is_wider_than_its_axis_is_drawn() {
    let mut panel = Panel::new("", Axis::new("", "", Scale::FromZero), Axis::new("", "", Scale::Linear));
    let point = Point { x: 6.742815976419253e-13, y: 0.0, range: None };
    panel.push(Series::new("", Origin::Published, Mark::Bars, vec![point]));
    let mut figure = Figure::new("");
    figure.push(panel);
    assert!(roxmltree::Document::parse(&figure.to_svg().unwrap()).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_figure_is_drawn_or_refused(
        title in any::<String>(),
        x in axis(),
        y in axis(),
        all in prop::collection::vec(series(), 0..4),
    ) {
        let mut panel = Panel::new(title.clone(), x, y);
        all.into_iter().for_each(|series| panel.push(series));
        let mut figure = Figure::new(title);
        figure.push(panel);
        if let Ok(svg) = figure.to_svg() {
            prop_assert!(roxmltree::Document::parse(&svg).is_ok());
        }
    }
}
