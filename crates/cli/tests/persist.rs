//! States on disk: what a pair that has lost its memory goes on from, and what it refuses. The real program as separate
//! processes; what they keep lies in folders of the test's own.

mod support;

use std::fs;
use std::path::PathBuf;

use bumpless_node::persist::format::parse;
use bumpless_testing::need_root;
use serde_json::Value;
use support::plan::Plan;
use support::process::outcome;
use support::site::Site;
use support::state_file::forge;
use support::wait_until;

const PERIOD_MS: u32 = 50;
const NODES: [&str; 2] = ["left", "right"];

/// A tank pair whose states go to disk with each cycle, everything but the nodes running. They may be gone on from
/// for as long as a loaded machine takes to start two processes.
fn site() -> Site {
    let mut plan = Plan::pair(2)
        .tank(PERIOD_MS, "")
        .keeping("persist_every_ms = 1");
    plan.group = "hot_restart_ms = 120000".into();
    let mut site = Site::new(plan);
    site.start_surroundings();
    site
}

/// A pair that runs and has kept some states at both nodes.
fn running() -> Site {
    let mut site = site();
    NODES.iter().for_each(|node| site.start(node));
    site.await_redundant("tank");
    site.await_writes(5);
    for node in NODES {
        wait_until("a state is on disk", || kept_cycle(&site, node) > Some(3));
    }
    site
}

fn file(site: &Site, node: &str) -> PathBuf {
    folder(site, node).join(format!("black-box-{node}-tank.state"))
}

fn folder(site: &Site, node: &str) -> PathBuf {
    site.path(&format!("{node}.states"))
}

/// The cycle of the state that `node` has on disk.
fn kept_cycle(site: &Site, node: &str) -> Option<u64> {
    let bytes = fs::read(file(site, node)).ok()?;
    let file = parse(&bytes).expect("a file is always whole");
    Some(file.progress.cycle)
}

/// Kills both nodes, the backup first, so that it does not take over; returns the last epoch.
fn kill_both(site: &mut Site) -> u64 {
    let (primary, backup, epoch) = site.await_redundant("tank");
    site.kill(&backup);
    site.kill(&primary);
    epoch
}

/// The first cycle that the plant takes in an epoch above `epoch`.
fn first_above(site: &Site, epoch: u64) -> u64 {
    support::wait_for("a write", || {
        let writes = site.writes();
        let mut later = writes.accepted().filter(|write| write.epoch > epoch);
        later.next().map(|write| write.cycle)
    })
}

/// Waits until the newest `resumed` of `node` says `word`.
fn await_resumed(site: &Site, node: &str, word: &str) {
    wait_until(&format!("{node} goes on: {word}"), || {
        let events = site.events_of(node, "resumed");
        let last = events.last().and_then(|event| event["cause"].as_str());
        last.is_some_and(|cause| cause.contains(word))
    });
}

fn weaknesses(site: &Site, node: &str) -> Vec<String> {
    let status = site.status(node).unwrap_or_default();
    let weaknesses = status["weaknesses"].as_array().cloned().unwrap_or_default();
    let text = |weakness: &Value| weakness.as_str().unwrap().to_owned();
    weaknesses.iter().map(text).collect()
}

fn says(site: &Site, node: &str, what: &str) -> bool {
    weaknesses(site, node)
        .iter()
        .any(|text| text.contains(what))
}

fn a_pair_killed_as_a_whole_goes_on_from_its_disks() {
    let mut site = running();
    for restart in [["left", "right"], ["right", "left"]] {
        let epoch = kill_both(&mut site);
        let kept: Vec<_> = NODES.iter().map(|node| kept_cycle(&site, node)).collect();
        restart.iter().for_each(|node| site.start(node));
        let first = first_above(&site, epoch);
        assert!(kept.contains(&Some(first - 1)), "{first} after {kept:?}");
        assert!(first > 1, "{first}");
        let (primary, ..) = site.await_redundant("tank");
        await_resumed(&site, &primary, "read from its disk");
        site.await_writes(5);
    }
    site.writes().judge_epochs();
}

