//! Modbus TCP by hand: a foreign writer, and field devices that misbehave.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A write of both pump voltages as `spec/field.md` F-3 says; gives the answer's function code.
pub fn write_outputs(plant: SocketAddr, epoch: u32, cycle: u64) -> u8 {
    let mut block = Vec::new();
    block.extend(epoch.to_be_bytes());
    block.extend([0, 77, 0, 0]);
    block.extend(cycle.to_be_bytes());
    block.extend(3f32.to_be_bytes());
    block.extend(3f32.to_be_bytes());
    let mut body = vec![1, 0x10, 0, 0, 0, (block.len() / 2) as u8, block.len() as u8];
    body.extend(block);
    let mut request = vec![0, 1, 0, 0, 0, body.len() as u8];
    request.extend(body);
    let mut stream = TcpStream::connect(plant).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream.write_all(&request).unwrap();
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).unwrap();
    answer[7]
}

/// A field device that takes connections and answers every request with an exception.
pub struct Refusing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Refusing {
    /// Exception 4, server device failure, at `address`.
    pub fn start(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = thread::spawn(move || refuse(&listener, &stopping));
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Refusing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn refuse(listener: &TcpListener, stop: &AtomicBool) {
    let mut streams: Vec<TcpStream> = Vec::new();
    while !stop.load(Ordering::Acquire) {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).unwrap();
            streams.push(stream);
        }
        for stream in &mut streams {
            let mut request = [0; 512];
            if let Ok(length @ 8..) = stream.read(&mut request) {
                debug_assert!(length <= request.len());
                let [t0, t1, .., unit, function] = request[..8] else {
                    unreachable!("eight bytes were taken")
                };
                let _ = stream.write_all(&[t0, t1, 0, 0, 0, 3, unit, function | 0x80, 4]);
            }
        }
        thread::sleep(Duration::from_micros(500));
    }
}
