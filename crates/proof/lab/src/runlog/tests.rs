use std::fs;

use super::*;

fn events_of(text: &str) -> Result<Vec<Event>, LogError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("left.jsonl");
    fs::write(&path, text).unwrap();
    read_events(&path)
}

#[test]
fn every_event_of_the_contract_is_read_and_foreign_ones_are_passed_over() {
    let events = events_of(concat!(
        r#"{"schema":"bumpless.event/1","time_ns":1,"node":"left","event":"started","pid":7,"session":"0a","fingerprint":"ff"}"#, "\n",
        r#"{"schema":"bumpless.event/1","time_ns":2,"node":"left","event":"role","group":"tank","from":"starting","to":"primary","epoch":2,"cause":"preferred"}"#, "\n",
        r#"{"schema":"bumpless.event/1","time_ns":3,"node":"left","event":"redundancy","group":"tank","state":"degraded","cause":"link A down"}"#, "\n",
        r#"{"schema":"bumpless.event/1","time_ns":4,"node":"left","event":"transfer","application":"tank","channel":1,"cycle":9,"outcome":"safe","took_us":85.5}"#, "\n",
        r#"{"schema":"bumpless.event/1","time_ns":5,"node":"left","event":"transfer","application":"tank","channel":1,"outcome":"failed","cause":"deadline"}"#, "\n",
        r#"{"schema":"bumpless.event/1","time_ns":6,"node":"left","event":"output","application":"tank","epoch":2,"cycle":9,"outcome":"rejected","cause":"epoch 3"}"#, "\n",
        r#"{"schema":"bumpless.event/1","node":"left","event":"events_lost","count":3}"#, "\n",
        r#"{"schema":"bumpless.event/1","time_ns":7,"node":"left","event":"configuration_differs","group":"tank","cause":"x"}"#, "\n",
        r#"{"schema":"bumpless.event/1","time_ns":8,"node":"left","event":"lease","group":"tank","lapsed":true}"#, "\n",
        r#"{"schema":"bumpless.event/1","time_ns":9,"node":"left","event":"stall","length_us":2500.25}"#, "\n",
    ))
    .unwrap();
    let kinds: Vec<_> = events.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds[0], EventKind::Started {});
    assert!(matches!(&kinds[1], EventKind::Role { to, epoch: 2, .. } if to == "primary"));
    assert!(matches!(
        kinds[2],
        EventKind::Redundancy {
            state: RedundancyState::Degraded,
            ..
        }
    ));
    assert!(matches!(
        kinds[3],
        EventKind::Transfer {
            cycle: 9,
            outcome: TransferOutcome::Safe,
            ..
        }
    ));
    assert!(
        matches!(&kinds[4], EventKind::Transfer { cause: Some(cause), .. } if cause == "deadline")
    );
    assert!(matches!(
        kinds[5],
        EventKind::Output {
            outcome: OutputOutcome::Rejected,
            ..
        }
    ));
    assert_eq!(kinds[6], EventKind::EventsLost { count: 3 });
    assert_eq!(kinds[7], EventKind::Other);
    assert_eq!(kinds[8], EventKind::Lease {});
    assert_eq!(kinds[9], EventKind::Stall { length_us: 2500.25 });
}

#[test]
fn the_torn_last_line_of_a_killed_process_is_passed_over_but_no_other() {
    let line = r#"{"time_ns":1,"node":"left","event":"stopping"}"#;
    assert_eq!(
        events_of(&format!("{line}\n{}", &line[..20]))
            .unwrap()
            .len(),
        1
    );
    assert_eq!(events_of("").unwrap(), []);
    let error = events_of(&format!("{line}\n{}\n{line}\n", &line[..20])).unwrap_err();
    assert_eq!(error.line, 2);
    assert!(error.to_string().contains("left.jsonl:2:"), "{error}");
}

#[test]
fn a_time_seen_stalled_by_two_is_counted_once() {
    let stall = |time_ns, length_ns| Stall {
        time_ns,
        length_ns,
        seen_by: "meter".into(),
    };
    let run = Run {
        stalls: vec![stall(30, 20), stall(40, 25), stall(90, 10)],
        ..Run::default()
    };
    assert_eq!(run.stalled_ns(0, 100), 30 + 10);
    assert_eq!(run.stalled_ns(20, 35), 15);
    assert_eq!(run.stalled_ns(41, 79), 0);
}

#[test]
fn the_plants_log_is_read_as_the_plant_writes_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plant.jsonl");
    let text = concat!(
        r#"{"type":"start","version":1,"time_scale":20.0,"check_epoch":true,"noise_cm":0.0}"#,
        "\n",
        r#"{"type":"levels","at_ns":5,"process_s":0.1,"levels_cm":[12.0,13.0,1.8,1.4],"voltages":[3.0,3.0]}"#,
        "\n",
        r#"{"type":"write","at_ns":6,"writer":1,"epoch":3,"cycle":9,"outputs":[3.5,null],"accepted":false,"reason":"older_epoch"}"#,
        "\n",
    );
    fs::write(&path, text).unwrap();
    let log = read_plant(&path).unwrap();
    assert_eq!(log.lines_lost, None, "a plant that was killed did not say");
    assert_eq!(
        log.samples[0],
        (
            0.1,
            Sample {
                time_ns: 5,
                levels: [12.0, 13.0, 1.8, 1.4],
                set_points: [0.0; 2]
            }
        )
    );
    let write = &log.writes[0];
    assert_eq!(
        (write.time_ns, write.writer, write.epoch, write.cycle),
        (6, 1, 3, 9)
    );
    assert!(write.outputs[0] == 3.5 && write.outputs[1].is_nan() && !write.accepted);
    fs::write(
        &path,
        format!("{text}{{\"type\":\"end\",\"lines_lost\":2}}\n"),
    )
    .unwrap();
    assert_eq!(read_plant(&path).unwrap().lines_lost, Some(2));
}
