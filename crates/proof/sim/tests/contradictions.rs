//! Scenario files that contradict themselves are refused by line, and only those.

use std::path::Path;

use bumpless_sim::Scenario;

/// A scenario with these faults, each from 3000 ms, or the time that it says, for a second.
fn faults_of(wanted: &[&str]) -> String {
    let table = |fault: &&str| {
        let at = if fault.contains("at_ms") {
            ""
        } else {
            "at_ms = 3000\n"
        };
        let span = if fault.contains("for_ms") {
            ""
        } else {
            "for_ms = 1000\n"
        };
        format!("[[fault]]\n{at}{span}{}\n", fault.replace(", ", "\n"))
    };
    wanted.iter().map(table).collect()
}

fn assert_accepted(text: &str) {
    if let Err(complaints) = Scenario::parse(text, "good.toml", Path::new(".")) {
        panic!("{text}\n{complaints:#?}");
    }
}

fn assert_refused(text: &str, line: usize, reason: &str) {
    let complaints = Scenario::parse(text, "bad.toml", Path::new(".")).expect_err(text);
    let fits = |c: &bumpless_sim::Complaint| c.line == line && c.what.contains(reason);
    assert!(complaints.iter().any(fits), "{text}\n{complaints:#?}");
    assert!(complaints[0].to_string().starts_with("bad.toml:"));
}

#[test]
fn what_contradicts_itself_is_refused_with_line_and_reason() {
    let crash = "[[fault]]\nat_ms = 100\nfor_ms = 100\nkind = \"crash\"\nnode = \"left\"\n";
    let cases: &[(&str, usize, &str)] = &[
        ("seconds = -1", 1, "must be a number"),
        (
            "seed = 9000000000000001",
            1,
            "seed must be a number from 0 to 9000000000000000",
        ),
        ("size = \"huge\"", 1, "\"small\" or \"large\""),
        ("sise = \"small\"", 1, "there is no field \"sise\""),
        ("name = 'x'\nfault = 3", 2, "[[fault]]"),
        ("name = [", 1, ""),
        ("[[fault]]\nat_ms = 1\nfor_ms = 1", 1, "needs a kind"),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 1\nkind = \"fire\"",
            4,
            "no fault is called \"fire\"",
        ),
        (
            "[[fault]]\nat_ms = -5\nfor_ms = 1\nkind = \"cut\"",
            2,
            "from 0",
        ),
        ("[[fault]]\nat_ms = 1\nkind = \"cut\"", 1, "needs for_ms"),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 1\nkind = \"cut\"\nnetwork = \"C\"",
            5,
            "no network is called \"C\"; there are A, B",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 1\nkind = \"cut\"\nfrom = \"left\"\nto = \"left\"",
            6,
            "the same",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 1\nkind = \"loss\"\nshare = 1.5",
            5,
            "from 0 to 1, not 1.5",
        ),
        (
            "seconds = 2\n[[fault]]\nat_ms = 1500\nfor_ms = 600\nkind = \"cut\"",
            4,
            "ends at 2100 ms, the scenario at 2000 ms",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 3\nkind = \"switchover\"\nnode = \"left\"\ngroup = \"pair\"",
            3,
            "one instant",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"clock\"\nof = \"left\"\nppm = 1\n\
             [[fault]]\nat_ms = 5\nfor_ms = 9\nkind = \"clock\"\nof = \"left\"\nppm = 2",
            7,
            "cannot have two rates (the other is on line 1)",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"cut\"\nfrom = \"witness-a\"\nto = \"witness-b\"",
            6,
            "no path leads there",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"cut\"\nnetwork = \"B\"\nto = \"witness-a\"",
            6,
            "no path leads there",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"junk\"\nnetwork = \"B\"\nto = \"witness-a\"\n\
             rate = 9\nwhat = \"noise\"",
            6,
            "not on this network",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"buffer\"\nnode = \"left\"\nbytes = 0.5",
            6,
            "whole number",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"bandwidth\"\nmbit = 5000",
            5,
            "anyway; give less",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"bandwidth\"\nmbit = 5\nfrom = \"left\"\n\
             [[fault]]\nat_ms = 5\nfor_ms = 9\nkind = \"bandwidth\"\nmbit = 7\nto = \"right\"",
            7,
            "cannot have two of these (the other is on line 1)",
        ),
        (
            "[[fault]]\nat_ms = 1\nfor_ms = 9\nkind = \"slow\"\nnode = \"left\"\nby_ms = 1\n\
             [[fault]]\nat_ms = 5\nfor_ms = 9\nkind = \"slow\"\nnode = \"left\"\nby_ms = 2",
            7,
            "slow in two ways",
        ),
    ];
    for (text, line, reason) in cases {
        assert_refused(text, *line, reason);
    }
    let paused = "[[fault]]\nat_ms = 150\nfor_ms = 10\nkind = \"pause\"\nnode = \"left\"\n";
    assert_refused(&format!("{crash}{paused}"), 6, "node left is down");
    assert_refused(&format!("{paused}{crash}"), 6, "node left is down");
    assert_refused(&format!("{crash}{crash}"), 6, "down already");
}

