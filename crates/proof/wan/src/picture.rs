//! A page that shows every node, tells what it is under the pointer, and finds it by name.
//!
//! The ring is a circle. A loop is an arc outside of its backbone pair, a chain a ray outside of its loop, so no two
//! nodes of a generated network lie upon each other. Nodes of other networks stand on circles by their layer.

use std::f64::consts::TAU;
use std::fmt::Write;

use bumpless_svg::{Anchor, Svg};

use crate::address::Addresses;
use crate::topology::{Kind, Layer, NodeId, Topology};

/// Width and height of the drawing.
const SIDE: f64 = 1400.0;
/// How far from the middle the layers lie: ring, loops, first router of a chain; and the step from one router of a chain to the next.
const RING: f64 = 250.0;
const LOOPS: f64 = 380.0;
const CHAINS: f64 = 450.0;
const STEP: f64 = 62.0;
/// How far outside of its routers a substation stands.
const OUTSIDE: f64 = 22.0;

/// The page.
pub fn page(topology: &Topology, addresses: &Addresses) -> String {
    let positions = positions(topology);
    let mut svg = Svg::default();
    for link in topology.links() {
        let class = if link.delay_us > 0 { "far" } else { "near" };
        svg.line(
            class,
            positions[link.ends[0].index()],
            positions[link.ends[1].index()],
        );
    }
    for place in topology.places() {
        let (x, y) = positions[place.index()];
        let (class, half) = look(topology.node(place).kind);
        let tip = tip(topology, addresses, place);
        svg.rect(class, (x - half, y - half), (2.0 * half, 2.0 * half), &tip);
    }
    for place in topology.places() {
        let node = topology.node(place);
        if matches!(node.kind, Kind::Centre | Kind::Router(Layer::Backbone)) {
            let (x, y) = positions[place.index()];
            svg.text("name", (x, y - 9.0), Anchor::Middle, &node.name);
        }
    }
    let drawing = svg.finish(SIDE, SIDE, "The network, every node");
    let mut page = String::from(HEAD);
    let count = |wanted: fn(Kind) -> bool| {
        topology
            .nodes()
            .iter()
            .filter(|node| wanted(node.kind))
            .count()
    };
    let _ = write!(
        page,
        "<p>{} routers, {} substations, {} control centres, {} links, {} of them with a delay.</p>\n{FIND}{drawing}{SCRIPT}",
        count(Kind::forwards),
        count(|kind| kind == Kind::Substation),
        count(|kind| kind == Kind::Centre),
        topology.links().len(),
        topology
            .links()
            .iter()
            .filter(|link| link.delay_us > 0)
            .count(),
    );
    page
}

fn look(kind: Kind) -> (&'static str, f64) {
    match kind {
        Kind::Router(Layer::Backbone) => ("backbone", 6.0),
        Kind::Router(Layer::Aggregation) => ("aggregation", 5.0),
        Kind::Router(Layer::Access) => ("access", 4.0),
        Kind::Substation => ("substation", 3.0),
        Kind::Centre => ("centre", 7.0),
    }
}

/// Name, kind, address, and what is at the other end of each link.
fn tip(topology: &Topology, addresses: &Addresses, place: NodeId) -> String {
    let node = topology.node(place);
    let kind = match node.kind {
        Kind::Router(Layer::Backbone) => "router of the backbone",
        Kind::Router(Layer::Aggregation) => "router of a loop",
        Kind::Router(Layer::Access) => "router of a chain",
        Kind::Substation => "substation",
        Kind::Centre => "control centre",
    };
    let mut tip = format!("{}: {kind}", node.name);
    if let Some(address) = addresses.host(place) {
        let _ = write!(tip, ", {address}");
    }
    for &link in topology.links_at(place) {
        let link = topology.links()[link];
        let _ = write!(
            tip,
            "\n{} us to {}",
            link.delay_us,
            topology.node(link.other(place)).name
        );
    }
    tip
}

/// Where each node stands.
fn positions(topology: &Topology) -> Vec<(f64, f64)> {
    let mut turns: Vec<Option<(f64, f64)>> = vec![None; topology.nodes().len()];
    let ring: Vec<NodeId> = of(topology, Layer::Backbone);
    for (number, node) in ring.iter().enumerate() {
        turns[node.index()] = Some((number as f64 / ring.len() as f64, RING));
    }
    let loops: Vec<NodeId> = of(topology, Layer::Aggregation);
    for (number, node) in loops.iter().enumerate() {
        // A loop's routers follow each other, and loops as their backbone pairs do; half a place back, they lie around the pair.
        let share = (number as f64 + 0.5) / loops.len() as f64;
        let back = 0.5 / ring.len().max(1) as f64;
        turns[node.index()] = Some((share - back, LOOPS));
    }
    for node in of(topology, Layer::Access) {
        turns[node.index()] = Some(outside(topology, &turns, node, CHAINS, STEP));
    }
    for node in topology.hosts() {
        turns[node.index()] = Some(match topology.node(node).kind {
            Kind::Centre => inside(topology, &turns, node),
            _ => outside(topology, &turns, node, 0.0, OUTSIDE),
        });
    }
    let middle = SIDE / 2.0;
    let point = |(turn, radius): (f64, f64)| {
        let angle = turn * TAU - TAU / 4.0;
        (middle + radius * angle.cos(), middle + radius * angle.sin())
    };
    turns
        .into_iter()
        .map(|turn| point(turn.unwrap_or((0.0, 0.0))))
        .collect()
}

