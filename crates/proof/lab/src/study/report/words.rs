//! Figures and circumstances in words.

use crate::study::result::Study;

/// Microseconds as milliseconds.
pub fn ms(us: impl Into<u64>) -> String {
    format!("{:.1}", us.into() as f64 / 1e3)
}

/// The same of what may be missing.
pub fn ms_or(us: Option<u32>) -> String {
    us.map_or_else(|| "-".to_owned(), ms)
}

/// Milliseconds of the paper.
pub fn paper(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))
}

/// Where and with what a study was made.
pub fn about(study: &Study) -> String {
    let host = &study.host;
    let network = &study.network;
    let settings = &study.settings;
    let commit = study.commit.as_deref().unwrap_or("no checkout");
    let complete = match study.complete {
        true => "",
        false => "; stopped before its end",
    };
    let delays = match network.delays.as_str() {
        "held" => "held at the host that a packet is for",
        "netem" => "by netem on each link",
        "nothing" => "none",
        _ => "LACKING, every link was instant",
    };
    format!(
        "Bumpless {} ({commit}), {} x {}, {}, load at the beginning {}. {} nodes and {} links, delays: {delays}. {} runs of each \
         case, {} s each, {} side by side, seed {}; {:.0} s{complete}",
        study.version,
        host.processors,
        host.processor,
        host.kernel,
        host.load,
        network.nodes,
        network.links,
        settings.runs,
        settings.seconds,
        settings.side_by_side,
        settings.seed,
        study.took_s,
    )
}