#[test]
fn a_fault_that_lasts_no_time_is_refused_unless_it_is_over_at_once() {
    let of = |kind: &str, span: &str| format!("[[fault]]\nat_ms = 3000\n{span}\nkind = {kind}\n");
    for kind in [
        "'buffer'\nnode = 'left'\nbytes = 0",
        "'unreachable'\nnode = 'left'\nnetwork = 'A'",
        "'clock'\nof = 'left'\nppm = 1",
        "'crash_in_change'\nnode = 'left'\nsteps = 1",
        "'pause'\nnode = 'left'",
        "'cut'",
    ] {
        for span in ["for_ms = 0", "for_ms = 0.0000004"] {
            assert_refused(&of(kind, span), 3, "must last for a while; give at least");
        }
        let drawn = format!("drawn = true\n{}", of(kind, "for_ms = 0"));
        assert_refused(&drawn, 4, "must last for a while");
    }
    for kind in [
        "'switchover'\nnode = 'left'\ngroup = 'pair'",
        "'apply'\nnode = 'left'\nnumber = 1",
        "'crash'\nnode = 'left'",
        "'old_configuration'\nnode = 'left'",
        "'witness'\nreference = 'witness-a'",
    ] {
        assert_accepted(&of(kind, "for_ms = 0"));
    }
    assert_accepted(&of("'cut'", "for_ms = 0.0000005"));
}

#[test]
fn faults_of_different_paths_may_be_at_the_same_time() {
    for (one, other) in [
        ("kind='cut', from='left'", "kind='cut', to='left'"),
        ("kind='cut', network='B'", "kind='cut', to='witness-a'"),
        ("kind='cut', from='witness-a'", "kind='cut', to='witness-b'"),
        ("kind='cut', network='A'", "kind='cut', network='B'"),
    ] {
        assert_accepted(&faults_of(&[one, other]));
    }
    for (one, other) in [
        ("kind='cut', from='left'", "kind='cut', to='right'"),
        (
            "kind='cut', from='left', both_ways=true",
            "kind='cut', to='left'",
        ),
        ("kind='cut', network='A'", "kind='cut', to='witness-a'"),
        (
            "kind='cut', from='left', to='right', both_ways=true",
            "kind='cut', network='B', from='right'",
        ),
    ] {
        let text = faults_of(&[one, other]);
        let second = 1 + one.split(", ").count() + 3;
        assert_refused(&text, second, "a path cannot have two of these");
    }
}

#[test]
fn a_fault_may_end_with_the_scenario_to_the_nanosecond() {
    let cut = |seconds: &str, span: &str| {
        format!("seconds = {seconds}\n[[fault]]\nat_ms = 1\nfor_ms = {span}\nkind = 'cut'\n")
    };
    for (seconds, span) in [
        ("1.001", "1000"),
        ("2.3", "2299"),
        ("1.0000001", "999.0001"),
    ] {
        assert_accepted(&cut(seconds, span));
    }
    let reason = "the fault ends at 1001.000001 ms, the scenario at 1001 ms";
    assert_refused(&cut("1.001", "1000.000001"), 4, reason);
}

