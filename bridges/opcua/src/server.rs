//! The OPC UA server: what it offers, its limits, and the standard's nodes for redundancy.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opcua::crypto::SecurityPolicy;
use opcua::server::diagnostics::NamespaceMetadata;
use opcua::server::node_manager::memory::{
    CoreNodeManager, SimpleNodeManager, simple_node_manager,
};
use opcua::server::{
    ANONYMOUS_USER_TOKEN_ID, Limits, Server, ServerBuilder, ServerEndpoint, ServerHandle,
};
use opcua::types::{
    BuildInfo, DataValue, DateTime, MessageSecurityMode, NodeId, ObjectId, ObjectTypeId,
    RedundancySupport, ReferenceTypeId, VariableId,
};

use crate::address_space::{NAMESPACE, Nodes};
use crate::gate::POLICIES;
use crate::identity;

/// Sessions at a time.
pub const SESSIONS_MAX: usize = 32;
/// Subscriptions of one session.
pub const SUBSCRIPTIONS_MAX: usize = 10;
/// Monitored items of one subscription.
pub const ITEMS_MAX: usize = 1000;
/// A session that asks for nothing ends after so long, milliseconds.
const SESSION_MS: u64 = 60_000;
/// A subscription outlives its session for so many publishing intervals.
const LIFETIME_MAX: u32 = 900;
/// Nodes in one request.
const NODES_MAX: usize = 1000;

/// What the server is told.
#[derive(Clone, Debug)]
pub struct Setting {
    /// ApplicationUri of this server.
    pub uri: String,
    /// ApplicationUri of the partner's server, if there is one.
    pub partner_uri: Option<String>,
    /// How clients call this computer.
    pub host: String,
    /// The folder with certificate, key and trusted clients; `None`: without security.
    pub files: Option<PathBuf>,
}

/// The server, what commands it, and its nodes.
///
/// # Errors
/// What the library says of the settings.
pub fn build(setting: &Setting) -> Result<(Server, ServerHandle, Nodes), String> {
    let namespace = NamespaceMetadata {
        namespace_uri: NAMESPACE.into(),
        ..Default::default()
    };
    let product = match setting.files {
        Some(_) => "Bumpless OPC UA bridge",
        None => "Bumpless OPC UA bridge (WITHOUT SECURITY)",
    };
    let build_info = BuildInfo {
        product_uri: "urn:bumpless".into(),
        manufacturer_name: "Bumpless".into(),
        product_name: product.into(),
        software_version: env!("CARGO_PKG_VERSION").into(),
        build_number: env!("CARGO_PKG_VERSION").into(),
        build_date: DateTime::null(),
    };
    let mut builder = ServerBuilder::new()
        .application_name(product)
        .application_uri(&setting.uri)
        .product_uri("urn:bumpless")
        .build_info(build_info)
        .host(&setting.host)
        .discovery_urls(vec!["/".into()])
        .certificate_path(identity::CERTIFICATE)
        .private_key_path(identity::KEY)
        // Without security there is nothing to read or keep.
        .pki_dir(setting.files.as_deref().unwrap_or(Path::new("/dev/null")))
        .trust_client_certs(false)
        .max_session_timeout_ms(SESSION_MS)
        .limits(limits())
        .with_node_manager(simple_node_manager(namespace, "bumpless"));
    for (name, endpoint) in endpoints(setting.files.is_some()) {
        builder = builder.add_endpoint(name, endpoint);
    }
    let (server, handle) = builder.build()?;
    let manager = handle.node_managers().get_of_type::<SimpleNodeManager>();
    let (Some(manager), Some(namespace)) = (manager, handle.get_namespace_index(NAMESPACE)) else {
        return Err("the server has no nodes of its own".into());
    };
    let core = handle.node_managers().get_of_type::<CoreNodeManager>();
    let core = core.ok_or("the server has no standard nodes")?;
    show_redundancy(&core, setting);
    let nodes = Nodes::new(manager, Arc::clone(handle.subscriptions()), namespace);
    Ok((server, handle, nodes))
}

fn endpoints(with_security: bool) -> Vec<(String, ServerEndpoint)> {
    let anybody = [ANONYMOUS_USER_TOKEN_ID.to_owned()];
    if !with_security {
        return vec![("none".into(), ServerEndpoint::new_none("/", &anybody))];
    }
    let with = |policy: SecurityPolicy| {
        let mode = MessageSecurityMode::SignAndEncrypt;
        (
            policy.to_string(),
            ServerEndpoint::new("/", policy, mode, &anybody),
        )
    };
    POLICIES.map(with).to_vec()
}

fn limits() -> Limits {
    let mut limits = Limits {
        max_sessions: SESSIONS_MAX,
        max_browse_continuation_points: 100,
        max_history_continuation_points: 1,
        max_query_continuation_points: 1,
        ..Limits::default()
    };
    let subscriptions = &mut limits.subscriptions;
    subscriptions.max_subscriptions_per_session = SUBSCRIPTIONS_MAX;
    subscriptions.max_monitored_items_per_sub = ITEMS_MAX;
    subscriptions.max_lifetime_count = LIFETIME_MAX;
    subscriptions.max_keep_alive_count = LIFETIME_MAX / 3;
    let operations = &mut limits.operational;
    operations.max_nodes_per_read = NODES_MAX;
    operations.max_nodes_per_write = NODES_MAX;
    operations.max_nodes_per_browse = NODES_MAX;
    operations.max_monitored_items_per_call = NODES_MAX;
    limits
}

/// Server/ServerRedundancy: with a partner of the type and with the nodes that non-transparent redundancy has
/// (OPC 10000-5, 6.3.9), which the standard's node set leaves to the server.
fn show_redundancy(core: &CoreNodeManager, setting: &Setting) {
    let mut space = core.address_space().write();
    let redundancy = NodeId::from(ObjectId::Server_ServerRedundancy);
    let servers: NodeId = VariableId::Server_ServerRedundancy_ServerUriArray.into();
    // States of the partner's server are the partner's to tell.
    for unused in [
        VariableId::Server_ServerRedundancy_RedundantServerArray,
        VariableId::Server_ServerRedundancy_CurrentServerId,
        VariableId::Server_ServerRedundancy_ServerNetworkGroups,
    ] {
        space.delete(&unused.into(), true);
    }
    let support = match setting.partner_uri {
        Some(_) => RedundancySupport::Hot,
        None => RedundancySupport::None,
    };
    let mut set = |id: &NodeId, value: DataValue| {
        if let Some(opcua::nodes::NodeType::Variable(variable)) = space.find_mut(id) {
            variable.set_data_value(value);
        }
    };
    let support_id = VariableId::Server_ServerRedundancy_RedundancySupport.into();
    set(&support_id, DataValue::new_now(support as i32));
    let Some(partner) = &setting.partner_uri else {
        space.delete(&servers, true);
        return;
    };
    let mut both = vec![setting.uri.clone(), partner.clone()];
    both.sort();
    set(&servers, DataValue::new_now(both));
    space.insert_reference(&redundancy, &servers, ReferenceTypeId::HasProperty);
    let plain: NodeId = ObjectTypeId::ServerRedundancyType.into();
    let hot: NodeId = ObjectTypeId::NonTransparentRedundancyType.into();
    let is_of: NodeId = ReferenceTypeId::HasTypeDefinition.into();
    space.delete_reference(&redundancy, &plain, &is_of);
    space.insert_reference(&redundancy, &hot, ReferenceTypeId::HasTypeDefinition);
}