fn a_node_that_comes_back_alone_goes_on_from_its_disk_even_as_backup() {
    let mut site = running();
    for node in NODES {
        let epoch = kill_both(&mut site);
        let kept = kept_cycle(&site, node).unwrap();
        site.start(node);
        assert_eq!(first_above(&site, epoch), kept + 1);
        let other = NODES[usize::from(node == "left")];
        site.start(other);
        site.await_redundant("tank");
        site.await_writes(5);
    }
    site.writes().judge_epochs();
}

fn a_partner_that_lives_goes_before_the_disk_of_a_node_that_returns() {
    let mut site = running();
    for _ in 0..2 {
        let (primary, backup, _) = site.await_redundant("tank");
        site.kill(&primary);
        site.start(&primary);
        let (now, ..) = site.await_redundant("tank");
        assert_eq!(now, backup);
        await_resumed(&site, &backup, "received from the partner");
        site.await_writes(5);
    }
    site.writes().judge();
}

/// Both files are made what `spoil` makes of them: the pair begins anew, both nodes say `word` for as long as nothing
/// newer is on disk, and put the file aside.
fn refused(word: &str, spoil: impl Fn(&Site, &str)) {
    let mut site = running();
    let epoch = kill_both(&mut site);
    NODES.iter().for_each(|node| spoil(&site, node));
    let spoilt = NODES.map(|node| fs::read(file(&site, node)).unwrap());
    site.start("left");
    site.await_status("it says what was refused", "left", |status| {
        let weaknesses = status["weaknesses"].as_array().unwrap();
        let mut texts = weaknesses.iter().map(|text| text.as_str().unwrap());
        texts.any(|text| text.contains(word) && text.contains("'tank'"))
    });
    site.start("right");
    assert_eq!(first_above(&site, epoch), 1, "{word}");
    let (primary, ..) = site.await_redundant("tank");
    await_resumed(&site, &primary, "initial state");
    for (node, spoilt) in NODES.into_iter().zip(spoilt) {
        let said = site.node(node).said();
        assert!(said.contains(word), "{node} said nothing: {said}");
        let told = |event: &Value| event["cause"].as_str().unwrap().contains(word);
        site.await_event(node, "weakness", told);
        let mut aside = file(&site, node).into_os_string();
        aside.push(".refused");
        assert_eq!(fs::read(aside).unwrap(), spoilt);
        wait_until("a newer state has taken its place", || {
            !says(&site, node, word) && kept_cycle(&site, node).is_some()
        });
    }
}

fn a_torn_file_is_refused() {
    refused("torn", |site, node| {
        let bytes = fs::read(file(site, node)).unwrap();
        fs::write(file(site, node), &bytes[..bytes.len() - 1]).unwrap();
    });
}

fn a_file_with_one_flipped_bit_is_refused() {
    refused("torn", |site, node| {
        let mut bytes = fs::read(file(site, node)).unwrap();
        bytes[70] ^= 4;
        fs::write(file(site, node), &bytes).unwrap();
    });
}

fn an_old_file_is_refused() {
    refused("too old: 12", |site, node| {
        forge(&file(site, node), |file| {
            file.published_ns -= 120_000_000_000
        });
    });
}

fn a_file_from_the_future_is_refused() {
    refused("from the future", |site, node| {
        forge(&file(site, node), |file| {
            file.published_ns += 3_600_000_000_000
        });
    });
}

fn a_file_of_another_pair_is_refused() {
    refused("another pair", |site, node| {
        forge(&file(site, node), |file| file.pair += 1);
    });
}

fn a_file_of_another_program_is_refused() {
    refused("another program", |site, node| {
        forge(&file(site, node), |file| file.program += 1);
    });
}

fn a_file_of_another_version_is_refused() {
    refused("unknown version 3", |site, node| {
        let mut bytes = fs::read(file(site, node)).unwrap();
        bytes[9] = 3;
        fs::write(file(site, node), &bytes).unwrap();
    });
}

