//! What each kind of application needs, and what belongs to another kind.

use bumpless_base::Duration;

use super::field_drivers;
use super::field_security;
use super::programs;
use super::timing::ms;
use super::written_once::Writers;
use crate::file::ApplicationEntry;
use crate::model::{
    ApplicationKind, ENVELOPE_MAX, FieldDevices, FieldIo, Pid, QUADRUPLE_TANK_STATE_MAX,
    QuadrupleTank, SetPoint, Synthetic,
};
use crate::reader::Reader;
use crate::schema::{self, KindWord};
use crate::security::Security;

use KindWord::{Plc, Process, Synthetic as Stand, Wasm};

const PROGRAMS: &[KindWord] = &[Wasm, Process, Plc];

/// Fields that only some kinds have, and which these are.
const BELONGS: [(&str, &[KindWord]); 19] = [
    ("gain", &[KindWord::QuadrupleTank]),
    ("integral_s", &[KindWord::QuadrupleTank]),
    ("derivative_s", &[KindWord::QuadrupleTank]),
    ("time_scale", &[KindWord::QuadrupleTank]),
    ("set_points", &[KindWord::QuadrupleTank]),
    ("field", &[KindWord::QuadrupleTank, Wasm, Process, Plc]),
    ("size", &[Stand]),
    ("changed_share", &[Stand]),
    ("file", PROGRAMS),
    ("command", &[Process]),
    ("arguments", &[Process]),
    ("state_max", PROGRAMS),
    ("memory_max", PROGRAMS),
    ("engine", &[Wasm]),
    ("execute_limit_ms", PROGRAMS),
    ("on_program_fault", PROGRAMS),
    ("state", PROGRAMS),
    ("input", PROGRAMS),
    ("output", PROGRAMS),
];

const fn word(kind: KindWord) -> &'static str {
    match kind {
        KindWord::QuadrupleTank => "quadruple_tank",
        Stand => "synthetic",
        Wasm => "wasm",
        Process => "process",
        Plc => "plc",
    }
}

/// Most set points of one application.
const SET_POINTS_MAX: usize = 1000;
/// Levels without a set point, cm: the operating point of Johansson 2000, section 2.
const OPERATING_POINT_CM: (f64, f64) = (12.4, 12.7);
/// Johansson 2000, section 5: gains of 3.0 and 2.7 volt per volt with sensors of 0.5 V/cm.
const GAIN: [f64; 2] = [1.5, 1.35];
const INTEGRAL_S: [f64; 2] = [30.0, 40.0];
const CHANGED_SHARE: f64 = 0.1;

pub(crate) fn check(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    writers: &mut Writers,
) -> Option<ApplicationKind> {
    let place = &entry.fields.place;
    let kind = entry.fields.kind?;
    for (key, kinds) in BELONGS {
        if kinds.contains(&kind) || !place.has(key) {
            continue;
        }
        let words: Vec<_> = kinds.iter().map(|&kind| word(kind)).collect();
        let right = format!("remove it, or set kind = {:?}", words[0]);
        let wrong = format!("belongs to kind {}", words.join(", "));
        reader.wrong(place, key, wrong, right);
    }
    match kind {
        KindWord::QuadrupleTank => {
            writers.add_tank(reader, entry);
            quadruple_tank(reader, entry)
        }
        Stand => synthetic(reader, entry),
        Wasm | Process | Plc => {
            let program = programs::check(reader, entry, writers)?;
            Some(ApplicationKind::Program(Box::new(program)))
        }
    }
}

/// Bytes that a state of `kind` takes at most in its channel.
pub(crate) fn state_max(kind: &ApplicationKind) -> u32 {
    match kind {
        ApplicationKind::QuadrupleTank(_) => QUADRUPLE_TANK_STATE_MAX,
        ApplicationKind::Synthetic(synthetic) => synthetic.size.saturating_add(ENVELOPE_MAX),
        // The executor's envelope carries the outputs (F-18); the rest is for what a host adds.
        ApplicationKind::Program(program) => program
            .state_max
            .saturating_add(ENVELOPE_MAX + 8 * program.outputs.len() as u32),
    }
}

fn synthetic(reader: &mut Reader, entry: &ApplicationEntry) -> Option<ApplicationKind> {
    let fields = &entry.fields;
    let size = fields.size?;
    if size.is_none() && !reader.incomplete {
        let right = "give the bytes of state, such as 800 or \"40 kB\"";
        reader.wrong(
            &fields.place,
            "size",
            "is missing for kind synthetic",
            right,
        );
    }
    Some(ApplicationKind::Synthetic(Synthetic {
        size: u32::try_from(size?).ok()?,
        changed_share: fields.changed_share?.unwrap_or(CHANGED_SHARE),
    }))
}

