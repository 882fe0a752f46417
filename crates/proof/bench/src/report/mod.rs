//! A run for people: tables in the paper's layout with the paper's figures beside them, the bars that our
//! transfer is to reach, and plots like the paper's.

mod bar;
mod bars;
mod busy;
mod chart;
mod figures;
mod loads;
mod maxima;
pub mod page;
mod protection;
mod ramp;
pub mod table;
mod transfers;
mod units;

use crate::output_folder::OutputFolder;
use crate::result::Run;
use table::Table;

/// Every table, in order.
fn tables(run: &Run) -> Vec<Table> {
    let mut tables = vec![peers(run)];
    tables.extend(bars::table(run));
    tables.extend(Some(maxima::table(run)).filter(|table| !table.is_empty()));
    tables.extend(transfers::ratios(run));
    tables.extend(loads::tables(run));
    tables.extend(transfers::tables(run));
    tables
}

/// The whole run as text.
pub fn text(run: &Run) -> String {
    let mut text = about(run);
    text.push('\n');
    for table in tables(run) {
        text.push('\n');
        text.push_str(&table.text());
    }
    text
}

/// Where and with what the run was made.
fn about(run: &Run) -> String {
    let host = &run.host;
    let commit = run.commit.as_deref().unwrap_or("no checkout");
    let complete = if run.complete {
        ""
    } else {
        "; stopped before its end"
    };
    let awake = match host.wake_latency_us {
        None => String::new(),
        Some(0) => ", processors kept awake".into(),
        Some(micros) => format!(", processors waking within {micros} us"),
    };
    format!(
        "Bumpless {} ({commit}), {}, {} x {}, {}{awake}, load at the beginning {}; {:.0} s{complete}",
        run.version, run.place, host.processors, host.processor, host.kernel, host.load, run.took_s
    )
}

fn peers(run: &Run) -> Table {
    let mut table = Table::new(
        "What was measured",
        &["peer", "networks", "version", "settings"],
    );
    table.words = true;
    for peer in &run.peers {
        let settings = match &peer.error {
            Some(error) => format!("not measured: {error}"),
            None => peer.settings.clone(),
        };
        table.row([
            peer.name.clone(),
            peer.networks.to_string(),
            peer.version.clone(),
            settings,
        ]);
    }
    table
}

/// Writes `run.json`, `tables.txt`, `report.html` and each figure into `folder`.
///
/// # Errors
/// A file cannot be written.
pub fn write(run: &Run, folder: &OutputFolder) -> Result<(), String> {
    let json = serde_json::to_string(run).map_err(|error| error.to_string())?;
    let mut files = vec![
        ("run.json".to_owned(), json),
        ("tables.txt".to_owned(), text(run)),
        ("report.html".to_owned(), page::render(run)),
    ];
    for figure in figures::all(run) {
        files.push((format!("{}.svg", figure.file), figure.alone()));
    }
    folder.write(files)
}

#[cfg(test)]
mod tests;