fn a_file_with_a_state_that_does_not_load_is_refused() {
    refused("does not take it", |site, node| {
        forge(&file(site, node), |file| file.state = &[0; 40]);
    });
}

fn after_an_orderly_end_the_last_state_that_was_due_is_on_disk() {
    let mut site = running();
    site.interrupt_all();
    let writes = site.writes();
    let accepted: Vec<_> = writes.accepted().collect();
    let [.., before, last] = accepted[..] else {
        panic!("hardly anything was written: {accepted:?}");
    };
    let kept = NODES.map(|node| kept_cycle(&site, node).unwrap());
    // Whoever was handed the role may write its first output within the millisecond after it has kept what it had
    // received; only that cycle's state is then not due (K-4, K-8).
    let due = last.cycle - u64::from(last.epoch > before.epoch);
    assert!(kept.iter().any(|&cycle| cycle >= due), "{kept:?}, {last:?}");
    for node in NODES {
        let left = fs::read_dir(folder(&site, node)).unwrap().count();
        assert_eq!(left, 1, "{node}");
    }
}

fn a_missing_folder_is_reported_until_it_is_back_and_costs_no_cycle() {
    let site = running();
    let moved = site.path("moved");
    for _ in 0..2 {
        fs::rename(folder(&site, "right"), &moved).unwrap();
        wait_until("it says so", || says(&site, "right", "is not kept on disk"));
        site.await_event("right", "persist", |event| {
            event["cause"].as_str().unwrap().contains("not written")
        });
        assert!(!says(&site, "left", "is not kept on disk"));
        site.await_writes(5);
        fs::rename(&moved, folder(&site, "right")).unwrap();
        wait_until("it is well", || {
            !says(&site, "right", "is not kept on disk")
        });
        site.await_event("right", "persist", |event| {
            event["cause"] == "written again"
        });
    }
    site.writes().judge();
}

/// Mounts a file system of 64 kB at `place`, for this thread and what it starts, or changes how it is mounted.
fn mount(place: &std::path::Path, flags: libc::c_ulong) {
    use std::os::unix::ffi::OsStrExt;
    let text = |bytes: &[u8]| std::ffi::CString::new(bytes).unwrap();
    let (kind, place, size) = (
        text(b"tmpfs"),
        text(place.as_os_str().as_bytes()),
        text(b"size=64k"),
    );
    // SAFETY: all of them are texts that end, and live until the call has returned.
    let mounted = unsafe {
        libc::mount(
            kind.as_ptr(),
            place.as_ptr(),
            kind.as_ptr(),
            flags,
            size.as_ptr().cast(),
        )
    };
    assert_eq!(mounted, 0, "{}", std::io::Error::last_os_error());
}

/// A mount namespace of this thread's own.
fn own_mounts() {
    // SAFETY: integers alone, and texts that end.
    let made = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                std::ptr::null(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
    };
    assert!(made, "{}", std::io::Error::last_os_error());
}

