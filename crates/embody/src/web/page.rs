//! The console's static files, embedded in the binary.

use std::sync::Arc;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;

use super::WebState;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($path:literal = $file:literal, $kind:ident;)*) => {
        &[$(($path, include_str!(concat!("../../../../console/", $file)), $kind)),*]
    };
}

const FILES: &[(&str, &str, &str)] = files![
    "/" = "index.html", HTML;
    "/console/style.css" = "style.css", CSS;
    "/console/icon.svg" = "icon.svg", SVG;
    "/console/main.js" = "main.js", JS;
    "/console/api.js" = "api.js", JS;
    "/console/approvals.js" = "approvals.js", JS;
    "/console/chat.js" = "chat.js", JS;
    "/console/drawing.js" = "drawing.js", JS;
    "/console/events.js" = "events.js", JS;
    "/console/markdown.js" = "markdown.js", JS;
    "/console/nodes.js" = "nodes.js", JS;
    "/console/threads.js" = "threads.js", JS;
];

/// One route per file.
pub(super) fn routes() -> Router<Arc<WebState>> {
    FILES.iter().fold(Router::new(), |router, (path, content, kind)| {
        let file = move || async move {
            ([(CONTENT_TYPE, *kind), (CACHE_CONTROL, "no-cache")], *content).into_response()
        };
        router.route(path, get(file))
    })
}
