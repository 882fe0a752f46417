//! Other versions of a program that runs.

use std::fs::{self, OpenOptions};
use std::io::Write;

use crate::support::plan::Plan;
use crate::support::process::said;
use crate::support::site::Site;
use crate::support::wait_until;
use crate::{LAST, expected, plan, put_process, written};

/// How much more its second output is in the version that is called so.
pub const MORE: f64 = 100.0;

/// A process with these words after its file.
fn version(words: &str) -> Plan {
    let mut plan = plan("process", &format!("arguments = [{words}]"), ["", ""]);
    plan.group = "hot_restart_ms = 120000".into();
    plan
}

/// A pair that runs the version of `words`, and is redundant.
fn running(words: &str) -> Site {
    let mut site = Site::new(version(words));
    put_process(&site, "ramp");
    site.start_witnesses();
    site.start_plant(&["--check-epoch"]);
    site.start("left");
    site.start("right");
    site.await_redundant("tank");
    site
}

/// Writes what runs the version of `words` from the file `program`, on the same addresses.
fn next(site: &Site, words: &str, program: &str) -> String {
    let path = site.path("next.toml");
    let of_now = fs::read_to_string(site.config()).unwrap();
    let begins = of_now.find("arguments = ").unwrap();
    let ends = begins + of_now[begins..].find('\n').unwrap();
    let text = format!(
        "{}arguments = [{words}]{}",
        &of_now[..begins],
        &of_now[ends..]
    );
    let text = text.replace("file = \"ramp\"", &format!("file = \"{program}\""));
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn apply(site: &Site, next: &str) -> (String, String, Option<i32>) {
    let config = site.config().display().to_string();
    said(&["apply", &config, next])
}

pub fn another_version_of_a_program_goes_on_with_the_state_of_the_one_that_runs() {
    let mut site = running("\"play\"");
    site.await_writes(5);
    // Another file, too: a build of its own.
    put_process(&site, "ramp-2");
    let file = OpenOptions::new().append(true).open(site.path("ramp-2"));
    file.unwrap().write_all(&[0]).unwrap();
    let next = next(&site, "\"more\"", "ramp-2");
    let (stdout, stderr, status) = apply(&site, &next);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    site.await_writes(5);
    let (primary, backup, epoch) = site.await_redundant("tank");
    site.kill(&primary);
    let higher = site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    site.await_write_in(higher);
    site.await_writes(5);
    site.writes().judge();
    let written = written(&site);
    assert!(written.windows(2).all(|pair| pair[1].0 >= pair[0].0));
    let is_next = |(cycle, [sum, count]): &(u64, [f32; 2])| {
        let [expected_sum, expected_count] = expected(*cycle);
        assert_eq!(
            *sum, expected_sum,
            "cycle {cycle} goes on from the one before"
        );
        let more = f64::from(count - expected_count);
        assert!(more == 0.0 || more == MORE, "cycle {cycle}: {more}");
        more == MORE
    };
    let versions: Vec<_> = written.iter().map(is_next).collect();
    assert!(versions.is_sorted(), "nobody goes back: {versions:?}");
    assert_eq!(
        (versions.first(), versions.last()),
        (Some(&false), Some(&true))
    );
}

/// A conversion that fails is refused before anything changes, and one that does not is gone on with.
pub fn a_version_that_converts_goes_on_with_what_it_makes_of_the_state_through_a_kill() {
    let mut site = running("\"play\"");
    site.await_writes(5);
    for (how, why) in [
        ("refuses", "the count is odd"),
        ("loops", "20"),
        ("dies", "signal 6"),
    ] {
        let (stdout, stderr, status) = apply(
            &site,
            &next(&site, &format!("\"wider\", \"{how}\""), "ramp"),
        );
        assert_eq!(status, Some(1), "{how}: {stdout}{stderr}");
        let said = "cannot convert the state of the one that runs";
        assert!(
            stderr.contains(said) && stderr.contains(why),
            "{how}: {stderr}"
        );
    }
    let next = next(&site, "\"wider\", \"more\"", "ramp");
    let (stdout, stderr, status) = apply(&site, &next);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    site.await_writes(5);
    let (primary, backup, _) = site.await_redundant("tank");
    site.kill(&primary);
    let higher = site.await_primary(&backup, "tank");
    site.await_write_in(higher);
    site.await_writes(5);
    site.writes().judge();
    let of_the_next = |(cycle, [sum, count]): &(u64, [f32; 2])| {
        let [expected_sum, expected_count] = expected(*cycle);
        assert_eq!(
            *sum, expected_sum,
            "cycle {cycle} goes on from the one before"
        );
        f64::from(count - expected_count) == MORE
    };
    let versions: Vec<_> = written(&site).iter().map(of_the_next).collect();
    assert!(versions.is_sorted(), "nobody goes back: {versions:?}");
    assert_eq!(
        (versions.first(), versions.last()),
        (Some(&false), Some(&true))
    );
}

pub fn a_program_whose_file_says_fresh_begins_anew() {
    let site = running("\"play\"");
    site.await_writes(5);
    let path = next(&site, "\"other layout\", \"more\"", "ramp");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("arguments = ", "state = \"fresh\"\narguments = "),
    )
    .unwrap();
    let config = site.config().display().to_string();
    let (stdout, stderr, status) = said(&["apply", &config, &path, "--dry-run"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stdout.contains("begins anew (state = \"fresh\")"),
        "{stdout}"
    );
    let (stdout, stderr, status) = apply(&site, &path);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    site.await_writes(10);
    site.writes().judge();
    let written = written(&site);
    let count = |(cycle, [_, count]): &(u64, [f32; 2])| (*cycle, f64::from(*count));
    let since = written.iter().map(count).find(|(_, count)| *count >= MORE);
    let (since, first) = since.expect("the next version has written");
    let began = since - (first - MORE) as u64;
    for (cycle, [sum, count]) in written {
        let is_next = f64::from(count) >= MORE;
        let [expected_sum, expected_count] = expected(if is_next { cycle - began } else { cycle });
        let more = if is_next { MORE as f32 } else { 0.0 };
        assert_eq!(
            [sum, count],
            [expected_sum, expected_count + more],
            "cycle {cycle}, anew after {began}"
        );
    }
}

pub fn a_version_with_states_of_its_own_is_refused_before_anything_changes() {
    let site = running("\"play\"");
    for (words, why) in [
        (
            "\"other layout\"",
            "does not say that its state has the layout",
        ),
        (
            "\"longer\"",
            "has a state of 32 bytes, and the one that runs has one of 24",
        ),
        ("\"ends at once\"", "program"),
    ] {
        let (stdout, stderr, status) = apply(&site, &next(&site, words, "ramp"));
        assert_eq!(status, Some(1), "{words}: {stdout}{stderr}");
        assert!(
            stderr.contains("'ramp'") && stderr.contains(why),
            "{stderr}"
        );
    }
    // Another file without a version of its layout would be one of its own, and a file that is missing is none.
    let (_, stderr, status) = apply(&site, &next(&site, "\"play\"", "nowhere"));
    assert_eq!(status, Some(2), "{stderr}");
    site.await_writes(5);
    for (cycle, outputs) in written(&site) {
        assert_eq!(outputs, expected(cycle), "cycle {cycle}");
    }
    site.writes().judge();
}

pub fn a_program_that_is_stopped_on_both_goes_on_when_a_mended_version_is_applied() {
    let site = running("\"fails\"");
    let stopped = |node: &str| {
        let status = site.status(node);
        status.is_some_and(|it| it["applications"][0]["program"]["stopped"] == true)
    };
    wait_until("both to stop it", || stopped("left") && stopped("right"));
    let (stdout, stderr, status) = apply(&site, &next(&site, "\"play\"", "ramp"));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    site.await_writes(10);
    site.await_redundant("tank");
    let written = written(&site);
    assert!(written.last().is_some_and(|(cycle, _)| *cycle > LAST));
    for (cycle, outputs) in written {
        assert_eq!(outputs, expected(cycle), "cycle {cycle}");
    }
    site.writes().judge();
}
