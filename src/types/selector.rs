//! Selectors of labels and fields as parts of objects.

use super::{Message, message, string};

pub static LABEL_SELECTOR: Message = Message::new(
    "LabelSelector",
    &[
        string(1, "matchLabels").map().describe("Labels and their values; an object must have them all."),
        message(2, "matchExpressions", &LABEL_SELECTOR_REQUIREMENT)
            .list()
            .atomic()
            .describe("Requirements, which an object must meet all."),
    ],
)
.atomic();

pub static LABEL_SELECTOR_REQUIREMENT: Message = Message::new(
    "LabelSelectorRequirement",
    &[
        string(1, "key").always().required().describe("The label."),
        string(2, "operator")
            .always()
            .required()
            .go_type("v1.LabelSelectorOperator")
            .describe("In, NotIn, Exists or DoesNotExist."),
        string(3, "values").list().atomic().describe("The values that In and NotIn speak of."),
    ],
);

pub static FIELD_SELECTOR_REQUIREMENT: Message = Message::new(
    "FieldSelectorRequirement",
    &[
        string(1, "key").always().required().describe("The field."),
        string(2, "operator")
            .always()
            .required()
            .go_type("v1.FieldSelectorOperator")
            .describe("In, NotIn, Exists or DoesNotExist."),
        string(3, "values").list().atomic().describe("The values that In and NotIn speak of."),
    ],
);
