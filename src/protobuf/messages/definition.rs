//! CustomResourceDefinition, apiextensions.k8s.io/v1.

use super::json_schema::JSON_SCHEMA_PROPS;
use crate::types::metadata::{LIST_METADATA, METADATA, TIME, items};
use crate::types::{Message, boolean, bytes, int32, int64, message, string};

pub static DEFINITION_LIST: Message =
    Message::object("CustomResourceDefinitionList", &[LIST_METADATA, items(&DEFINITION)]);

pub static DEFINITION: Message =
    Message::object("CustomResourceDefinition", &[METADATA, message(2, "spec", &SPEC), message(3, "status", &STATUS)]);

static SPEC: Message = Message::new(
    "CustomResourceDefinitionSpec",
    &[
        string(1, "group").always(),
        message(3, "names", &NAMES),
        string(4, "scope").always(),
        message(7, "versions", &VERSION).list().always(),
        message(9, "conversion", &CONVERSION).pointer(),
        boolean(10, "preserveUnknownFields"),
    ],
);

static NAMES: Message = Message::new(
    "CustomResourceDefinitionNames",
    &[
        string(1, "plural").always(),
        string(2, "singular"),
        string(3, "shortNames").list(),
        string(4, "kind").always(),
        string(5, "listKind"),
        string(6, "categories").list(),
    ],
);

static VERSION: Message = Message::new(
    "CustomResourceDefinitionVersion",
    &[
        string(1, "name").always(),
        boolean(2, "served").always(),
        boolean(3, "storage").always(),
        message(4, "schema", &VALIDATION).pointer(),
        message(5, "subresources", &SUBRESOURCES).pointer(),
        message(6, "additionalPrinterColumns", &COLUMN).list(),
        boolean(7, "deprecated"),
        string(8, "deprecationWarning").pointer(),
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
        string(1, "specReplicasPath").always(),
        string(2, "statusReplicasPath").always(),
        string(3, "labelSelectorPath").pointer(),
    ],
);

static COLUMN: Message = Message::new(
    "CustomResourceColumnDefinition",
    &[
        string(1, "name").always(),
        string(2, "type").always(),
        string(3, "format"),
        string(4, "description"),
        int32(5, "priority"),
        string(6, "jsonPath").always().go("JSONPath"),
    ],
);

static SELECTABLE_FIELD: Message = Message::new("SelectableField", &[string(1, "jsonPath").always().go("JSONPath")]);

static CONVERSION: Message = Message::new(
    "CustomResourceConversion",
    &[string(1, "strategy").always(), message(2, "webhook", &WEBHOOK).pointer()],
);

static WEBHOOK: Message = Message::new(
    "WebhookConversion",
    &[message(2, "clientConfig", &CLIENT_CONFIG).pointer(), string(3, "conversionReviewVersions").list().always()],
);

static CLIENT_CONFIG: Message = Message::new(
    "WebhookClientConfig",
    &[
        message(1, "service", &SERVICE_REFERENCE).pointer(),
        bytes(2, "caBundle").go("CABundle"),
        string(3, "url").pointer().go("URL"),
    ],
);

static SERVICE_REFERENCE: Message = Message::new(
    "ServiceReference",
    &[
        string(1, "namespace").always(),
        string(2, "name").always(),
        string(3, "path").pointer(),
        int32(4, "port").pointer(),
    ],
);

static STATUS: Message = Message::new(
    "CustomResourceDefinitionStatus",
    &[
        message(1, "conditions", &CONDITION).list().always(),
        message(2, "acceptedNames", &NAMES),
        string(3, "storedVersions").list().always(),
        int64(4, "observedGeneration"),
    ],
);

static CONDITION: Message = Message::new(
    "CustomResourceDefinitionCondition",
    &[
        string(1, "type").always(),
        string(2, "status").always(),
        message(3, "lastTransitionTime", &TIME),
        string(4, "reason"),
        string(5, "message"),
        int64(6, "observedGeneration"),
    ],
);
