//! Filters on interfaces of a namespace of the test's own: what passes, what is counted, who is not disturbed, what is left.

use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_guard::{Flow, FlowId, Match, Priority, Rate, Setup, Terms, Transport};
use bumpless_reception::{Counts, Filter, InterfaceReport, Mode, Reception, missing, survey};
use bumpless_testing::{need_namespaces, skip};

bumpless_testing::tests![
    a_flow_has_its_budget_on_each_interface_and_the_rest_reaches_no_socket,
    filters_change_in_one_step_and_a_lifted_guard_passes_everything,
    a_guard_is_lifted_from_every_interface_that_is_there_whatever_became_of_the_others,
    an_interface_without_ethernet_is_left_alone_and_named,
    a_second_user_of_an_interface_is_named_and_not_disturbed,
    an_interface_that_comes_back_is_guarded_again,
    nothing_is_left_of_a_process_that_is_killed,
    an_interface_that_is_not_there_is_named_with_those_that_are,
];

/// Two namespaces joined by two cables; this thread is in the first.
struct Hosts {
    here: OwnedFd,
    there: OwnedFd,
}

impl Hosts {
    fn new() -> Self {
        need_namespaces();
        if !missing().is_empty() {
            skip("needs CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON");
        }
        let hosts = Self {
            there: own_namespace(),
            here: own_namespace(),
        };
        let there = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            hosts.there.as_raw_fd()
        );
        for (name, net) in [("na", 1), ("nb", 2)] {
            ip(&format!(
                "link add {name} type veth peer name {name} netns {there}"
            ));
            ip(&format!("address add 10.{net}.0.1/24 dev {name}"));
            ip(&format!("link set {name} up"));
        }
        hosts.at_other_end(|| {
            for (name, net) in [("na", 1), ("nb", 2)] {
                ip(&format!("address add 10.{net}.0.2/24 dev {name}"));
                ip(&format!("link set {name} up"));
            }
        });
        hosts
    }

    fn at_other_end<T>(&self, work: impl FnOnce() -> T) -> T {
        enter(&self.there);
        let result = work();
        enter(&self.here);
        result
    }
}

fn enter(namespace: &OwnedFd) {
    // SAFETY: setns() takes integers only; the descriptor is open.
    let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

fn own_namespace() -> OwnedFd {
    // SAFETY: it concerns this thread's network namespace alone.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
    File::open("/proc/thread-self/ns/net")
        .expect("a namespace")
        .into()
}

fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split_whitespace())
        .status();
    assert!(status.expect("ip (iproute2)").success(), "ip {arguments}");
}

fn terms(capacity: u32) -> Terms {
    Terms {
        priority: Priority(1),
        // Longer than the test.
        rate: Some(Rate {
            capacity,
            period: bumpless_base::Duration::from_secs(3600),
        }),
        queue: 1,
    }
}

/// Ten datagrams at port 4700; addresses are found; nothing else is received.
fn setup() -> Setup {
    Setup {
        flows: vec![Flow {
            matches: vec![Match::Port(Transport::Udp, 4700)],
            terms: terms(10),
        }],
        resolution: terms(1000),
        ..Setup::closed(2)
    }
}

fn names() -> [String; 2] {
    ["na".into(), "nb".into()]
}

fn report(reception: &Reception) -> Vec<InterfaceReport> {
    reception.report().expect("a report")
}

fn counts(report: &InterfaceReport, flow: FlowId) -> Counts {
    let found = report.flows.iter().find(|it| it.0 == flow);
    found.expect("a flow").1
}

fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("a socket");
    socket
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("a time");
    socket
}

fn received(socket: &UdpSocket) -> usize {
    (0..)
        .take_while(|_| socket.recv(&mut [0; 100]).is_ok())
        .count()
}