fn a_disk_that_is_read_only_or_full_is_said_by_name_and_recovers() {
    need_root();
    own_mounts();
    let mut site = site();
    let right = folder(&site, "right");
    fs::create_dir(&right).unwrap();
    mount(&right, 0);
    mount(&right, libc::MS_REMOUNT | libc::MS_RDONLY);
    NODES.iter().for_each(|node| site.start(node));
    site.await_redundant("tank");
    wait_until("it says so", || {
        says(&site, "right", "Read-only file system")
    });
    mount(&right, libc::MS_REMOUNT);
    wait_until("it is well", || {
        !says(&site, "right", "is not kept on disk")
    });
    assert!(kept_cycle(&site, "right").is_some());
    // Full: what is there stays whole, and nothing half written stays beside it.
    let filler = right.join("filler");
    let full = fs::write(&filler, vec![0; 1 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    wait_until("it says so", || {
        says(&site, "right", "No space left on device")
    });
    assert!(kept_cycle(&site, "right").is_some());
    fs::remove_file(&filler).unwrap();
    wait_until("it is well", || {
        !says(&site, "right", "is not kept on disk")
    });
    site.await_writes(5);
    site.writes().judge();
}

fn a_second_node_with_the_same_folder_by_another_path_is_refused() {
    let mut site = site();
    site.start("left");
    wait_until("it has its folder", || folder(&site, "left").exists());
    site.await_primary("left", "tank");
    std::os::unix::fs::symlink(folder(&site, "left"), folder(&site, "right")).unwrap();
    let config = site.config();
    let output = support::process::bumpless(&["run", config.to_str().unwrap(), "--node", "right"]);
    let (_, said, status) = outcome(&output);
    assert_ne!(status, Some(0));
    assert!(
        said.contains("another node keeps its states there"),
        "{said}"
    );
    assert!(said.contains("a folder of its own"), "{said}");
}

fn two_nodes_with_one_folder_are_a_mistake_in_the_configuration() {
    let site = site();
    let text = fs::read_to_string(site.config()).unwrap();
    let same = text.replace("right.states'", "left.states/'");
    assert_ne!(text, same);
    let path = site.path("same.toml");
    fs::write(&path, same).unwrap();
    let (report, status) = support::process::json(
        &["check", path.to_str().unwrap(), "--json"],
        "bumpless.check/1",
    );
    assert_eq!(status, Some(2));
    let problems = report["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{report}");
    assert_eq!(problems[0]["field"], "node[2].state_dir");
}

fn what_is_half_written_when_a_node_dies_is_removed_at_its_next_start() {
    let mut site = running();
    kill_both(&mut site);
    let mut leftover = file(&site, "left").into_os_string();
    leftover.push(".tmp");
    fs::write(&leftover, b"bumpless half").unwrap();
    NODES.iter().for_each(|node| site.start(node));
    site.await_redundant("tank");
    site.interrupt_all();
    assert!(!PathBuf::from(leftover).exists());
}

fn how_often_a_state_is_written_changes_while_the_pair_runs() {
    let mut site = running();
    let text = fs::read_to_string(site.config()).unwrap();
    let next = text.replace("persist_every_ms = 1\n", "persist_every_ms = 60000\n");
    assert_ne!(text, next);
    let path = site.path("next.toml");
    fs::write(&path, next).unwrap();
    for node in NODES {
        let order = format!(r#"{{"command":"apply","file":"{}"}}"#, path.display());
        let reply = site.ask(node, &order).unwrap();
        assert_eq!(reply["accepted"], "apply", "{reply}");
    }
    for node in NODES {
        site.await_event(node, "configuration", |_| true);
    }
    // Once more at most, whenever the disk has done it, and then no more.
    wait_until("nothing is written any more", || {
        let kept = kept_cycle(&site, "left");
        site.await_writes(10);
        kept_cycle(&site, "left") == kept
    });
    site.interrupt_all();
}

bumpless_testing::tests![
    a_pair_killed_as_a_whole_goes_on_from_its_disks,
    a_node_that_comes_back_alone_goes_on_from_its_disk_even_as_backup,
    a_partner_that_lives_goes_before_the_disk_of_a_node_that_returns,
    a_torn_file_is_refused,
    a_file_with_one_flipped_bit_is_refused,
    an_old_file_is_refused,
    a_file_from_the_future_is_refused,
    a_file_of_another_pair_is_refused,
    a_file_of_another_program_is_refused,
    a_file_of_another_version_is_refused,
    a_file_with_a_state_that_does_not_load_is_refused,
    after_an_orderly_end_the_last_state_that_was_due_is_on_disk,
    a_missing_folder_is_reported_until_it_is_back_and_costs_no_cycle,
    a_disk_that_is_read_only_or_full_is_said_by_name_and_recovers,
    a_second_node_with_the_same_folder_by_another_path_is_refused,
    two_nodes_with_one_folder_are_a_mistake_in_the_configuration,
    what_is_half_written_when_a_node_dies_is_removed_at_its_next_start,
    how_often_a_state_is_written_changes_while_the_pair_runs,
];