#[test]
fn a_computer_is_slow_also_while_its_process_does_not_run() {
    let crash = "at_ms=5000, for_ms=100, kind='crash', node='left'";
    assert_accepted(&faults_of(&[
        "for_ms=15000, kind='slow', node='left', by_ms=2",
        crash,
    ]));
    assert_accepted(&faults_of(&[
        "for_ms=15000, kind='slow_application', node='left', application='swift', by_ms=2",
        crash,
    ]));
}

#[test]
fn a_process_cannot_end_at_two_steps_of_one_change() {
    let at = |steps| format!("kind='crash_in_change', node='left', steps={steps}");
    let reason = "node left can end at one step of a change only (the other is on line 1)";
    assert_refused(&faults_of(&[&at(2), &at(5)]), 7, reason);
    let later = format!("at_ms=4000, {}", at(5));
    assert_accepted(&faults_of(&[&at(2), &later]));
}

#[test]
fn a_flapping_path_has_a_period_with_two_halves() {
    for period in ["0", "0.000001"] {
        let flap = format!("kind='flap', period_ms={period}");
        assert_refused(
            &faults_of(&[&flap]),
            5,
            "a period needs time for two halves; give at least",
        );
    }
    assert_accepted(&faults_of(&["kind='flap', period_ms=0.000002"]));
}

#[test]
fn a_device_may_treat_the_requests_of_two_nodes_differently() {
    let of = |node: &str, late| format!("kind='device', application='swift'{node}, late={late}");
    let (left, right) = (of(", node='left'", true), of(", node='right'", false));
    assert_accepted(&faults_of(&[&left, &right]));
    for other in [of(", node='left'", false), of("", false)] {
        assert_refused(&faults_of(&[&left, &other]), 8, "cannot both do and not do");
    }
}

#[test]
fn wrong_bits_packets_and_configurations_are_refused_with_their_line() {
    let of = |lines: &str| format!("[[fault]]\nat_ms = 3000\nfor_ms = 9\nkind = {lines}\n");
    for (lines, line, reason) in [
        (
            "'wrong_configuration'\nnode = 'left'",
            1,
            "needs what: one of period, application, references, field",
        ),
        (
            "'wrong_configuration'\nnode = 'left'\nwhat = 'colour'",
            6,
            "no what is called \"colour\"",
        ),
        ("'mtu'", 1, "needs bytes"),
        ("'mtu'\nbytes = 99999", 5, "from 0 to 65535"),
        (
            "'corrupt'\nshare = 1\nfield = 'epoch'\nbit = 32",
            7,
            "from 0 to 31",
        ),
        ("'corrupt'\nshare = 1\nfield = 'epoch'", 1, "needs bit"),
        ("'corrupt'\nshare = 1\nbit = 3", 1, "needs field"),
        (
            "'corrupt'\nshare = 1\nfield = 'sent_at'\nbit = 3\nof = 'witness'",
            8,
            "field says already",
        ),
        ("'corrupt'\nshare = 1\nof = 'some'", 6, "no of is called"),
    ] {
        assert_refused(&of(lines), line, reason);
    }
    let wrong = "kind = 'wrong_configuration', node = 'left', what = 'field'";
    let old = "kind = 'old_configuration', node = 'left'";
    let crash = "kind = 'crash', node = 'left'";
    for (earlier, later, line) in [
        (wrong, wrong, 7),
        (wrong, old, 7),
        (wrong, crash, 7),
        (crash, wrong, 6),
    ] {
        let text = faults_of(&[earlier, later]);
        assert_refused(&text, line, "at the end of the other fault");
    }
    let mtu = "kind = 'mtu', bytes = 300";
    assert_refused(&faults_of(&[mtu, mtu]), 6, "cannot have two of these");
    assert_accepted(&faults_of(&[wrong, mtu, "kind = 'crash', node = 'right'"]));
}
