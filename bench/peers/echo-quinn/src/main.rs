//! QUIC by quinn in the study of failovers (`spec/wan.md`, U-58): messages on one bidirectional stream; a client that misses an
//! answer begins anew over its backup, with 0-RTT, and sends again what has no answer.

mod call;
mod clock;
mod serve;

use std::io;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::thread;

use clap::Parser;

/// Bytes of a message.
const MESSAGE: usize = 1000;

/// The peer echo-quinn
#[derive(Debug, Parser)]
enum Order {
    /// Say which version of quinn it is
    Version,
    /// Send back what comes
    Serve {
        /// Where to listen
        address: Ipv4Addr,
        /// And at which port
        port: u16,
    },
    /// Send messages, and tell when their answers came
    Call(call::Call),
}

fn main() -> ExitCode {
    let order = Order::parse();
    if let Order::Version = order {
        println!("{}", env!("PEER_VERSION"));
        return ExitCode::SUCCESS;
    }
    // Whoever started it ends it by the end of its input, even by being killed.
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        runtime.block_on(async {
            match order {
                Order::Version => Ok(()),
                Order::Serve { address, port } => serve::serve(address, port).await,
                Order::Call(call) => call.run().await,
            }
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo-quinn: {error:#}");
            ExitCode::FAILURE
        }
    }
}
