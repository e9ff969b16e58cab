//! What is served: the old form of discovery, a document a group.

use super::super::table::{Codec, Kind::*, Message, field, message};
use super::Type;

/// The versions of the core group are older than groups, and have no apiVersion.
pub(super) static TYPES: &[Type] = &[
    ("", "APIVersions", &API_VERSIONS),
    ("v1", "APIGroupList", &API_GROUP_LIST),
    ("v1", "APIGroup", &API_GROUP),
    ("v1", "APIResourceList", &API_RESOURCE_LIST),
];

static API_VERSIONS: Message = Message::new(
    "APIVersions",
    &[
        field(1, "versions", String).list().always(),
        message(2, "serverAddressByClientCIDRs", &SERVER_ADDRESS).list().always(),
    ],
);

static API_GROUP_LIST: Message = Message::new("APIGroupList", &[message(1, "groups", &API_GROUP).list().always()]);

static API_GROUP: Message = Message::new(
    "APIGroup",
    &[
        field(1, "name", String).always(),
        message(2, "versions", &GROUP_VERSION).list().always(),
        message(3, "preferredVersion", &GROUP_VERSION),
        message(4, "serverAddressByClientCIDRs", &SERVER_ADDRESS).list(),
    ],
);

static SERVER_ADDRESS: Message = Message::new(
    "ServerAddressByClientCIDR",
    &[field(1, "clientCIDR", String).always(), field(2, "serverAddress", String).always()],
);

static GROUP_VERSION: Message = Message::new(
    "GroupVersionForDiscovery",
    &[field(1, "groupVersion", String).always(), field(2, "version", String).always()],
);

static API_RESOURCE_LIST: Message = Message::new(
    "APIResourceList",
    &[
        field(1, "groupVersion", String).always(),
        message(2, "resources", &API_RESOURCE).list().always().go("APIResources"),
    ],
);

static API_RESOURCE: Message = Message::new(
    "APIResource",
    &[
        field(1, "name", String).always(),
        field(2, "namespaced", Bool).always(),
        field(3, "kind", String).always(),
        message(4, "verbs", &VERBS).pointer().always(),
        field(5, "shortNames", String).list(),
        field(6, "singularName", String).always(),
        field(7, "categories", String).list(),
        field(8, "group", String),
        field(9, "version", String),
        field(10, "storageVersionHash", String),
    ],
);

static VERBS: Message = Message::new("Verbs", &[field(1, "", String).list().go("Items")]).codec(Codec::List);
