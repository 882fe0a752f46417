//! Links as people name them.

use crate::topology::Topology;

/// The links that `what` means: `NODE`, all of that node, or `NODE:NODE`, all between the two.
///
/// # Errors
/// No node is called so, or it has no link, or no link is there.
pub fn ends_of(topology: &Topology, what: &str) -> Result<Vec<usize>, String> {
    let find = |name: &str| {
        topology.find(name).ok_or_else(|| {
            format!("no node is called {name:?}; `bumpless wan topology --json` names them all")
        })
    };
    let Some((one, other)) = what.split_once(':') else {
        return match topology.links_at(find(what)?) {
            [] => Err(format!(
                "no link is at {what}, the only node of the network"
            )),
            links => Ok(links.to_vec()),
        };
    };
    let (one, other) = (find(one)?, find(other)?);
    let at = topology.links_at(one).iter().copied();
    let between: Vec<_> = at
        .filter(|&index| topology.links()[index].other(one) == other)
        .collect();
    if between.is_empty() {
        let near: Vec<_> = topology
            .links_at(one)
            .iter()
            .map(|&index| {
                let next = topology.links()[index].other(one);
                topology.node(next).name.as_str()
            })
            .collect();
        return Err(format!(
            "no link is between {} and {}; {} is linked to {}",
            topology.node(one).name,
            topology.node(other).name,
            topology.node(one).name,
            near.join(", ")
        ));
    }
    Ok(between)
}
