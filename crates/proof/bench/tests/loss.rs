//! Loss in the laboratory's networks: exactly the packets that were to be lost are.

use std::io::Write;
use std::net::UdpSocket;
use std::time::Duration;

use bumpless_bench::network::filter::{Datagrams, Loss};
use bumpless_bench::network::{Lab, Shape, lab};
use bumpless_bench::peer::Side;
use bumpless_testing::need_namespaces;

/// The laboratory; skips the test where there can be none.
fn laboratory(shape: Shape) -> Lab {
    need_namespaces();
    Lab::new(shape).unwrap()
}

/// A stream of numbered datagrams over one network; says which arrived.
struct Stream {
    from: UdpSocket,
    to: UdpSocket,
}

impl Stream {
    fn new(lab: &Lab, network: u8) -> Self {
        let socket = |side, host| {
            let address = (lab::address(network, host), 5000);
            lab.host(side)
                .run(move || UdpSocket::bind(address).unwrap())
                .unwrap()
        };
        let (from, to) = (socket(Side::Send, 1), socket(Side::Receive, 2));
        from.connect((lab::address(network, 2), 5000)).unwrap();
        to.set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        Self { from, to }
    }

    /// Sends `count` datagrams of `size` bytes and returns the numbers of those that arrive.
    fn send(&self, count: u64, size: usize) -> Vec<u64> {
        let mut datagram = vec![0; size];
        let mut arrived = Vec::new();
        for number in 0..count {
            datagram[..8].copy_from_slice(&number.to_be_bytes());
            self.from.send(&datagram).unwrap();
        }
        while let Ok(length) = self.to.recv(&mut datagram) {
            assert_eq!(length, size);
            arrived.push(u64::from_be_bytes(datagram[..8].try_into().unwrap()));
        }
        arrived
    }
}

fn exactly_the_named_packets_are_lost() {
    let lab = laboratory(Shape::GigabitByPacket);
    for (network, filter) in (1..).zip(lab.filters()) {
        let stream = Stream::new(&lab, network);
        for (first, count) in [(0, 1), (3, 1), (9, 1), (2, 5), (0, 10), (20, 3)] {
            filter.set(Loss::These { first, count });
            let arrived = stream.send(10, 200);
            let expected: Vec<u64> = (0..10)
                .filter(|n| !(first..first + count).contains(n))
                .collect();
            assert_eq!(arrived, expected, "network {network}, {count} from {first}");
            assert_eq!(
                (filter.seen(), filter.dropped()),
                (10, 10 - expected.len() as u64)
            );
        }
        filter.set(Loss::None);
        assert_eq!(stream.send(50, 1472).len(), 50);
    }
}

fn what_carries_no_state_is_neither_counted_nor_lost() {
    let lab = laboratory(Shape::GigabitByPacket);
    let (stream, filter) = (Stream::new(&lab, 1), &lab.filters()[0]);
    filter.set(Loss::These {
        first: 0,
        count: 1000,
    });
    assert_eq!(stream.send(20, 127).len(), 20);
    assert_eq!((filter.seen(), filter.dropped()), (0, 0));
    assert_eq!(stream.send(20, 128).len(), 0);
}

fn pieces_of_our_states_count_whatever_their_size_and_heartbeats_never() {
    let lab = laboratory(Shape::GigabitByPacket);
    let (stream, filter) = (Stream::new(&lab, 1), &lab.filters()[0]);
    filter.expect(Datagrams::Ours);
    for (first, size, lost) in [
        (0x0001u16, 48, 1),
        (0x2001, 97, 0),
        (0x2001, 1400, 0),
        (0x0001, 1, 1),
    ] {
        filter.set(Loss::These { first: 0, count: 1 });
        let mut datagram = vec![0; size];
        let head = first.to_be_bytes();
        let length = head.len().min(size);
        datagram[..length].copy_from_slice(&head[..length]);
        stream.from.send(&datagram).unwrap();
        // One byte cannot be told from anything: it is let through.
        let lost = if size < 2 { 0 } else { lost };
        assert_eq!(
            stream.to.recv(&mut datagram).is_err(),
            lost == 1,
            "{first:#x}"
        );
        assert_eq!(
            (filter.seen(), filter.dropped()),
            (lost, lost),
            "{first:#x}"
        );
    }
}

fn whatever_tcp_carries_counts() {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    let lab = laboratory(Shape::GigabitByPacket);
    let to = (lab::address(1, 2), 5001);
    let listener = lab
        .host(Side::Receive)
        .run(|| TcpListener::bind(to).unwrap())
        .unwrap();
    let mut stream = lab
        .host(Side::Send)
        .run(|| TcpStream::connect(to).unwrap())
        .unwrap();
    let (mut taken, _) = listener.accept().unwrap();
    let filter = &lab.filters()[0];
    filter.set(Loss::None);
    stream.set_nodelay(true).unwrap();
    for _ in 0..3 {
        stream.write_all(b"x").unwrap();
        taken.read_exact(&mut [0]).unwrap();
    }
    // Three of a byte; acknowledgements carry nothing.
    assert_eq!(filter.seen(), 3);
}

fn a_datagram_in_fragments_is_lost_with_one_of_them() {
    let lab = laboratory(Shape::GigabitByPacket);
    let (stream, filter) = (Stream::new(&lab, 1), &lab.filters()[0]);
    // 4000 bytes make three packets of which the second is lost.
    filter.set(Loss::These { first: 1, count: 1 });
    assert_eq!(stream.send(2, 4000), [1]);
    assert_eq!((filter.seen(), filter.dropped()), (6, 1));
}

fn random_and_periodic_loss_lose_about_what_they_should() {
    let lab = laboratory(Shape::GigabitByPacket);
    let (stream, filter) = (Stream::new(&lab, 1), &lab.filters()[0]);
    filter.set(Loss::Random(0.2));
    let arrived: usize = (0..20).map(|_| stream.send(100, 200).len()).sum();
    // 1600 of 2000 with a standard deviation of 18.
    assert!((1450..1750).contains(&arrived), "{arrived}");
    assert_eq!(filter.dropped(), 2000 - arrived as u64);
    filter.set(Loss::Every(3_600_000_000_000));
    assert_eq!(stream.send(100, 200), (1..100).collect::<Vec<_>>());
}

fn a_cut_network_carries_nothing_either_way_and_the_other_goes_on() {
    let lab = laboratory(Shape::Unshaped);
    let [a, b] = [1, 2].map(|network| Stream::new(&lab, network));
    lab.filters()[0].set(Loss::CutAfter(4));
    assert_eq!(a.send(10, 200), [0, 1, 2, 3]);
    assert_eq!(b.send(10, 200).len(), 10);
    a.to.connect((lab::address(1, 1), 5000)).unwrap();
    a.from
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    a.to.send(b"back").unwrap();
    assert!(a.from.recv(&mut [0; 8]).is_err());
    assert!(lab.filters()[0].swallowed() >= 7);
    lab.filters()[0].set(Loss::None);
    a.to.send(b"back").unwrap();
    assert_eq!(a.from.recv(&mut [0; 8]).unwrap(), 4);
}

bumpless_testing::tests![
    exactly_the_named_packets_are_lost,
    what_carries_no_state_is_neither_counted_nor_lost,
    pieces_of_our_states_count_whatever_their_size_and_heartbeats_never,
    whatever_tcp_carries_counts,
    a_datagram_in_fragments_is_lost_with_one_of_them,
    random_and_periodic_loss_lose_about_what_they_should,
    a_cut_network_carries_nothing_either_way_and_the_other_goes_on,
];
