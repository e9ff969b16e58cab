//! CustomResourceDefinition, apiextensions.k8s.io/v1.

use super::super::table::{Kind::*, Message, field, message};
use super::Type;
use super::json_schema::JSON_SCHEMA_PROPS;
use super::metadata::{LIST_META, OBJECT_META, TIME};

pub(super) static TYPES: &[Type] = &[
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", &DEFINITION),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinitionList", &LIST),
];

static LIST: Message = Message::new(
    "CustomResourceDefinitionList",
    &[message(1, "metadata", &LIST_META).go("ListMeta"), message(2, "items", &DEFINITION).list().always()],
);

static DEFINITION: Message = Message::new(
    "CustomResourceDefinition",
    &[message(1, "metadata", &OBJECT_META).go("ObjectMeta"), message(2, "spec", &SPEC), message(3, "status", &STATUS)],
);

static SPEC: Message = Message::new(
    "CustomResourceDefinitionSpec",
    &[
        field(1, "group", String).always(),
        message(3, "names", &NAMES),
        field(4, "scope", String).always(),
        message(7, "versions", &VERSION).list().always(),
        message(9, "conversion", &CONVERSION).pointer(),
        field(10, "preserveUnknownFields", Bool),
    ],
);

static NAMES: Message = Message::new(
    "CustomResourceDefinitionNames",
    &[
        field(1, "plural", String).always(),
        field(2, "singular", String),
        field(3, "shortNames", String).list(),
        field(4, "kind", String).always(),
        field(5, "listKind", String),
        field(6, "categories", String).list(),
    ],
);

static VERSION: Message = Message::new(
    "CustomResourceDefinitionVersion",
    &[
        field(1, "name", String).always(),
        field(2, "served", Bool).always(),
        field(3, "storage", Bool).always(),
        message(4, "schema", &VALIDATION).pointer(),
        message(5, "subresources", &SUBRESOURCES).pointer(),
        message(6, "additionalPrinterColumns", &COLUMN).list(),
        field(7, "deprecated", Bool),
        field(8, "deprecationWarning", String).pointer(),
        message(9, "selectableFields", &SELECTABLE_FIELD).list(),
    ],
);

static VALIDATION: Message =
    Message::new("CustomResourceValidation", &[message(1, "openAPIV3Schema", &JSON_SCHEMA_PROPS).pointer()]);

static SUBRESOURCES: Message = Message::new(
    "CustomResourceSubresources",
    &[message(1, "status", &SUBRESOURCE_STATUS).pointer(), message(2, "scale", &SUBRESOURCE_SCALE).pointer()],
);

static SUBRESOURCE_STATUS: Message = Message::new("CustomResourceSubresourceStatus", &[]);

static SUBRESOURCE_SCALE: Message = Message::new(
    "CustomResourceSubresourceScale",
    &[
        field(1, "specReplicasPath", String).always(),
        field(2, "statusReplicasPath", String).always(),
        field(3, "labelSelectorPath", String).pointer(),
    ],
);

static COLUMN: Message = Message::new(
    "CustomResourceColumnDefinition",
    &[
        field(1, "name", String).always(),
        field(2, "type", String).always(),
        field(3, "format", String),
        field(4, "description", String),
        field(5, "priority", Int32),
        field(6, "jsonPath", String).always().go("JSONPath"),
    ],
);

static SELECTABLE_FIELD: Message =
    Message::new("SelectableField", &[field(1, "jsonPath", String).always().go("JSONPath")]);

static CONVERSION: Message = Message::new(
    "CustomResourceConversion",
    &[field(1, "strategy", String).always(), message(2, "webhook", &WEBHOOK).pointer()],
);

static WEBHOOK: Message = Message::new(
    "WebhookConversion",
    &[
        message(2, "clientConfig", &CLIENT_CONFIG).pointer(),
        field(3, "conversionReviewVersions", String).list().always(),
    ],
);

static CLIENT_CONFIG: Message = Message::new(
    "WebhookClientConfig",
    &[
        message(1, "service", &SERVICE_REFERENCE).pointer(),
        field(2, "caBundle", Bytes).go("CABundle"),
        field(3, "url", String).pointer().go("URL"),
    ],
);

static SERVICE_REFERENCE: Message = Message::new(
    "ServiceReference",
    &[
        field(1, "namespace", String).always(),
        field(2, "name", String).always(),
        field(3, "path", String).pointer(),
        field(4, "port", Int32).pointer(),
    ],
);

static STATUS: Message = Message::new(
    "CustomResourceDefinitionStatus",
    &[
        message(1, "conditions", &CONDITION).list().always(),
        message(2, "acceptedNames", &NAMES),
        field(3, "storedVersions", String).list().always(),
        field(4, "observedGeneration", Int64),
    ],
);

static CONDITION: Message = Message::new(
    "CustomResourceDefinitionCondition",
    &[
        field(1, "type", String).always(),
        field(2, "status", String).always(),
        message(3, "lastTransitionTime", &TIME),
        field(4, "reason", String),
        field(5, "message", String),
        field(6, "observedGeneration", Int64),
    ],
);
