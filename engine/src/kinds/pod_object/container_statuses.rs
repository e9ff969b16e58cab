//! The reports on containers: the users they run as, and the resources they were allocated.
//!
//! Source: `validateContainerStatusUsers` and `validateContainerStatusAllocatedResourcesStatus`.

use std::collections::{HashMap, HashSet};

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

const MESSAGE_BYTES_MAX: usize = 1024;
const IMAGE_BYTES_MAX: usize = 256;
const EPHEMERAL: &str = "ephemeralContainerStatuses";
const LISTS: [(&str, &str); 2] = [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")];

/// The errors of the statuses of containers.
pub fn validate(status: &FieldRef<'_>, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let os = spec.value().map(|spec| spec.str_at(&["os", "name"])).filter(|os| !os.is_empty()).unwrap_or("linux");
    for name in LISTS.map(|(name, _)| name).into_iter().chain([EPHEMERAL]) {
        errors.extend(validate_users(&status.field(name), os));
    }
    for (name, containers) in LISTS {
        errors.extend(validate_resources(&status.field(name), &spec.field(containers)));
    }
    let ephemeral = status.field(EPHEMERAL);
    for status in ephemeral.items() {
        let resources = status.field("allocatedResourcesStatus");
        if !resources.is_empty() {
            errors.push(resources.forbidden("must not be specified in container status"));
        }
    }
    errors
}

/// The errors of what containers have mounted: the images of volumes.
///
/// Source: `validateVolumeStatus`.
pub fn validate_volumes(status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for list in LISTS.map(|(name, _)| name).into_iter().chain([EPHEMERAL]) {
        let containers = status.field(list);
        for container in containers.items() {
            let mounts = container.field("volumeMounts");
            for mount in mounts.items() {
                errors.extend(validate_image(&mount.field("volumeStatus")));
            }
        }
    }
    errors
}

fn validate_image(volume: &FieldRef<'_>) -> Option<Error> {
    let image = volume.field("image");
    // The reference has another name for the field.
    let path = volume.path().child("imageVolumeStatus");
    let path = path.child("imageRef");
    match image.text_of("imageRef") {
        _ if !image.is_set() => None,
        "" => Some(Error::required(&path, "imageRef must not be empty")),
        text if text.len() > IMAGE_BYTES_MAX => Some(Error::too_long(&path, IMAGE_BYTES_MAX as i64)),
        _ => None,
    }
}

fn validate_users(statuses: &FieldRef<'_>, os: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    for status in statuses.items() {
        let user = status.field("user");
        let linux = user.field("linux");
        match os {
            "windows" if linux.is_set() => errors.push(linux.forbidden("cannot be set for a windows pod")),
            "linux" if linux.is_set() => errors.extend(validate_ids(&linux)),
            _ => {}
        }
    }
    errors
}

fn validate_ids(user: &FieldRef<'_>) -> ErrorList {
    let is_wrong = |id: &FieldRef<'_>| !(0..=i64::from(i32::MAX)).contains(&id.int());
    let wrong = |id: &FieldRef<'_>| Error::invalid(id.path(), id.int(), "must be between 0 and 2147483647, inclusive");
    let mut errors = ErrorList::new();
    for name in ["uid", "gid"] {
        let id = user.field(name);
        if is_wrong(&id) {
            errors.push(wrong(&id));
        }
    }
    let groups = user.field("supplementalGroups");
    for group in groups.items().filter(is_wrong) {
        errors.push(wrong(&group));
    }
    errors
}

fn validate_resources(statuses: &FieldRef<'_>, containers: &FieldRef<'_>) -> ErrorList {
    let containers = containers.value().and_then(Value::as_array).unwrap_or_default();
    // Of containers of one name the first is meant.
    let containers: HashMap<&str, ContainerClaims<'_>> = containers
        .iter()
        .rev()
        .map(|container| (container.str_at(&["name"]), ContainerClaims::by(container)))
        .collect();
    let mut errors = ErrorList::new();
    for status in statuses.items() {
        let container = containers.get(status.field("name").text());
        let list = status.field("allocatedResourcesStatus");
        for resource in list.items() {
            let name = resource.field("name");
            if let Some(why) = container.and_then(|wanted| wanted.refuse(name.text())) {
                errors.push(Error::invalid(name.path(), name.text(), why));
            }
            errors.extend(validate_health(&resource.field("resources")));
        }
    }
    errors
}

