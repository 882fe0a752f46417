//! Whether states reached the backup in time, as the nodes tell it.

use super::site::Site;

/// How many transfers of each application have failed on each node, and the longest stall of a node, milliseconds.
pub fn failed(site: &Site) -> (Vec<u64>, f64) {
    let statuses = ["left", "right"].map(|node| site.status(node).unwrap());
    let longest = statuses
        .iter()
        .map(|it| it["stalls"]["longest_ms"].as_f64().unwrap());
    let applications = statuses
        .iter()
        .flat_map(|it| it["applications"].as_array().unwrap());
    let failed = applications.map(|it| it["transfers_failed"].as_u64().unwrap());
    (failed.collect(), longest.fold(0.0, f64::max))
}

/// No transfer of either node has failed since `before`, unless the machine held one of them up for so long that it says so: with a
/// period of 50 ms, a fifth of that is not the flood's doing alone.
pub fn none_failed_since(site: &Site, before: &[u64]) {
    let (failed, longest) = failed(site);
    println!(
        "transfers that failed: {before:?}, then {failed:?}; the longest stall of a node: {longest} ms"
    );
    assert!(
        longest > 10.0 || failed == before,
        "{before:?}, {failed:?}, {longest} ms"
    );
}

/// None has failed since the start.
pub fn none_failed(site: &Site) {
    let none: Vec<u64> = failed(site).0.iter().map(|_| 0).collect();
    none_failed_since(site, &none);
}
