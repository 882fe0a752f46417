//! One line for each outage, for whoever reckons with other tools.

use std::fmt::Write;

use crate::study::analysis::{LIMIT_US, Phase, Trips, phases};
use crate::study::result::{Run, Study};

/// Every outage as comma-separated values, microseconds.
pub fn csv(study: &Study) -> String {
    let mut text = String::from(
        "transport,backup,run,substation,path_us,cut_after_us,dead_us,switched_after_us,failover_us,through_max_us,through_messages,over_10_ms,lost,error,background_per_s,lost_before,lost_after\n",
    );
    for run in study
        .runs
        .iter()
        .filter(|run| run.over == "network" && run.backup != "none")
    {
        line(&mut text, run);
    }
    text
}

fn line(text: &mut String, run: &Run) {
    let all = phases(run);
    let chosen = |wanted: &[Phase]| -> Vec<Option<u32>> {
        let of = all.iter().zip(&run.rtt_us);
        of.filter(|(phase, _)| wanted.contains(phase))
            .map(|(_, us)| *us)
            .collect()
    };
    let failover = chosen(&[Phase::Failover]);
    let through = chosen(&[Phase::Failover, Phase::During]);
    let lost = |trips: &[Option<u32>]| trips.iter().filter(|us| us.is_none()).count();
    let whole = [Phase::Before, Phase::After].map(|phase| lost(&chosen(&[phase])));
    let lost = lost(&through);
    let trips = Trips::of(through.iter().flatten().copied());
    let told = |us: Option<u64>| us.map_or_else(String::new, |us| us.to_string());
    let answered: Option<Vec<u32>> = failover.into_iter().collect();
    let failover = answered.and_then(|it| it.into_iter().max()).map(u64::from);
    let cut = run.cut_ns.map(|ns| ns / 1000);
    let since_cut = |ns: Option<u64>| Some((ns? / 1000).saturating_sub(cut?));
    let error = run.error.as_deref().unwrap_or("").replace(['"', '\n'], " ");
    let _ = writeln!(
        text,
        "{},{},{},{},{},{},{},{},{},{},{},{},{lost},\"{error}\",{},{},{}",
        run.transport,
        run.backup,
        run.number,
        run.substation,
        run.path_us,
        told(cut),
        told(since_cut(run.healed_ns)),
        told(since_cut(run.switched_ns)),
        told(failover),
        told(trips.summary().map(|it| it.max)),
        through.len(),
        trips.above(LIMIT_US) + lost,
        run.background,
        whole[0],
        whole[1],
    );
}
