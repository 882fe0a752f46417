//! Figures and circumstances in words.

use crate::study::no_room;
use crate::study::result::{Background, Study};

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
    let settings = &study.settings;
    let background = match settings.background {
        0 => "without background traffic".to_owned(),
        each_second => {
            format!("without background traffic, then beside {each_second} messages a second")
        }
    };
    let broke_off = study.broke_off.as_ref();
    let broke_off = broke_off.map_or_else(String::new, |why| format!(". BROKEN OFF: {why}"));
    format!(
        "{}. {}. {} runs of each case, {} s each, {} side by side, {background}, seed {}; {}{}{broke_off}",
        study.head.told(),
        study.network.told(),
        settings.runs,
        settings.seconds,
        settings.side_by_side,
        settings.seed,
        study.head.took(),
        no_room(study.overflowed),
    )
}

/// What must be said of ways that outages are said not to have cut.
pub const fn reckoned(background: &Background) -> &'static str {
    match background.reckoned {
        true => {
            " Daemons decided over which ways: which of them outages cut is reckoned from the fewest hops, and may be others."
        }
        false => "",
    }
}
