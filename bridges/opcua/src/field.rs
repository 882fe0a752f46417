//! A field driver (spec/field-driver.md): a node's OPC UA client, in the process that the node starts for one of its devices.
//!
//! One order at a time comes from the node. It is carried out within its time on the one session with the server, or not
//! at all; the session is made, and made again, beside the orders.

mod endpoint;
mod fence;
mod link;
mod login;
mod namespace;
mod notes;
mod session;
mod setting;
mod value;

use std::process::ExitCode;
use std::thread;

use bumpless_field_driver::{Answers, Driver, Order, keep_secret, now};
use tokio::sync::mpsc;

use link::Link;
use setting::Setting;

/// What the driver is, for its node.
const WHAT: &str = concat!("bumpless-opcua ", env!("CARGO_PKG_VERSION"));
/// Nothing was done, since nobody is there to give orders.
const WRONG: u8 = 2;

/// Carries out a node's orders until there are no more.
pub fn run() -> ExitCode {
    let (driver, setup) = match Driver::attach() {
        Ok(attached) => attached,
        Err(error) => {
            eprintln!(
                "bumpless-opcua: a node starts this by itself, for a device with kind = \"opcua\": {error}"
            );
            return ExitCode::from(WRONG);
        }
    };
    // Before anything secret is read. Without it there is still no room for a core dump.
    let _ = keep_secret();
    let setting = match Setting::of(setup) {
        Ok(setting) => setting,
        Err(why) => {
            // Who does not hear it knows by the end of this process that it is of no use.
            let _ = driver.refuse(&why);
            return ExitCode::from(WRONG);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let worked = runtime.and_then(|runtime| {
        driver.ready(WHAT)?;
        runtime.block_on(work(driver, setting))
    });
    match worked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bumpless-opcua: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Waits for orders in a thread of its own.
fn listen(mut driver: Driver) -> mpsc::UnboundedReceiver<(Order, Answers)> {
    // A node gives one order at a time, so that no more than one ever waits.
    let (heard, orders) = mpsc::unbounded_channel();
    thread::spawn(move || {
        while let Ok(Some(order)) = driver.order() {
            if heard.send((order, driver.answers())).is_err() {
                return;
            }
        }
    });
    orders
}

async fn work(driver: Driver, setting: Setting) -> std::io::Result<()> {
    let answers = driver.answers();
    let mut link = Link::new(setting, answers);
    let mut orders = listen(driver);
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some((order, answers)) => carry_out(&mut link, order, &answers).await?,
                None => return Ok(()),
            },
            () = link.change() => {}
        }
    }
}

async fn carry_out(link: &mut Link, order: Order, answers: &Answers) -> std::io::Result<()> {
    match order {
        Order::Read { until, due } => match link.read(&due, until).await {
            Ok(values) => answers.values(bumpless_field_driver::Outcome::Done, &values),
            Err(outcome) => answers.values(outcome, &[]),
        },
        Order::Write { until, values, .. } => answers.written(link.write(&values, until).await),
        Order::Probe { until } => answers.state(link.probe(until).await),
        // A node says these before anything else, and never again.
        Order::Open(_) | Order::Point(..) | Order::Begin => {
            Err(std::io::ErrorKind::InvalidData.into())
        }
    }
}

/// The time that is left until `until`; `None`: nothing may be begun any more.
fn left(until: u64) -> Option<std::time::Duration> {
    let left = until.checked_sub(now())?;
    (left > 0).then(|| std::time::Duration::from_nanos(left))
}
