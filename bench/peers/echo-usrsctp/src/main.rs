//! SCTP by usrsctp in the study of failovers (`spec/wan.md`, U-58): messages on one stream of an association with two addresses at
//! each end. The program does nothing about outages.

mod end;

use std::net::{Ipv4Addr, UdpSocket};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use peer_echo::{Call, Serve, Talk, now};

fn main() -> ExitCode {
    peer_echo::run(env!("PEER_VERSION"), serve, call)
}

/// Listens at both addresses, says so, and serves for ever: the library has threads of its own.
fn serve(order: &Serve) -> anyhow::Result<()> {
    end::serve([order.address, order.backup], order.port)?;
    peer_echo::say_listening();
    loop {
        thread::park();
    }
}

/// Sends all messages, and tells what came of them.
fn call(order: &Call) -> anyhow::Result<()> {
    let (heard, answers) = channel();
    let own = [order.from, order.backup_from];
    let remote = [order.to, order.backup_to];
    end::connect((own, free_port()?), (remote, order.port), heard)?;
    end::wait_until_ready()?;
    let mut talk = Talk::begin(order);
    loop {
        let at = now();
        if let Some(message) = talk.send(at) {
            // What the library has no room for has no answer.
            let _ = end::send(&message);
            continue;
        }
        if talk.is_over(at) {
            break;
        }
        let most = Duration::from_nanos(talk.next().saturating_sub(at));
        match answers.recv_timeout(most) {
            Ok((answer, at)) => talk.hear(&answer, at),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => thread::sleep(most),
        }
    }
    // Whoever reads what is told ends this program.
    end::abort();
    talk.tell(None);
    Ok(())
}

/// A port of UDP that nobody has. Clients side by side share a host, and the library binds by number.
fn free_port() -> anyhow::Result<u16> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context("no port of UDP is free")?;
    Ok(socket.local_addr()?.port())
}
