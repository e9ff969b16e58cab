//! Event, in core/v1 and in events.k8s.io/v1.

use super::super::table::{Kind::*, Message, field, message};
use super::Type;
use super::metadata::{LIST_META, MICRO_TIME, OBJECT_META, TIME};
use super::object_reference::OBJECT_REFERENCE;

pub(super) static TYPES: &[Type] = &[
    ("v1", "Event", &CORE),
    ("v1", "EventList", &CORE_LIST),
    ("events.k8s.io/v1", "Event", &EVENT),
    ("events.k8s.io/v1", "EventList", &LIST),
];

static CORE_LIST: Message = Message::new(
    "EventList",
    &[message(1, "metadata", &LIST_META).go("ListMeta"), message(2, "items", &CORE).list().always()],
);

static CORE: Message = Message::new(
    "Event",
    &[
        message(1, "metadata", &OBJECT_META).go("ObjectMeta"),
        message(2, "involvedObject", &OBJECT_REFERENCE),
        field(3, "reason", String),
        field(4, "message", String),
        message(5, "source", &SOURCE),
        message(6, "firstTimestamp", &TIME),
        message(7, "lastTimestamp", &TIME),
        field(8, "count", Int32),
        field(9, "type", String),
        message(10, "eventTime", &MICRO_TIME),
        message(11, "series", &CORE_SERIES).pointer(),
        field(12, "action", String),
        message(13, "related", &OBJECT_REFERENCE).pointer(),
        field(14, "reportingComponent", String).always().go("ReportingController"),
        field(15, "reportingInstance", String).always(),
    ],
);

static CORE_SERIES: Message =
    Message::new("EventSeries", &[field(1, "count", Int32), message(2, "lastObservedTime", &MICRO_TIME)]);

static SOURCE: Message = Message::new("EventSource", &[field(1, "component", String), field(2, "host", String)]);

static LIST: Message = Message::new(
    "EventList",
    &[message(1, "metadata", &LIST_META).go("ListMeta"), message(2, "items", &EVENT).list().always()],
);

static EVENT: Message = Message::new(
    "Event",
    &[
        message(1, "metadata", &OBJECT_META).go("ObjectMeta"),
        message(2, "eventTime", &MICRO_TIME),
        message(3, "series", &SERIES).pointer(),
        field(4, "reportingController", String),
        field(5, "reportingInstance", String),
        field(6, "action", String),
        field(7, "reason", String),
        message(8, "regarding", &OBJECT_REFERENCE),
        message(9, "related", &OBJECT_REFERENCE).pointer(),
        field(10, "note", String),
        field(11, "type", String),
        message(12, "deprecatedSource", &SOURCE),
        message(13, "deprecatedFirstTimestamp", &TIME),
        message(14, "deprecatedLastTimestamp", &TIME),
        field(15, "deprecatedCount", Int32),
    ],
);

static SERIES: Message =
    Message::new("EventSeries", &[field(1, "count", Int32).always(), message(2, "lastObservedTime", &MICRO_TIME)]);
