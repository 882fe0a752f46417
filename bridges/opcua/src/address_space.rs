//! The nodes that clients see below Objects/Bumpless, kept to what the node says.

use std::collections::BTreeMap;
use std::sync::Arc;

use opcua::nodes::{ObjectBuilder, VariableBuilder};
use opcua::server::SubscriptionCache;
use opcua::server::address_space::AddressSpace;
use opcua::server::node_manager::memory::SimpleNodeManager;
use opcua::types::{
    DataTypeId, DataValue, NodeId, ObjectId, ObjectTypeId, QualifiedName, StatusCode,
    VariableTypeId, Variant,
};

use bumpless_bridge::model::{Entry, Kind, Quality, Shown};

/// Namespace of all that is not the standard's.
pub const NAMESPACE: &str = "urn:bumpless:opcua:1";
/// Identifier and name of the object that all is in.
const ROOT: &str = "Bumpless";

/// What is shown at present.
pub struct Nodes {
    manager: Arc<SimpleNodeManager>,
    subscriptions: Arc<SubscriptionCache>,
    namespace: u16,
    /// By identifier; `None`: the node does not say it.
    values: BTreeMap<String, Option<(Shown, Quality)>>,
}

impl Nodes {
    /// Nothing is shown yet but the object that all will be in.
    pub fn new(
        manager: Arc<SimpleNodeManager>,
        subscriptions: Arc<SubscriptionCache>,
        namespace: u16,
    ) -> Self {
        let id = NodeId::new(namespace, ROOT);
        ObjectBuilder::new(&id, QualifiedName::new(namespace, ROOT), ROOT)
            .organized_by(ObjectId::ObjectsFolder)
            .has_type_definition(ObjectTypeId::BaseObjectType)
            .insert(&mut *manager.address_space().write());
        Self {
            manager,
            subscriptions,
            namespace,
            values: BTreeMap::new(),
        }
    }

    /// Shows `entries`, and nothing else.
    pub fn show(&mut self, entries: &[Entry]) {
        let mut changed = Vec::new();
        let mut gone: BTreeMap<_, _> = std::mem::take(&mut self.values);
        for entry in entries {
            let id = identifier(&entry.folders, &entry.name);
            let before = gone.remove(&id);
            if before.is_none() {
                self.make(&id, entry);
            }
            let told = (entry.value.clone(), entry.quality);
            if before.flatten().as_ref() != Some(&told) {
                let value = variant(&entry.value);
                let value = DataValue::new_now_status(value, status(entry.quality));
                changed.push((self.node_id(&id), value));
            }
            self.values.insert(id, Some(told));
        }
        self.set(changed);
        // Told first, since who has subscribed to it hears nothing more of a node that is gone.
        let ended = gone
            .keys()
            .map(|id| (self.node_id(id), lost(StatusCode::BadNodeIdUnknown)));
        self.set(ended.collect());
        let mut space = self.manager.address_space().write();
        for id in gone.keys() {
            space.delete(&NodeId::new(self.namespace, id.as_str()), true);
        }
    }

    /// The node does not answer: of nothing it is known whether it still holds.
    pub fn lose(&mut self) {
        let known = self.values.iter_mut().filter(|(_, value)| value.is_some());
        let mut changed = Vec::new();
        for (id, value) in known {
            *value = None;
            let id = NodeId::new(self.namespace, id.as_str());
            changed.push((id, lost(StatusCode::BadNoCommunication)));
        }
        self.set(changed);
    }

    fn set(&self, values: Vec<(NodeId, DataValue)>) {
        let values = values.iter().map(|(id, value)| (id, None, value.clone()));
        // Each of them was made; a node that is not there is one that is not shown.
        let _ = self.manager.set_values(&self.subscriptions, values);
    }

    fn node_id(&self, identifier: &str) -> NodeId {
        NodeId::new(self.namespace, identifier)
    }

    /// Makes the variable, and the folders that it is in.
    fn make(&self, id: &str, entry: &Entry) {
        let mut space = self.manager.address_space().write();
        let mut parent = NodeId::new(self.namespace, ROOT);
        for depth in 1..=entry.folders.len() {
            parent = self.make_folder(&mut space, &parent, &entry.folders[..depth]);
        }
        let (data_type, rank) = data_type(entry.kind);
        VariableBuilder::new(
            &self.node_id(id),
            QualifiedName::new(self.namespace, &entry.name),
            &entry.name,
        )
        .component_of(parent)
        .has_type_definition(VariableTypeId::BaseDataVariableType)
        .data_type(data_type)
        .value_rank(rank)
        .insert(&mut *space);
    }

    fn make_folder(&self, space: &mut AddressSpace, parent: &NodeId, folders: &[String]) -> NodeId {
        let id = self.node_id(&folders.join("/"));
        if let (false, Some(name)) = (space.node_exists(&id), folders.last()) {
            ObjectBuilder::new(&id, QualifiedName::new(self.namespace, name), name)
                .component_of(parent.clone())
                .has_type_definition(ObjectTypeId::FolderType)
                .insert(space);
        }
        id
    }
}

fn identifier(folders: &[String], name: &str) -> String {
    match folders {
        [] => name.into(),
        _ => format!("{}/{name}", folders.join("/")),
    }
}

/// OPC 10000-4, 7.39.2.
const fn status(quality: Quality) -> StatusCode {
    match quality {
        Quality::Good => StatusCode::Good,
        Quality::LastUsable => StatusCode::UncertainLastUsableValue,
        Quality::Silent => StatusCode::UncertainNoCommunicationLastUsableValue,
        Quality::Awaited => StatusCode::BadWaitingForInitialData,
    }
}

fn lost(status: StatusCode) -> DataValue {
    DataValue::new_now_status(Variant::Empty, status)
}

/// Type, and rank: one value, or an array.
fn data_type(kind: Kind) -> (DataTypeId, i32) {
    match kind {
        Kind::Text => (DataTypeId::String, -1),
        Kind::Texts => (DataTypeId::String, 1),
        Kind::Flag => (DataTypeId::Boolean, -1),
        Kind::Count => (DataTypeId::UInt64, -1),
        Kind::Real => (DataTypeId::Double, -1),
    }
}

fn variant(value: &Shown) -> Variant {
    match value {
        Shown::Nothing => Variant::Empty,
        Shown::Text(text) => text.as_str().into(),
        Shown::Texts(texts) => texts.clone().into(),
        Shown::Flag(flag) => (*flag).into(),
        Shown::Count(count) => (*count).into(),
        Shown::Real(real) => (*real).into(),
    }
}
