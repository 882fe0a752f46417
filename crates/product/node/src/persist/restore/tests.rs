use super::*;
use bumpless_config::Config;
use bumpless_controller::state::encode_envelope;

use bumpless_controller::retain::Record;

use crate::persist::format::{StateFile, encode};
use crate::program::build;

const PAIR: u32 = 77;
/// When the state was published, nanoseconds since 1970.
const PUBLISHED: u64 = 1_800_000_000_000_000_000;
const MS: u64 = 1_000_000;

fn settings() -> config::Application {
    let path = format!(
        "{}/../../../examples/quadruple-tank.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let config = Config::load(path.as_ref()).unwrap();
    config.applications[0].clone()
}

/// A state of the quadruple tank as its executor publishes it.
fn state(settings: &config::Application, progress: Progress) -> Vec<u8> {
    let application = build(settings).unwrap();
    let mut state = vec![0; 1000];
    let head = encode_envelope(progress, &[1.0, 2.0], &mut state).unwrap();
    let len = head + application.save(&mut state[head..]);
    state.truncate(len);
    state
}

const PROGRESS: Progress = Progress {
    epoch: bumpless_base::Epoch(4),
    cycle: 41,
};

/// The file of `settings`, with something changed.
fn file(settings: &config::Application, change: impl FnOnce(&mut StateFile<'_>)) -> Vec<u8> {
    let state = state(settings, PROGRESS);
    let mut file = StateFile {
        pair: PAIR,
        program: settings.program(),
        application: &settings.name,
        progress: PROGRESS,
        published_ns: PUBLISHED,
        state: &state,
        retained: Record::parse(RECORD).unwrap(),
    };
    change(&mut file);
    let mut bytes = Vec::new();
    encode(&file, &mut bytes);
    bytes
}

fn judged(bytes: &[u8], age_ms: i64) -> Result<Restored, Refusal> {
    judged_with_record(bytes, age_ms).state
}

fn judged_with_record(bytes: &[u8], age_ms: i64) -> Judged {
    let now = PUBLISHED.saturating_add_signed(age_ms * MS as i64);
    judge(bytes, (PAIR, &settings()), now, &|| true)
}

/// One variable.
const RECORD: &[u8] = b"\x05COUNT\x03INT\0\0\0\x02\x2a\0";

fn refused(change: impl FnOnce(&mut StateFile<'_>)) -> Refusal {
    judged(&file(&settings(), change), 10).unwrap_err()
}

#[test]
fn a_young_state_of_the_same_program_is_usable_for_the_rest_of_its_time() {
    let settings = settings();
    assert_eq!(settings.hot_restart, Duration::from_secs(5));
    let bytes = file(&settings, |_| {});
    let restored = judged(&bytes, 1_200).unwrap();
    assert_eq!(restored.progress, PROGRESS);
    assert_eq!(restored.state, state(&settings, PROGRESS));
    assert_eq!(restored.usable_for, Duration::from_millis(3_800));
    // The clock may have been corrected a little.
    assert_eq!(
        judged(&bytes, -1000).unwrap().usable_for,
        Duration::from_secs(5)
    );
}

#[test]
fn a_tuned_configuration_goes_on_from_it() {
    let bytes = file(&settings(), |_| {});
    let mut tuned = settings();
    tuned.period = tuned.period * 2;
    let judged = judge(&bytes, (PAIR, &tuned), PUBLISHED, &|| true);
    assert!(judged.state.is_ok());
}

#[test]
fn age_counts_to_the_millisecond() {
    let bytes = file(&settings(), |_| {});
    assert!(judged(&bytes, 4_999).is_ok());
    let hot_restart = Duration::from_secs(5);
    let old = |age| Refusal::Old {
        age: Duration::from_millis(age),
        hot_restart,
    };
    assert_eq!(judged(&bytes, 5_000), Err(old(5_000)));
    assert_eq!(judged(&bytes, 86_400_000), Err(old(86_400_000)));
    assert_eq!(
        judged(&bytes, -1_001),
        Err(Refusal::Future(Duration::from_millis(1_001)))
    );
    assert!(matches!(
        judge(&bytes, (PAIR, &settings()), 0, &|| true).state,
        Err(Refusal::Future(_))
    ));
}

#[test]
fn what_is_another_pairs_applications_or_programs_is_refused_by_name() {
    assert_eq!(refused(|file| file.pair += 1), Refusal::OtherPair);
    let other = refused(|file| file.application = "boiler");
    assert_eq!(other, Refusal::OtherApplication("boiler".into()));
    assert_eq!(refused(|file| file.program += 1), Refusal::OtherProgram);
}

#[test]
fn what_is_torn_or_of_another_version_or_no_state_is_refused_by_name() {
    let bytes = file(&settings(), |_| {});
    for cut in [10, 48, bytes.len() - 1] {
        assert_eq!(judged(&bytes[..cut], 10), Err(Refusal::Torn));
    }
    assert_eq!(judged(&[], 10), Err(Refusal::NoState));
    assert_eq!(judged(b"[pair]\nname = 1", 10), Err(Refusal::NoState));
    let mut later = bytes.clone();
    later[9] = 3;
    assert_eq!(judged(&later, 10), Err(Refusal::Version(3)));
}

#[test]
fn what_the_application_does_not_take_is_refused_before_any_role_begins() {
    for state in [&[][..], &[1; 60]] {
        let refusal = refused(|file| file.state = state);
        assert!(matches!(refusal, Refusal::Unloadable(_)), "{refusal}");
    }
    let refusal = refused(|file| file.progress.cycle += 1);
    assert!(matches!(refusal, Refusal::Unloadable(_)), "{refusal}");
}

/// K-16: age and version of the program say nothing of what is retained; another pair or application, or a file that is
/// not whole, do.
#[test]
fn what_is_retained_is_of_use_whatever_the_states_age_and_program_and_not_of_a_foreign_or_torn_file()
 {
    let left = Some(LeftRecord {
        progress: PROGRESS,
        record: RECORD.to_vec(),
    });
    let whole = file(&settings(), |_| {});
    for age in [10, 5_000, 86_400_000, -86_400_000] {
        assert_eq!(judged_with_record(&whole, age).retained, left, "{age}");
    }
    type Change = fn(&mut StateFile<'_>);
    let of_use: [Change; 2] = [|it| it.program += 1, |it| it.state = &[1; 60]];
    for change in of_use {
        let judged = judged_with_record(&file(&settings(), change), 10);
        assert!(judged.state.is_err());
        assert_eq!(judged.retained, left);
    }
    let of_no_use: [Change; 3] = [
        |it| it.pair += 1,
        |it| it.application = "boiler",
        |it| it.retained = Record::default(),
    ];
    for change in of_no_use {
        assert_eq!(
            judged_with_record(&file(&settings(), change), 10).retained,
            None
        );
    }
    for cut in [10, 60, whole.len() - 1] {
        assert_eq!(judged_with_record(&whole[..cut], 10).retained, None);
    }
}

#[test]
fn each_refusal_names_its_cause() {
    let named = [
        (Refusal::Torn, "torn"),
        (Refusal::OtherPair, "foreign"),
        (Refusal::Version(9), "version 9"),
        (Refusal::Unreadable("no such disk".into()), "no such disk"),
        (Refusal::Future(Duration::from_secs(2)), "future by 2000 ms"),
    ];
    for (refusal, word) in named {
        assert!(refusal.to_string().contains(word), "{refusal}");
    }
}