fn a_flow_has_its_budget_on_each_interface_and_the_rest_reaches_no_socket() {
    let hosts = Hosts::new();
    let reception = Reception::start(&setup(), &names()).expect("attached");
    assert!(
        report(&reception)
            .iter()
            .all(|it| it.mode == Some(Mode::Native))
    );
    let wanted = socket("0.0.0.0:4700");
    let unwanted = socket("0.0.0.0:4701");
    hosts.at_other_end(|| {
        let sender = socket("0.0.0.0:0");
        for _ in 0..50 {
            sender.send_to(b"a", "10.1.0.1:4700").expect("sent");
            sender.send_to(b"a", "10.1.0.1:4701").expect("sent");
        }
        for _ in 0..5 {
            sender.send_to(b"b", "10.2.0.1:4700").expect("sent");
        }
    });
    // A flood on the one network costs the flow nothing on the other.
    assert_eq!(received(&wanted), 10 + 5);
    assert_eq!(received(&unwanted), 0);
    let told = report(&reception);
    let of = |at: usize, flow| {
        let it = counts(&told[at], flow);
        (it.passed, it.capacity, it.closed)
    };
    assert_eq!(of(0, FlowId::Registered(0)), (10, 40, 0));
    assert_eq!(of(1, FlowId::Registered(0)), (5, 0, 0));
    assert_eq!(of(0, FlowId::Unregistered), (0, 0, 50));
    assert!(of(0, FlowId::Resolution).0 > 0, "{told:?}");
}

fn filters_change_in_one_step_and_a_lifted_guard_passes_everything() {
    let hosts = Hosts::new();
    let mut reception = Reception::start(&setup(), &names()).expect("attached");
    let program = || {
        let output = Command::new("ip").args(["link", "show", "na"]).output();
        let text = String::from_utf8_lossy(&output.expect("ip (iproute2)").stdout).into_owned();
        text.lines()
            .find_map(|line| Some(line.split_once("prog/xdp id ")?.1.to_owned()))
    };
    let at_port = socket("0.0.0.0:4700");
    let send = |count: usize| {
        hosts.at_other_end(|| {
            let sender = socket("0.0.0.0:0");
            for _ in 0..count {
                sender.send_to(b"a", "10.1.0.1:4700").expect("sent");
            }
        });
    };
    send(30);
    assert_eq!(received(&at_port), 10);
    let first = program();
    reception
        .lift(&Filter::open().expect("a program"))
        .expect("lifted");
    send(30);
    assert_eq!(received(&at_port), 30);
    let mut other = setup();
    other.flows[0].terms = terms(20);
    let filters = names().map(|_| Filter::new(&other).expect("a program"));
    reception.renew(filters.into());
    send(30);
    assert_eq!(received(&at_port), 20);
    let told = counts(&report(&reception)[0], FlowId::Registered(0));
    assert_eq!((told.passed, told.capacity), (20, 10));
    assert!(first.is_some() && program().is_some() && program() != first);
}

fn a_guard_is_lifted_from_every_interface_that_is_there_whatever_became_of_the_others() {
    let hosts = Hosts::new();
    let reception = Reception::start(&setup(), &names()).expect("attached");
    let at_port = socket("0.0.0.0:4700");
    ip("link del na");
    reception
        .lift(&Filter::open().expect("a program"))
        .expect("lifted where there is something to lift");
    hosts.at_other_end(|| {
        let sender = socket("0.0.0.0:0");
        for _ in 0..30 {
            sender.send_to(b"a", "10.2.0.1:4700").expect("sent");
        }
    });
    assert_eq!(received(&at_port), 30);
}

/// V-104: there a program would take every packet for something unknown.
fn an_interface_without_ethernet_is_left_alone_and_named() {
    let _hosts = Hosts::new();
    let made = Command::new("ip")
        .args(["tuntap", "add", "mode", "tun", "name", "nt"])
        .status();
    if !made.is_ok_and(|status| status.success()) {
        skip("needs /dev/net/tun");
    }
    let all = ["na".to_owned(), "nt".to_owned()];
    let Err(errors) = Reception::start(&setup(), &all) else {
        panic!("a filter that reads IP headers as Ethernet's");
    };
    let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    for part in [
        "interface nt:",
        "without an Ethernet header",
        "65534",
        "instead",
    ] {
        assert!(told[0].contains(part), "{part:?} in {told:?}");
    }
    assert_eq!(
        told,
        survey(&setup(), &all)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    );
    let mut reception = Reception::start_where_possible(&setup(), 0, &all).expect("rights");
    reception.look_after();
    let told = report(&reception);
    assert_eq!([told[0].mode, told[1].mode], [Some(Mode::Native), None]);
    let why = told[1].weakness.as_deref().expect("a weakness");
    assert!(why.contains("without an Ethernet header"), "{why}");
}

