//! The picture: what arrived over which network, and what the program saw of it.

use std::fmt::Write;

use bumpless_svg::{Anchor, Svg, escape};

use super::{NETWORKS, Run, Seen};
use crate::iprp::hosts::NAMES;

const STYLE: &str = include_str!("../../report/style.css");
const OWN: &str = "svg path { fill: none; stroke-width: 1.4; }\n\
    svg .a { stroke: var(--c1); } svg .b { stroke: var(--c2); }\n\
    svg .second { stroke-opacity: .28; } svg .lost { stroke: var(--bad); stroke-opacity: .55; }\n\
    .key .a { background: var(--c1); } .key .b { background: var(--c2); } .key .lost { background: var(--bad); }\n\
    .key .pale { opacity: .35; }\n";

/// Width of the drawing, and of what is beside it.
const WIDTH: f64 = 1060.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 16.0;
/// Height of a lane, and between two.
const LANE: f64 = 110.0;
const GAP: f64 = 34.0;
const TOP: f64 = 26.0;
/// Length of the strokes for what was lost.
const LOST: f64 = 12.0;
const CLASSES: [&str; NETWORKS] = ["a", "b"];

/// The whole page.
pub fn render(run: &Run) -> String {
    let (lost, doubled) = (run.lost(), run.doubled());
    let (class, headline) = match run.held() {
        true => ("good", "The stream survived the cut".to_owned()),
        false => ("bad", format!("{lost} datagrams lost, {doubled} doubled")),
    };
    let mut page = String::new();
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>iPRP: {}</title>\n<style>\n{STYLE}{OWN}</style></head><body><main>\n\
         <section class=\"verdict {class}\"><h1>{}</h1>\n<p>Two ordinary programs, which know nothing of it, exchanged {} \
         datagrams over two networks at once. Network A was cut in mid-stream, where neither host could see it.</p></section>\n",
        escape(&headline),
        escape(&headline),
        run.seen.len()
    );
    tiles(&mut page, run);
    let _ = write!(
        page,
        "<h2>What arrived over which network</h2>\n<div class=\"card\"><p>Each stroke is a datagram, as long as it took. Above, its copies on \
         each network: strong if it came first over that one, pale if it had come already, red if it was lost. Below, \
         what the receiving program got, in the colour of the network that brought it. What took longer than the scale, such as while this machine \
         stood still, ends at its top.</p>\n\
         <div class=\"key\"><span><i class=\"a\"></i>came first over A</span><span><i class=\"b\"></i>came first over B</span>\
         <span><i class=\"a pale\"></i><i class=\"b pale\"></i>had come already</span><span><i class=\"lost\"></i>lost</span></div>\n\
         <div class=\"scroll\">{}</div></div>\n\
         <footer>Made by <code>bumpless iprp demo</code>; <code>spec/iprp-lab.md</code> says what runs.</footer>\n</main></body></html>\n",
        drawing(run)
    );
    page
}

fn tiles(page: &mut String, run: &Run) {
    let mut tile = |figure: String, meaning: &str| {
        let _ = writeln!(
            page,
            "<div class=\"tile\"><b>{}</b><span>{}</span></div>",
            escape(&figure),
            escape(meaning)
        );
    };
    let (_, lost_on_a, first_on_a) = run.network(0);
    let (_, _, first_on_b) = run.network(1);
    tile(run.lost().to_string(), "datagrams that the program missed");
    tile(run.doubled().to_string(), "datagrams that it got twice");
    tile(lost_on_a.to_string(), "copies that the cut took");
    tile(
        format!("{first_on_a} / {first_on_b}"),
        "datagrams that came first over A / over B",
    );
    tile(
        format!("{:.1} ms", run.longest_gap_ms()),
        "longest time between two arrivals",
    );
    page.insert_str(
        page.find("<div class=\"tile\">").unwrap_or(page.len()),
        "<section class=\"tiles\">\n",
    );
    page.push_str("</section>\n");
}