fn quadruple_tank(reader: &mut Reader, entry: &ApplicationEntry) -> Option<ApplicationKind> {
    let fields = &entry.fields;
    let set_points = set_points(reader, entry);
    let gain = fields.gain?.unwrap_or(GAIN);
    let integral_s = fields.integral_s?.unwrap_or(INTEGRAL_S);
    let derivative_s = fields.derivative_s?.unwrap_or_default();
    let time_scale = fields.time_scale?.unwrap_or(1.0);
    // Zero switches the part off, which is an endless integral time.
    let integral_s = integral_s.map(|time| if time == 0.0 { f64::INFINITY } else { time });
    let pid = |i: usize| Pid {
        gain: gain[i],
        integral_s: integral_s[i],
        derivative_s: derivative_s[i],
    };
    Some(ApplicationKind::QuadrupleTank(QuadrupleTank {
        set_points: set_points?,
        loops: [pid(0), pid(1)],
        time_scale,
    }))
}

fn set_points(reader: &mut Reader, entry: &ApplicationEntry) -> Option<Vec<SetPoint>> {
    let given = &entry.set_points;
    if given.is_empty() {
        let (tank1_cm, tank2_cm) = OPERATING_POINT_CM;
        return Some(vec![SetPoint {
            at: Duration::ZERO,
            tank1_cm,
            tank2_cm,
        }]);
    }
    if let Some(first_beyond) = given.get(SET_POINTS_MAX) {
        let right = format!("give at most {SET_POINTS_MAX}");
        reader.wrong(
            &first_beyond.place,
            "",
            format!("is one of {}", given.len()),
            right,
        );
    }
    let mut last: Option<f64> = None;
    for point in given {
        let Some(at) = point.at else { continue };
        match last {
            None if at != 0.0 && given[0].at.is_some() => {
                let right = "begin with at_s = 0";
                reader.wrong(
                    &point.place,
                    "at_s",
                    format!("the first one is at {at} s"),
                    right,
                );
            }
            Some(last) if at <= last => {
                let wrong = format!("{at} s is not after {last} s, the one before");
                reader.wrong(
                    &point.place,
                    "at_s",
                    wrong,
                    "order them by time, each time once",
                );
            }
            _ => {}
        }
        last = Some(at);
    }
    let point = |point: &crate::schema::SetPoint| {
        // The range of the field keeps this far below 2^64 nanoseconds.
        let at = Duration::from_nanos((point.at? * 1e9).round() as u64);
        Some(SetPoint {
            at,
            tank1_cm: point.tank1?,
            tank2_cm: point.tank2?,
        })
    };
    given.iter().map(point).collect()
}

/// What a request takes of devices that answer at once, a switch or two away.
const NEAR_DEVICE: Duration = Duration::from_micros(500);

/// Inputs and outputs of the application; `Some(None)`: it has none and needs none.
pub(crate) fn field(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    packets: Option<&Security>,
) -> Option<Option<FieldIo>> {
    let place = &entry.fields.place;
    let Some(given) = &entry.field else {
        let needed = entry.fields.kind? == KindWord::QuadrupleTank && !place.has("field");
        if needed && !reader.incomplete {
            let right = "write [application.field] with the address of the process";
            reader.wrong(place, "field", "is missing for kind quadruple_tank", right);
        }
        return (!needed).then_some(None);
    };
    let timeout = match given.timeout {
        Some(Some(timeout)) => Some(timeout),
        Some(None) => entry.fields.period.map(|period| period / 4),
        None => None,
    };
    if let (Some(timeout), Some(period)) = (timeout, entry.fields.period)
        && timeout >= period
    {
        let wrong = format!(
            "{} ms is not below the period, {} ms",
            ms(timeout),
            ms(period)
        );
        reader.wrong(
            &given.place,
            "timeout_ms",
            wrong,
            "give at most a quarter of the period",
        );
    }
    given.kind?;
    let certificates = field_security::certificates(reader, (entry, given), packets);
    let devices = field_devices(reader, entry, given);
    Some(Some(FieldIo {
        devices: devices?,
        check_epoch: given.check_epoch?,
        on_failure: given.on_failure?,
        timeout: timeout?,
        round_trip_max: given
            .round_trip_max?
            .unwrap_or(NEAR_DEVICE.min(timeout? / 2)),
        certificates: certificates?,
    }))
}

fn field_devices(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    given: &schema::FieldIo,
) -> Option<FieldDevices> {
    if entry.fields.kind? == KindWord::QuadrupleTank {
        if given.place.has("device") {
            let right = "remove it; the address stands in [application.field]";
            reader.wrong(&given.place, "device", "belongs to programs", right);
        }
        let address = given.address?;
        let secured = field_security::of_tank(reader, given);
        if address.is_none() && !reader.incomplete {
            let right = "give the address of the process";
            reader.wrong(
                &given.place,
                "address",
                "is missing for kind quadruple_tank",
                right,
            );
        }
        return address
            .and(secured?)
            .map(|(address, security)| FieldDevices::Tank { address, security });
    }
    if given.place.has("address") {
        let right = "remove it, and write [[application.field.device]] for each device";
        reader.wrong(
            &given.place,
            "address",
            "belongs to kind quadruple_tank",
            right,
        );
    }
    let secured = field_security::of_devices(reader, (entry, given));
    field_drivers::field_devices(reader, entry, secured).map(FieldDevices::Program)
}