/// The resources that a container asks for.
struct ContainerClaims<'c> {
    container: &'c Value,
    /// `NAME`, or `NAME/REQUEST`.
    claims: HashSet<String>,
}

impl<'c> ContainerClaims<'c> {
    fn by(container: &'c Value) -> Self {
        let name = |claim: &Value| match (claim.str_at(&["name"]), claim.str_at(&["request"])) {
            (name, "") => name.to_owned(),
            (name, request) => format!("{name}/{request}"),
        };
        ContainerClaims { container, claims: container.items_at(&["resources", "claims"]).iter().map(name).collect() }
    }

    /// Why a resource is not one that the container asks for.
    fn refuse(&self, name: &str) -> Option<&'static str> {
        const NO_CLAIM: &str = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or \
                                'claim:<claimName>' if request is empty";
        let Some(wanted) = name.strip_prefix("claim:") else {
            let found = self.container.at(&["resources", "requests", name]).is_some();
            return (!found).then_some("must match one of the container's resource requests");
        };
        (!self.claims.contains(wanted)).then_some(NO_CLAIM)
    }
}

fn validate_health(resources: &FieldRef<'_>) -> ErrorList {
    const STATES: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for resource in resources.items() {
        let health = resource.field("health");
        if !STATES.contains(&health.text()) {
            errors.push(health.not_supported(&STATES));
        }
        let message = resource.field("message");
        if message.is_set() && message.is_empty() {
            errors.push(message.required("must be non-empty if specified"));
        } else if message.text().len() > MESSAGE_BYTES_MAX {
            errors.push(message.too_long(i64::try_from(MESSAGE_BYTES_MAX).unwrap_or(i64::MAX)));
        }
        let id = resource.field("resourceID");
        if !seen.insert(id.text().to_owned()) {
            errors.push(id.duplicate());
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn resources_are_those_of_the_container() {
        let pod = yaml::decode(
            b"spec: {containers: [{name: c, resources: {claims: [{name: a, request: b}]}}]}\n\
              status: {containerStatuses: [{name: c, user: {linux: {uid: -1, gid: 0}}, allocatedResourcesStatus: [{name: 'claim:a/b'},\n\
              {name: x/y, resources: [{resourceID: i, health: Ill}, {resourceID: i, health: Healthy, message: ''}]}]}]}",
        )
        .expect("YAML");
        let root = FieldRef::root(&pod);
        let told = validate(&root.field("status"), &root.field("spec")).aggregate();
        let at = "status.containerStatuses[0].allocatedResourcesStatus[1]";
        let expected = [
            "status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 2147483647, inclusive".to_owned(),
            format!("{at}.name: Invalid value: \"x/y\": must match one of the container's resource requests"),
            format!(
                "{at}.resources[0].health: Unsupported value: \"Ill\": supported values: \"Healthy\", \"Unhealthy\", \"Unknown\""
            ),
            format!("{at}.resources[1].message: Required value: must be non-empty if specified"),
            format!("{at}.resources[1].resourceID: Duplicate value: \"i\""),
        ];
        assert_eq!(told, format!("[{}]", expected.join(", ")));
    }

    #[test]
    fn the_images_of_volumes_have_names() {
        let mounts = |image: &str| {
            let text = format!("containerStatuses: [{{name: c, volumeMounts: [{{name: v, volumeStatus: {image}}}]}}]");
            let status = crate::object! { "status" => yaml::decode(text.as_bytes()).expect("YAML") };
            validate_volumes(&FieldRef::root(&status).field("status")).aggregate()
        };
        let path = "status.containerStatuses[0].volumeMounts[0].volumeStatus.imageVolumeStatus.imageRef";
        assert_eq!(mounts("{}"), "");
        assert_eq!(mounts("{image: {imageRef: a}}"), "");
        assert_eq!(mounts("{image: {}}"), format!("{path}: Required value: imageRef must not be empty"));
        let long = format!("{{image: {{imageRef: {}}}}}", "a".repeat(257));
        assert_eq!(mounts(&long), format!("{path}: Too long: may not be more than 256 bytes"));
    }
}