fn a_second_user_of_an_interface_is_named_and_not_disturbed() {
    let _hosts = Hosts::new();
    let first = Reception::start(&setup(), &names()[..1]).expect("attached");
    let Err(errors) = Reception::start(&setup(), &names()) else {
        panic!("two programs on one interface");
    };
    let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    let process = format!("process {}", std::process::id());
    for part in [
        "interface na:",
        "bumpless_guard",
        &process,
        "was left there",
        "leave this interface out",
    ] {
        assert!(told[0].contains(part), "{part:?} in {told:?}");
    }
    assert_eq!(report(&first)[0].mode, Some(Mode::Native));
    // Where it is possible, the guard is; and everywhere once the other has gone.
    let mut second = Reception::start_where_possible(&setup(), 0, &names()).expect("rights");
    let modes = |of: &Reception| report(of).iter().map(|it| it.mode).collect::<Vec<_>>();
    assert_eq!(modes(&second), [None, Some(Mode::Native)]);
    assert!(
        report(&second)[0]
            .weakness
            .as_ref()
            .is_some_and(|it| it.contains("is on it already"))
    );
    drop(first);
    // A busy kernel takes a program off its interface a moment after its last descriptor is closed.
    let until = Instant::now() + Duration::from_secs(10);
    while modes(&second) != [Some(Mode::Native); 2] {
        assert!(Instant::now() < until, "{:?}", modes(&second));
        second.look_after();
        thread::sleep(Duration::from_millis(10));
    }
}

fn an_interface_that_comes_back_is_guarded_again() {
    let hosts = Hosts::new();
    let mut reception = Reception::start(&setup(), &names()).expect("attached");
    ip("link del na");
    reception.look_after();
    let told = report(&reception);
    let why = told[0].weakness.as_deref().expect("a weakness");
    assert!(
        why.contains("no such interface") && told[1].mode.is_some(),
        "{told:?}"
    );
    let there = format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        hosts.there.as_raw_fd()
    );
    ip(&format!("link add na type veth peer name na netns {there}"));
    reception.look_after();
    assert_eq!(report(&reception)[0].mode, Some(Mode::Native));
}

fn is_guarded() -> bool {
    let output = Command::new("ip").args(["link", "show", "na"]).output();
    let text = String::from_utf8_lossy(&output.expect("ip (iproute2)").stdout).into_owned();
    text.contains("xdp")
}

/// Set in a process of this test that holds a filter until it is killed.
const HOLDER: &str = "BUMPLESS_TEST_HOLDS_A_FILTER";

fn nothing_is_left_of_a_process_that_is_killed() {
    if std::env::var_os(HOLDER).is_some() {
        let _held = Reception::start(&setup(), &names()).expect("attached");
        println!("held");
        std::thread::sleep(Duration::from_secs(20));
        return;
    }
    let _hosts = Hosts::new();
    let mut holder = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            "nothing_is_left_of_a_process_that_is_killed",
            "--nocapture",
        ])
        .env(HOLDER, "1")
        .stdout(Stdio::null())
        .spawn()
        .expect("a process");
    let until = Instant::now() + Duration::from_secs(10);
    while !is_guarded() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(is_guarded());
    holder.kill().expect("killed");
    holder.wait().expect("its end");
    while is_guarded() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!is_guarded());
}

fn an_interface_that_is_not_there_is_named_with_those_that_are() {
    let _hosts = Hosts::new();
    let Err(errors) =
        Reception::start(&setup(), &["c".to_owned(), "na".to_owned(), "d".to_owned()])
    else {
        panic!("a filter nowhere");
    };
    let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("interface c: there is no such interface; this host has nb, na")
            || told[0].contains("has na, nb"),
        "{told:?}"
    );
    assert!(!is_guarded(), "nothing is started by half");
}
