//! A kernel that lacks what impaired links take.

use std::io;
use std::mem::size_of;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use bumpless_testing::skip;
use serde_json::{Value, json};

use crate::Grid;
use crate::impaired::topology;
use crate::support::wan::said;

const NETFILTER: u32 = libc::NETLINK_NETFILTER as u32;

/// Has the kernel refuse sockets of netfilter to a command and all that it starts, as one without netfilter does.
fn without_netfilter(command: &mut Command) -> &mut Command {
    let step = |code: u32, jump: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: jump,
        k: value,
    };
    let (load, equal, end) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    // Which call it is, and the lower half of its first and its third argument.
    let half = if cfg!(target_endian = "big") { 4 } else { 0 };
    let filter = [
        step(load, 0, 0),
        step(equal, 5, libc::SYS_socket as u32),
        step(load, 0, 16 + half),
        step(equal, 3, libc::AF_NETLINK as u32),
        step(load, 0, 32 + half),
        step(equal, 1, NETFILTER),
        step(
            end,
            0,
            libc::SECCOMP_RET_ERRNO | libc::EPROTONOSUPPORT as u32,
        ),
        step(end, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe; the kernel copies the filter, to which
    // the pointer is valid through the call.
    unsafe {
        command.pre_exec(move || {
            let mut filter = filter;
            let program = libc::sock_fprog {
                len: (size_of_val(&filter) / size_of::<libc::sock_filter>()) as u16,
                filter: filter.as_mut_ptr(),
            };
            let mode = libc::SECCOMP_MODE_FILTER;
            match libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        })
    }
}

pub fn without_tables_a_network_comes_up_and_has_rates_and_no_losses() {
    let grid = Grid::new("lacking");
    if without_netfilter(&mut Command::new("true"))
        .status()
        .is_err()
    {
        skip("needs seccomp filters");
    }
    let wan = |action: &str, arguments: &[&str]| -> Output {
        without_netfilter(&mut grid.command(action, arguments))
            .output()
            .unwrap()
    };
    let done = |action: &str, arguments: &[&str]| -> Value {
        let output = wan(action, &[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{action}: {}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let up = done("up", &["--backbone-pairs", "3"]);
    assert!(
        ["lacking", "netem"].contains(&up["delays"]["by"].as_str().unwrap()),
        "{up}"
    );
    let impaired = || done("status", &[])["impaired"].clone();
    assert_eq!(impaired(), json!([]));
    done("impair", &["s02-1-1", "--rate-mbit", "5"]);
    let limited = impaired();
    assert_eq!(limited[0]["rate_mbit"], 5, "{limited}");
    let how = ["s02-1-1", "--loss-percent", "1", "--rate-mbit", "6"];
    let refused = wan("impair", &how);
    assert_eq!(refused.status.code(), Some(1));
    let told = said(&refused);
    assert!(told.contains("CONFIG_NFT_NUMGEN"), "{told}");
    assert!(told.contains("all links are as they were"), "{told}");
    assert_eq!(impaired(), limited);
    done("impair", &["s02-1-1", "--none"]);
    assert_eq!(impaired(), json!([]));
    done("down", &[]);
    if up["delays"]["by"] == "lacking" {
        let far = ["--backbone-pairs", "3", "--failures", "1"];
        let refused = wan("sites", &far);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        let told = said(&refused);
        assert!(
            told.contains("every link of the network would be instant"),
            "{told}"
        );
        grid.nothing_is_left();
    }
    // What a file asks for is tried before anything is made.
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("network.json");
    let mut network: Value = serde_json::from_str(&topology()).unwrap();
    network["links"][0]["rate_mbit"] = json!(5);
    std::fs::write(&file, network.to_string()).unwrap();
    done("up", &["--file", file.to_str().unwrap()]);
    assert_eq!(impaired().as_array().unwrap().len(), 1);
    done("down", &[]);
    network["links"][0]["loss_percent"] = json!(1);
    std::fs::write(&file, network.to_string()).unwrap();
    let refused = wan("up", &["--file", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let told = said(&refused);
    assert!(told.contains("nothing was made"), "{told}");
    assert!(told.contains("CONFIG_NFT_NUMGEN"), "{told}");
    grid.nothing_is_left();
}