fn of(topology: &Topology, layer: Layer) -> Vec<NodeId> {
    let wanted = |&place: &NodeId| topology.node(place).kind == Kind::Router(layer);
    topology.places().filter(wanted).collect()
}

/// Places of the neighbours that have one.
fn neighbours(topology: &Topology, turns: &[Option<(f64, f64)>], node: NodeId) -> Vec<(f64, f64)> {
    let links = topology.links_at(node).iter();
    links
        .filter_map(|&link| turns[topology.links()[link].other(node).index()])
        .collect()
}

/// Farther out than what it hangs on, a little to the side if that is on the same ray.
fn outside(
    topology: &Topology,
    turns: &[Option<(f64, f64)>],
    node: NodeId,
    least: f64,
    step: f64,
) -> (f64, f64) {
    let around = neighbours(topology, turns, node);
    let count = around.len().max(1) as f64;
    let turn = around.iter().map(|(turn, _)| turn).sum::<f64>() / count;
    let radius = around.iter().map(|(_, radius)| *radius).fold(0.0, f64::max);
    let aside = if around.len() == 1 && !topology.node(node).kind.forwards() {
        0.004
    } else {
        0.0
    };
    (turn + aside, (radius + step).max(least))
}

fn inside(topology: &Topology, turns: &[Option<(f64, f64)>], node: NodeId) -> (f64, f64) {
    let around = neighbours(topology, turns, node);
    let (turn, radius) = around.first().copied().unwrap_or((0.0, RING));
    (turn, radius - 60.0)
}

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Wide-area network</title><style>
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#9aa4af}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--line:#545d68}}
body{font:16px/1.5 system-ui,sans-serif;margin:2rem;color:var(--ink);background:var(--paper)}
svg{width:100%;max-width:1400px;height:auto}
line{stroke:var(--line)}.near{stroke-width:1;stroke-dasharray:3 2}.far{stroke-width:1.6}
.backbone{fill:#0b61a4}.aggregation{fill:#1a8a5a}.access{fill:#b3720a}.substation{fill:#7a7f87}.centre{fill:#b0233a}
.name{font-size:11px;fill:var(--ink)}.found{stroke:#e3116c;stroke-width:6}
</style></head><body>\n<h1>Wide-area network</h1>\n";
const FIND: &str = "<p><label>Find a node: <input id=\"find\" autocomplete=\"off\"></label> <output id=\"said\"></output></p>
<p>Blue: backbone, green: loops, amber: chains, grey: substations, red: control centres. A dashed link takes no time.</p>\n";
const SCRIPT: &str = "<script>
const boxes=[...document.querySelectorAll('rect')],said=document.getElementById('said');
document.getElementById('find').addEventListener('input',event=>{
  const wanted=event.target.value.trim().toLowerCase();let found=0,tip='';
  for(const box of boxes){const text=box.textContent,name=text.split(':')[0].toLowerCase();
    const is=wanted!==''&&name===wanted||wanted.length>1&&name.startsWith(wanted);
    box.classList.toggle('found',is);if(is){found++;tip=text}}
  said.textContent=wanted===''?'':found===1?tip:found+' nodes';
});
</script></body></html>\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Pool;
    use crate::{Shape, generate};
    use std::collections::HashSet;

    #[test]
    fn every_node_of_the_default_network_stands_in_a_place_of_its_own() {
        let topology = generate(&Shape::default()).unwrap();
        let places: HashSet<(i64, i64)> = positions(&topology)
            .into_iter()
            .map(|(x, y)| ((x * 2.0) as i64, (y * 2.0) as i64))
            .collect();
        assert_eq!(places.len(), topology.nodes().len());
        let within = |(x, y): &(i64, i64)| {
            (0..2 * SIDE as i64).contains(x) && (0..2 * SIDE as i64).contains(y)
        };
        assert!(places.iter().all(within));
    }

    #[test]
    fn the_page_names_every_node() {
        let topology = generate(&Shape::default()).unwrap();
        let addresses = Addresses::new(&topology, Pool::V4).unwrap();
        let page = page(&topology, &addresses);
        for node in topology.nodes() {
            assert!(
                page.contains(&format!("<title>{}: ", node.name)),
                "{}",
                node.name
            );
        }
    }
}
