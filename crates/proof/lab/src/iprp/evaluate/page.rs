//! The report: one page that needs nothing else.

use std::fmt::Write;

use bumpless_svg::{Anchor, Svg, escape};

use super::{FIGURE_5, Results};

const STYLE: &str = include_str!("../../report/style.css");
const OWN: &str = "pre { overflow-x: auto; font: 12.5px/1.5 ui-monospace, \"DejaVu Sans Mono\", monospace; }\n\
    .bars td { vertical-align: top; padding: 4px 10px 4px 0; } .bars .yes { color: var(--good); } .bars .no { color: var(--bad); font-weight: bold; }\n\
    svg polyline { fill: none; stroke-width: 1.8; }\n\
    svg .a { stroke: var(--c1); } svg .b { stroke: var(--c2); } svg .least { stroke: var(--c4); stroke-dasharray: 5 4; } svg .iprp { stroke: var(--c3); }\n\
    .key .a { background: var(--c1); } .key .b { background: var(--c2); } .key .least { background: var(--c4); } .key .iprp { background: var(--c3); }\n";

const WIDTH: f64 = 1060.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 40.0;
/// Points of a curve.
const POINTS: usize = 200;
/// As far as the figure goes.
const LONGEST_MS: f64 = 20.0;

/// The whole page; `tables` in words.
pub fn render(results: &Results, tables: &str) -> String {
    let (class, headline) = match results.held() {
        true => (
            "good",
            "Losses are those of theory in every scenario, and what is promised besides was kept",
        ),
        false => ("bad", "Not everything is as theory says and as is promised"),
    };
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>iPRP: evaluation</title>\n<style>\n{STYLE}{OWN}</style></head><body><main>\n\
         <section class=\"verdict {class}\"><h1>{headline}</h1>\n<p>The evaluation of Popovic et al., <i>iPRP: The Parallel Redundancy Protocol for \
         IP Networks</i> (2016), IX, with its figures beside.</p></section>\n<div class=\"card\"><pre>{}</pre></div>\n",
        escape(tables)
    );
    if !results.bars.is_empty() {
        bars(&mut page, results);
    }
    if let Some(figure) = figure(results) {
        let _ = write!(
            page,
            "<h2>Delays of a datagram (figure 5)</h2>\n<div class=\"card\"><p>Which share took at most so long, in scenario 5.</p>\n\
             <div class=\"key\"><span><i class=\"a\"></i>network A</span><span><i class=\"b\"></i>network B</span>\
             <span><i class=\"least\"></i>the least of both: theory</span><span><i class=\"iprp\"></i>iPRP</span></div>\n\
             <div class=\"scroll\">{figure}</div></div>\n"
        );
    }
    let _ = writeln!(
        page,
        "<footer><code>{}</code></footer>\n</main></body></html>",
        escape(&results.settings.to_string())
    );
    page
}

/// What is promised, what was seen, and whether it was kept.
fn bars(page: &mut String, results: &Results) {
    page.push_str(
        "<h2>What is promised besides</h2>\n<div class=\"card scroll\"><table class=\"bars\"><tr><th>Kept</th><th>Promised</th><th>Seen</th>\
         <th>Excused by stalls</th></tr>\n",
    );
    for bar in &results.bars {
        let (class, kept) = if bar.held {
            ("yes", "yes")
        } else {
            ("no", "NO")
        };
        let _ = writeln!(
            page,
            "<tr id=\"{}\"><td class=\"held {class}\">{kept}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            bar.id,
            escape(&bar.promised),
            escape(&bar.seen),
            bar.stalled
        );
    }
    let (count, longest) = results.stalls;
    let _ = writeln!(
        page,
        "</table><p>This machine stood still {count} times for 2 ms or more meanwhile, {longest:.1} ms at the longest.</p></div>"
    );
}

fn figure(results: &Results) -> Option<String> {
    let measured = results
        .measured
        .iter()
        .find(|it| it.scenario.number == FIGURE_5)?;
    let all = || measured.samples.iter().flatten();
    let came = || all().filter(|it| it.delay_ns.is_some());
    let mut svg = Svg::default();
    let x = |ms: f64| LEFT + ms / LONGEST_MS * (WIDTH - LEFT - 20.0);
    let y = |share: f64| 10.0 + (1.0 - share) * (HEIGHT - BOTTOM - 10.0);
    for tenth in 0..=5 {
        let share = f64::from(tenth) / 5.0;
        svg.line("grid", (LEFT, y(share)), (WIDTH - 20.0, y(share)));
        svg.text(
            "t",
            (LEFT - 8.0, y(share) + 4.0),
            Anchor::End,
            &format!("{share:.1}"),
        );
    }
    for ms in (0..=LONGEST_MS as usize).step_by(5) {
        let at = (x(ms as f64), HEIGHT - BOTTOM + 20.0);
        svg.text("t", at, Anchor::Middle, &format!("{ms} ms"));
    }
    let mut curve = |class: &str, delays: Vec<u64>| {
        svg.polyline(
            class,
            distribution(delays)
                .into_iter()
                .map(|(ms, share)| (x(ms), y(share))),
        );
    };
    curve("a", all().filter_map(|it| it.copies[0]).collect());
    curve("b", all().filter_map(|it| it.copies[1]).collect());
    curve("iprp", came().filter_map(|it| it.delay_ns).collect());
    curve(
        "least",
        came()
            .filter_map(|it| it.copies.iter().flatten().min().copied())
            .collect(),
    );
    Some(svg.finish(
        WIDTH,
        HEIGHT,
        "distribution of delays by network, in theory and with iPRP",
    ))
}

/// Points of a distribution: milliseconds, and the share that is not above.
fn distribution(mut delays: Vec<u64>) -> Vec<(f64, f64)> {
    delays.sort_unstable();
    let count = delays.len();
    let point = |at: usize| {
        let index = (at * count.saturating_sub(1)) / POINTS;
        let ms = *delays.get(index)? as f64 / 1e6;
        (ms <= LONGEST_MS).then_some((ms, (index + 1) as f64 / count as f64))
    };
    (0..=POINTS).filter_map(point).collect()
}
