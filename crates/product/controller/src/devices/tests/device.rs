//! A device that is one of Modbus TCP on loopback: what it holds, and what it refuses.

use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use bumpless_config::Area;
use tokio_modbus::server::Service;
use tokio_modbus::server::tcp::Server;
use tokio_modbus::{ExceptionCode, Request, Response, SlaveRequest};

use crate::modbus::runtime;

/// What a device holds, and what was asked of it.
#[derive(Default)]
pub struct Inside {
    pub registers: Mutex<BTreeMap<(Area, u16), u16>>,
    pub asked: Mutex<Vec<String>>,
    pub units: Mutex<Vec<u8>>,
    /// Requests are not answered.
    pub hangs: AtomicBool,
    pub connections: AtomicUsize,
    /// Refuses writes of an older epoch, as F-5 says.
    pub checks: AtomicBool,
    /// Refuses all that is asked of these areas.
    pub refused: Mutex<BTreeMap<Area, ExceptionCode>>,
}

/// The area of which something is asked.
fn area(request: &Request<'static>) -> Area {
    match request {
        Request::ReadCoils(..) | Request::WriteSingleCoil(..) | Request::WriteMultipleCoils(..) => {
            Area::Coil
        }
        Request::ReadDiscreteInputs(..) => Area::DiscreteInput,
        Request::ReadInputRegisters(..) => Area::InputRegister,
        _ => Area::HoldingRegister,
    }
}

impl Inside {
    pub fn get(&self, area: Area, first: u16, count: u16) -> Vec<u16> {
        let registers = self.registers.lock().unwrap();
        let at = |n| *registers.get(&(area, first + n)).unwrap_or(&0);
        (0..count).map(at).collect()
    }

    pub fn put(&self, area: Area, first: u16, values: &[u16]) {
        let mut registers = self.registers.lock().unwrap();
        for (n, value) in (0..).zip(values) {
            registers.insert((area, first + n), *value);
        }
    }

    pub fn answer(&self, request: &Request<'static>) -> Result<Response, ExceptionCode> {
        if let Some(exception) = self.refused.lock().unwrap().get(&area(request)) {
            return Err(*exception);
        }
        let bits = |area, first, count| {
            let registers = self.get(area, first, count);
            registers
                .into_iter()
                .map(|register| register != 0)
                .collect()
        };
        Ok(match request {
            Request::ReadCoils(first, count) => {
                Response::ReadCoils(bits(Area::Coil, *first, *count))
            }
            Request::ReadDiscreteInputs(first, count) => {
                Response::ReadDiscreteInputs(bits(Area::DiscreteInput, *first, *count))
            }
            Request::ReadHoldingRegisters(first, count) => {
                Response::ReadHoldingRegisters(self.get(Area::HoldingRegister, *first, *count))
            }
            Request::ReadInputRegisters(first, count) => {
                Response::ReadInputRegisters(self.get(Area::InputRegister, *first, *count))
            }
            Request::WriteSingleCoil(first, bit) => {
                self.put(Area::Coil, *first, &[u16::from(*bit)]);
                Response::WriteSingleCoil(*first, *bit)
            }
            Request::WriteMultipleCoils(first, bits) => {
                let values: Vec<_> = bits.iter().map(|bit| u16::from(*bit)).collect();
                self.put(Area::Coil, *first, &values);
                Response::WriteMultipleCoils(*first, values.len() as u16)
            }
            Request::WriteSingleRegister(first, value) => {
                self.put(Area::HoldingRegister, *first, &[*value]);
                Response::WriteSingleRegister(*first, *value)
            }
            Request::WriteMultipleRegisters(first, values) => {
                if self.checks.load(Ordering::SeqCst) {
                    let epoch = u32::from(values[0]) << 16 | u32::from(values[1]);
                    let accepted = self.get(Area::InputRegister, 10, 2);
                    let accepted = u32::from(accepted[0]) << 16 | u32::from(accepted[1]);
                    if epoch < accepted {
                        return Err(ExceptionCode::IllegalDataValue);
                    }
                    self.put(Area::InputRegister, 10, &values[..2]);
                    self.put(Area::InputRegister, 12, &values[4..8]);
                }
                self.put(Area::HoldingRegister, *first, values);
                Response::WriteMultipleRegisters(*first, values.len() as u16)
            }
            _ => return Err(ExceptionCode::IllegalFunction),
        })
    }

    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

#[derive(Clone)]
struct Session(Arc<Inside>);

type Answer = Pin<Box<dyn Future<Output = Result<Response, ExceptionCode>> + Send>>;

impl Service for Session {
    type Request = SlaveRequest<'static>;
    type Response = Response;
    type Exception = ExceptionCode;
    type Future = Answer;

    fn call(&self, request: Self::Request) -> Self::Future {
        let inside = &self.0;
        if inside.hangs.load(Ordering::SeqCst) {
            return Box::pin(std::future::pending());
        }
        inside.units.lock().unwrap().push(request.slave);
        let words = format!("{:?}", request.request);
        inside.asked.lock().unwrap().push(words);
        Box::pin(ready(inside.answer(&request.request))) as Answer
    }
}

/// A device on loopback that lives as long as the test's process.
pub fn device() -> (SocketAddr, Arc<Inside>) {
    let inside = Arc::<Inside>::default();
    let (told, address) = mpsc::channel();
    let theirs = Arc::clone(&inside);
    std::thread::spawn(move || {
        let runtime = runtime().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            told.send(listener.local_addr().unwrap()).unwrap();
            let connected = |stream, _| {
                theirs.connections.fetch_add(1, Ordering::SeqCst);
                let session = Session(Arc::clone(&theirs));
                ready(Ok(Some((session, stream)))) as Ready<std::io::Result<_>>
            };
            let _ = Server::new(listener).serve(&connected, |_| {}).await;
        });
    });
    (address.recv().unwrap(), inside)
}
