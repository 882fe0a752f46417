//! How the pair is, as its own status says.

use bumpless_base::Role;
use bumpless_node::event::Redundancy;

use super::World;
use crate::check::Health;

impl World {
    /// Has the checkers look at every group.
    pub(super) fn look(&mut self) {
        let mut not_redundant = Vec::new();
        for (group, settings) in self.config.groups.iter().enumerate() {
            let mut primaries = 0;
            for candidate in &settings.candidates {
                let node = usize::from(candidate.0);
                let name = &self.config.nodes[node].name;
                match self.wrong_with(node, group) {
                    Err(wrong) => {
                        not_redundant.push(format!("group {}, node {name}: {wrong}", settings.name))
                    }
                    Ok(primary) => primaries += u32::from(primary),
                }
            }
            if not_redundant.is_empty() && primaries != 1 {
                not_redundant.push(format!("group {}: {primaries} primaries", settings.name));
            }
        }
        not_redundant.extend(self.wrong_with_configurations());
        let now = self.now();
        self.checks.health(&Health { not_redundant }, now);
    }

    /// What keeps the pair from being redundant, by this node's status; else whether it is primary.
    fn wrong_with(&self, node: usize, group: usize) -> Result<bool, String> {
        let process = self.hosts[node].process.as_ref();
        let plane = &process.ok_or("its process does not run")?.plane;
        let runtime = plane.groups().iter().find(|g| usize::from(g.id.0) == group);
        let snapshot = &runtime.ok_or("is no candidate")?.snapshot;
        if snapshot.redundancy != Redundancy::Ok {
            return Err(format!(
                "{:?}, redundancy {}: {}",
                snapshot.role,
                snapshot.redundancy.name(),
                snapshot.cause.as_str()
            ));
        }
        let primary = snapshot.role == Role::Primary;
        if primary && snapshot.permit_until.is_none() {
            return Err("primary without the right to write".into());
        }
        Ok(primary)
    }
}
