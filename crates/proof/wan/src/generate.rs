//! From a shape to a topology.
//!
//! The routers of a pair stand side by side in ring and loop, so that the ring passes through all of them: between
//! pairs a link takes its time, inside a pair none. A loop leads from one router of its backbone pair to the other.
//! The chain of a loop's last pair hangs on the router that is nearer to the ring, as that of the first pair does.

use crate::impairment::Impairment;
use crate::shape::{Shape, ShapeFault};
use crate::topology::{Kind, Layer, Link, Node, NodeId, Topology};

/// A network of this shape.
///
/// # Errors
/// Everything that is wrong with the shape.
pub fn generate(shape: &Shape) -> Result<Topology, Vec<ShapeFault>> {
    let faults = shape.faults();
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut draft = Draft::default();
    let ring = draft.ring(shape);
    for (number, &pair) in ring.iter().enumerate() {
        draft.substation(format!("s{number:02}"), &pair);
        draft.aggregation(shape, number, pair);
    }
    for (number, router) in (1..=shape.centres).zip(ring[0]) {
        let place = draft.node(format!("centre-{number}"), Kind::Centre);
        draft.link(router, place, 0);
    }
    let topology = Topology::new(draft.nodes, draft.links, shape.router_us);
    Ok(topology.expect("a ring with what hangs on it is connected, and its names are numbers"))
}

type Pair = [NodeId; 2];

#[derive(Default)]
struct Draft {
    nodes: Vec<Node>,
    links: Vec<Link>,
}

impl Draft {
    fn node(&mut self, name: String, kind: Kind) -> NodeId {
        self.nodes.push(Node { name, kind });
        NodeId(self.nodes.len() as u32 - 1)
    }

    fn link(&mut self, one: NodeId, other: NodeId, delay_us: u32) {
        self.links.push(Link {
            ends: [one, other],
            delay_us,
            impairment: Impairment::default(),
        });
    }

    fn pair(&mut self, name: &str, layer: Layer) -> Pair {
        let pair = ["a", "b"].map(|side| self.node(format!("{name}{side}"), Kind::Router(layer)));
        self.link(pair[0], pair[1], 0);
        pair
    }

    fn substation(&mut self, name: String, routers: &[NodeId]) {
        let place = self.node(name, Kind::Substation);
        for &router in routers {
            self.link(router, place, 0);
        }
    }

    fn ring(&mut self, shape: &Shape) -> Vec<Pair> {
        let ring: Vec<Pair> = (0..shape.backbone_pairs)
            .map(|number| self.pair(&format!("b{number:02}"), Layer::Backbone))
            .collect();
        for (number, pair) in ring.iter().enumerate() {
            let next = ring[(number + 1) % ring.len()];
            self.link(pair[1], next[0], shape.backbone_us);
        }
        ring
    }

    /// The loop at backbone pair `number`, with its substations and chains.
    fn aggregation(&mut self, shape: &Shape, number: usize, [begin, end]: Pair) {
        let mut before = begin;
        for place in 1..=shape.loop_pairs {
            let name = format!("{number:02}-{place}");
            let pair = self.pair(&format!("g{name}"), Layer::Aggregation);
            self.link(before, pair[0], shape.aggregation_us);
            self.substation(format!("s{name}"), &pair);
            let far = place > 1 && place == shape.loop_pairs;
            self.chain(shape, &name, pair[usize::from(far)]);
            before = pair[1];
        }
        if shape.loop_pairs > 0 {
            self.link(before, end, shape.aggregation_us);
        }
    }

    fn chain(&mut self, shape: &Shape, name: &str, router: NodeId) {
        let mut before = router;
        for place in 1..=shape.chain_routers {
            let next = self.node(format!("c{name}-{place}"), Kind::Router(Layer::Access));
            self.link(before, next, shape.access_us);
            self.substation(format!("s{name}-{place}"), &[next]);
            before = next;
        }
    }
}
