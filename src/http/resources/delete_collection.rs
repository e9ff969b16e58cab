//! DELETE of a collection.

use axum::body::Body;
use axum::http::Response;

use crate::meta::{Details, Status, field};
use crate::registry::{Target, Warnings, warn_of_orphans};
use crate::store::{PAGE_OBJECTS, PartReader};

use super::super::app::App;
use super::super::exchange::Exchange;
use super::delete::{delete_options, deletion, success};
use super::list::{answer_page, list_at, list_options, takes_no_pages};
use super::negotiate;
use super::refusal::RequestRefusal;

pub(super) async fn delete_collection(
    app: &App,
    exchange: &Exchange,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, RequestRefusal> {
    let (format, shape) = negotiate(app, exchange, target)?;
    let (mut list, mut request) = list_options(exchange, target)?;
    // It has memory for its body.
    request.reader = PartReader::Check;
    if list.limit == 0 {
        // The reference reads the collection page by page, and so at the revision that is given.
        list.limit = i64::MAX;
    }
    let options = delete_options(app, exchange, target, body).await?;
    if options.ignore_store_read_error == Some(true) {
        let path = field::Path::new("ignoreStoreReadErrorWithClusterBreakingPotential");
        let detail = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let error = field::Error::invalid(&path, true, detail);
        return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &error.into()).into());
    }
    let mut warnings = Warnings::default();
    let deletion = deletion(&options);
    // The warnings about the deletion come before the collection is read.
    warn_of_orphans(target, &deletion, &mut warnings);
    if takes_no_pages(&list, target, &request.fields) {
        request.limit = 0;
    }
    if request.limit == 0 {
        request.limit_if_large = PAGE_OBJECTS;
    }
    let page = match list_at(&list, target, &request.fields) {
        Ok(at) => {
            request.at = at;
            app.registry.delete_collection(target, &exchange.user, request, &deletion, &mut warnings).await
        }
        Err(status) => Err(status),
    };
    exchange.warn(warnings);
    let Some(mut page) = page? else {
        // As the reference answers for a store that does not list what it deleted.
        let details = Details { kind: target.version.names.kind.clone(), ..Details::default() };
        return Ok(success(exchange, format, &Status::success(details), Some(200)));
    };
    if let Some(reserved) = page.reserved.take() {
        exchange.hold(reserved);
    }
    answer_page(app, exchange, target, format, &shape, page).await
}