fn drawing(run: &Run) -> String {
    let mut svg = Svg::default();
    let height = TOP + 3.0 * LANE + 2.0 * GAP + 40.0;
    let width = WIDTH - LEFT - RIGHT;
    let x = |ns: u64| LEFT + ns as f64 / run.length_ns.max(1) as f64 * width;
    // A stall of the machine must not press everything else to the ground.
    let mut delays: Vec<_> = run.seen.iter().filter_map(Seen::delay_ns).collect();
    delays.sort_unstable();
    let most = delays.get(delays.len() * 98 / 100).copied().unwrap_or(0);
    let scale_ns = (most as f64 / 1e6 * 1.3).ceil().max(1.0) * 1e6;
    let (from, to) = (x(run.cut_ns.0), x(run.cut_ns.1));
    svg.rect(
        "fault",
        (from, TOP - 8.0),
        (to - from, height - TOP - 24.0),
        "network A is cut",
    );
    svg.text(
        "name",
        (f64::midpoint(from, to), TOP - 12.0),
        Anchor::Middle,
        "network A is cut",
    );
    for lane in 0..3 {
        let ground = TOP + LANE + lane as f64 * (LANE + GAP);
        let up = |ns: u64| ground - (ns as f64 / scale_ns).min(1.0) * LANE;
        let title = NAMES.get(lane).filter(|_| lane < NETWORKS);
        let title = title.map_or("program".to_owned(), |name| format!("network {name}"));
        svg.text("name", (8.0, ground - LANE / 2.0), Anchor::Start, &title);
        svg.line("axis", (LEFT, ground), (WIDTH - RIGHT, ground));
        svg.line(
            "grid",
            (LEFT, ground - LANE),
            (WIDTH - RIGHT, ground - LANE),
        );
        let tick = format!("{:.0} ms", scale_ns / 1e6);
        svg.text("t", (LEFT - 6.0, ground - LANE + 4.0), Anchor::End, &tick);
        svg.text("t", (LEFT - 6.0, ground + 4.0), Anchor::End, "0");
        match CLASSES.get(lane) {
            Some(class) => network(&mut svg, run, (lane, class), ground, (&x, &up)),
            None => program(&mut svg, run, ground, (&x, &up)),
        }
    }
    let seconds = run.length_ns / 1_000_000_000;
    for second in 0..=seconds {
        let at = x(second * 1_000_000_000);
        svg.text(
            "t",
            (at, height - 8.0),
            Anchor::Middle,
            &format!("{second} s"),
        );
    }
    svg.finish(
        WIDTH,
        height,
        "datagrams over time, by network and at the program",
    )
}

/// Where a time is in the drawing, and how high a delay.
type Place<'a> = (&'a dyn Fn(u64) -> f64, &'a dyn Fn(u64) -> f64);

fn network(
    svg: &mut Svg,
    run: &Run,
    (network, class): (usize, &str),
    ground: f64,
    (x, up): Place<'_>,
) {
    let came = |is_first: bool| {
        let seen = run.seen.iter();
        let seen = seen.filter(move |it| (it.first() == Some(network)) == is_first);
        seen.filter_map(move |it| Some((x(it.at_ns), ground, up(it.copies[network].flatten()?))))
    };
    svg.strokes(&format!("{class} second"), came(false));
    svg.strokes(class, came(true));
    let lost = run
        .seen
        .iter()
        .filter(|it| it.copies[network] == Some(None));
    let lost = lost.map(|it| (x(it.at_ns), ground, ground - LOST));
    svg.strokes("lost", lost);
}

fn program(svg: &mut Svg, run: &Run, ground: f64, (x, up): Place<'_>) {
    for (network, class) in CLASSES.iter().enumerate() {
        let seen = run.seen.iter().filter(|it| it.first() == Some(network));
        let strokes = seen.filter_map(|it| Some((x(it.at_ns), ground, up(it.delay_ns()?))));
        svg.strokes(class, strokes);
    }
    for it in run.seen.iter().filter(|it| it.came.is_none()) {
        svg.cross("lost", (x(it.at_ns), ground - LOST));
    }
}
