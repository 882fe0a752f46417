//! Brings the logs of all processes together as one run.

use std::fs;
use std::path::Path;

use bumpless_base::Duration;
use bumpless_controller::QuadrupleTankParameters;
use bumpless_controller::plant::baseline::baseline;
use serde_json::json;

use super::DemoError;
use super::configuration::{NODES, PERIOD_MS, TIME_SCALE};
use super::laboratory::{Laboratory, Load};
use super::program::{self, Shown};
use crate::runlog::{
    EventKind, OwnProgram, Phase, PlantLog, Run, Sample, Stall, read_events, read_plant,
};

/// Ends the laboratory and gives what it left behind.
///
/// # Errors
/// If a log cannot be read.
pub fn gather(
    laboratory: &mut Laboratory,
    load: Load<'_>,
    phases: Vec<Phase>,
) -> Result<Run, DemoError> {
    let metered = laboratory.end();
    let plant = read_plant(&laboratory.plant_log()).map_err(DemoError::Log)?;
    let mut run = Run {
        nodes: NODES.map(String::from).to_vec(),
        period_ns: laboratory.config.applications[0].period.as_nanos(),
        deadline_ns: laboratory.config.applications[0].deadline.as_nanos(),
        lease_ns: laboratory.config.timing.lease.as_nanos(),
        plant_lines_lost: plant.lines_lost,
        events: std::mem::take(&mut laboratory.events),
        injected: laboratory.injected(),
        phases,
        ..Run::default()
    };
    for log in laboratory.node_logs() {
        run.events
            .extend(read_events(&log).map_err(DemoError::Log)?);
    }
    if let Load::Tank(tank) = load {
        run.baseline = computed(&plant, tank);
        let with_set_points = |(process_s, mut sample): (f64, Sample)| {
            sample.set_points = tank.set_points(process_s);
            sample
        };
        run.samples = plant.samples.into_iter().map(with_set_points).collect();
    }
    run.writes = plant.writes;
    run.reads = plant.reads;
    run.stalls = stalls(&run, metered);
    run.sort();
    if let Load::Program(shown) = load {
        run.program = Some(own_program(&run, shown)?);
    }
    write_down(&run, &laboratory.own_log())?;
    Ok(run)
}

/// The program, and its outputs beside those that it gives alone.
fn own_program(run: &Run, shown: &Shown) -> Result<OwnProgram, DemoError> {
    let mut subject = shown.subject.borrow_mut();
    let compared = program::compare(run, &mut subject, &shown.demo.inputs);
    let compared = compared.map_err(DemoError::Alone)?;
    let shape = subject.shape();
    Ok(OwnProgram {
        file: subject.file().display().to_string(),
        kind: subject.host().name(),
        sha256: subject.sha256().to_string(),
        inputs: shape.inputs,
        outputs: shape.outputs,
        state_bytes: shown.state_bytes,
        compared,
    })
}

/// Puts beside the other logs what only the laboratory knows, for whoever keeps them.
fn write_down(run: &Run, path: &Path) -> Result<(), DemoError> {
    let phases: Vec<_> = run
        .phases
        .iter()
        .map(|phase| {
            json!({
                "phase": phase.kind.id(),
                "from_ns": phase.from_ns,
                "to_ns": phase.to_ns,
                "fault_ns": phase.fault,
                "primary_before": run.node_name(phase.primary_before),
            })
        })
        .collect();
    let stalls: Vec<_> = run
        .stalls
        .iter()
        .map(|s| json!({"time_ns": s.time_ns, "length_ns": s.length_ns, "seen_by": s.seen_by}))
        .collect();
    let configurations = run.events.iter().filter_map(|event| match &event.kind {
        EventKind::InForce {
            fingerprint,
            change,
        } => Some(json!({
            "time_ns": event.time_ns,
            "node": event.node,
            "fingerprint": fingerprint,
            "change": change,
        })),
        _ => None,
    });
    let log = json!({
        "schema": "bumpless.laboratory/1",
        "phases": phases,
        "stalls": stalls,
        "configurations": configurations.collect::<Vec<_>>(),
    });
    fs::write(path, log.to_string())
        .map_err(|error| DemoError::system(path.display().to_string(), error))
}

/// The same run without networks, jitter and faults, placed on the plant's own time.
fn computed(plant: &PlantLog, tank: &QuadrupleTankParameters) -> Vec<Sample> {
    let (Some((first_s, first)), Some((last_s, _))) = (plant.samples.first(), plant.samples.last())
    else {
        return Vec::new();
    };
    let on_wall_ns = |process_s: f64| (process_s / TIME_SCALE * 1e9) as u64;
    let origin_ns = first.time_ns.saturating_sub(on_wall_ns(*first_s));
    let period = Duration::from_millis(PERIOD_MS);
    let length = Duration::from_nanos(on_wall_ns(*last_s)) + period * 2;
    baseline(tank, length, period)
        .into_iter()
        .map(|sample| Sample {
            time_ns: origin_ns + on_wall_ns(sample.process_s),
            levels: sample.levels,
            set_points: tank.set_points(sample.process_s),
        })
        .collect()
}

/// What the meter and the nodes saw of the machine's stalls.
fn stalls(run: &Run, metered: Vec<Stall>) -> Vec<Stall> {
    let logged = run.events.iter().filter_map(|event| match event.kind {
        EventKind::Stall { length_us } => Some(Stall {
            time_ns: event.time_ns,
            length_ns: (length_us * 1e3) as u64,
            seen_by: event.node.clone(),
        }),
        _ => None,
    });
    metered.into_iter().chain(logged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::configuration::controller;

    #[test]
    fn the_computed_run_lies_on_the_plants_time_and_moves_with_the_set_points() {
        let sample = |time_ns| Sample {
            time_ns,
            levels: [0.0; 4],
            set_points: [0.0; 2],
        };
        let plant = PlantLog {
            samples: vec![
                (20.0, sample(1_001_000_000_000)),
                (200.0, sample(1_010_000_000_000)),
            ],
            ..PlantLog::default()
        };
        let run = computed(&plant, &controller(&[(5.0, [1.0, 0.0])]));
        assert_eq!(run[0].time_ns, 1_000_000_000_000);
        assert!(run.last().unwrap().time_ns > 1_010_000_000_000);
        let at = |s: u64| {
            run.iter()
                .find(|r| r.time_ns >= (1000 + s) * 1_000_000_000)
                .unwrap()
        };
        let [rest, before, after] = [0, 4, 9].map(|s| at(s).levels[0]);
        assert!((before - rest).abs() < 1e-6, "{rest} {before}");
        assert!((0.8..1.3).contains(&(after - rest)), "{rest} {after}");
    }
}
