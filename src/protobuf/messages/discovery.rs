//! What is served: the old form of discovery, a document a group.

use super::Type;
use crate::types::{Codec, Message, boolean, message, string};

/// The versions of the core group are older than groups, and have no apiVersion.
pub(super) static TYPES: &[Type] = &[
    ("", "APIVersions", &API_VERSIONS),
    ("v1", "APIGroupList", &API_GROUP_LIST),
    ("v1", "APIGroup", &API_GROUP),
    ("v1", "APIResourceList", &API_RESOURCE_LIST),
];

static API_VERSIONS: Message = Message::new(
    "APIVersions",
    &[string(1, "versions").list().always(), message(2, "serverAddressByClientCIDRs", &SERVER_ADDRESS).list().always()],
);

static API_GROUP_LIST: Message = Message::new("APIGroupList", &[message(1, "groups", &API_GROUP).list().always()]);

static API_GROUP: Message = Message::new(
    "APIGroup",
    &[
        string(1, "name").always(),
        message(2, "versions", &GROUP_VERSION).list().always(),
        message(3, "preferredVersion", &GROUP_VERSION),
        message(4, "serverAddressByClientCIDRs", &SERVER_ADDRESS).list(),
    ],
);

static SERVER_ADDRESS: Message =
    Message::new("ServerAddressByClientCIDR", &[string(1, "clientCIDR").always(), string(2, "serverAddress").always()]);

static GROUP_VERSION: Message =
    Message::new("GroupVersionForDiscovery", &[string(1, "groupVersion").always(), string(2, "version").always()]);

static API_RESOURCE_LIST: Message = Message::new(
    "APIResourceList",
    &[string(1, "groupVersion").always(), message(2, "resources", &API_RESOURCE).list().always().go("APIResources")],
);

static API_RESOURCE: Message = Message::new(
    "APIResource",
    &[
        string(1, "name").always(),
        boolean(2, "namespaced").always(),
        string(3, "kind").always(),
        message(4, "verbs", &VERBS).pointer().always(),
        string(5, "shortNames").list(),
        string(6, "singularName").always(),
        string(7, "categories").list(),
        string(8, "group"),
        string(9, "version"),
        string(10, "storageVersionHash"),
    ],
);

static VERBS: Message = Message::new("Verbs", &[string(1, "").list().go("Items")]).codec(Codec::List);
