//! Putting a wheel on the shelf. What is cheap to check is checked before what is dear, and all of it before the store hears of it.

use std::fs::File;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use pyoco_api::{ErrorBody, WheelArtifact};
use pyoco_ports::{NewWheel, WheelAction};
use pyoco_wheels::{InspectError, Limits, WheelName, inspect, may_upload, parse_tags};
use tokio::sync::OwnedSemaphorePermit;

use super::form::{Form, Uploaded, too_large};
use super::landing::{Landed, Taking};
use super::story::Origin;
use super::{conflict, refused, shown};
use crate::App;
use crate::audit::Told;
use crate::caller::Caller;
use crate::docs::{Always, Bodied, Writing};
use crate::error::Refusal;
use crate::server::Hosting;
use crate::unhurried::to_its_end;

/// The form of `POST /wheels`.
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "describes the form for OpenAPI; it is read part by part")]
pub(crate) struct UploadWheelForm {
    /// The wheel, under its own file name.
    #[schema(value_type = String, format = Binary)]
    wheel: Vec<u8>,
    /// Kept for the history; an older version never replaces a newer one, and no version replaces itself.
    #[schema(default = true)]
    replace: Option<bool>,
    /// The workers it is for, with commas between; all of them when there are none.
    #[schema(pattern = "^[A-Za-z0-9_, -]*$", example = "gpu,linux")]
    tags: Option<String>,
}

/// Uploads a wheel. Workers that install wheels run it from their next run on.
#[utoipa::path(post, operation_id = "uploadWheel", tag = "wheels", path = "/wheels", request_body(content = UploadWheelForm, content_type = "multipart/form-data"), responses(
    (status = 200, description = "It is there.", body = WheelArtifact),
    (status = 409, description = "The package is there in this version, or in a newer one.", body = ErrorBody),
    (status = 422, description = "A part is missing, the name or the tags cannot be read, or the file is no sound wheel: `detail` says why.", body = ErrorBody),
    Bodied, Writing, Always
))]
pub(crate) async fn upload(
    State(app): State<App>,
    caller: Caller,
    hosting: Hosting,
    origin: Origin,
    request: Request,
) -> Result<Response, Refusal> {
    caller.must_have(app.settings.wheels.upload_role)?;
    let Ok(permit) = app.uploads.clone().try_acquire_owned() else {
        let busy = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many wheels are being uploaded");
        return Err(busy.for_now());
    };
    let form = Form::read(request, &app.settings.wheels, hosting.limits.body_timeout).await?.checked()?;
    let Uploaded { name, content_type, landed } = form.wheel;
    let told = Told::wheel(&name);
    let refused_of = name.clone();
    let upload = async {
        let tags = parse_tags(&form.tags).map_err(|error| refused(error.to_string()))?;
        let landed = landed.ok_or_else(too_large)?;
        let offer = Offer { name, content_type, tags, landed, replace: form.replace };
        // To its end: what may be seen already also stands in the history.
        to_its_end(offer.accept(app, caller, origin, permit)).await?
    };
    let (mut response, told) = match upload.await {
        Ok(wheel) => {
            let told = told.with("sha256", wheel.sha256_hex.clone());
            (Json(wheel).into_response(), told)
        }
        Err(refusal) => (refusal.of_wheel(refused_of.as_str()).into_response(), told),
    };
    response.extensions_mut().insert(told);
    Ok(response)
}

/// A wheel that has arrived and may be looked at.
struct Offer {
    name: WheelName,
    content_type: String,
    tags: Vec<String>,
    landed: Landed,
    replace: bool,
}

impl Offer {
    async fn accept(
        self,
        app: App,
        caller: Caller,
        origin: Origin,
        _permit: OwnedSemaphorePermit,
    ) -> Result<WheelArtifact, Refusal> {
        let Self { name, content_type, tags, landed, replace } = self;
        let store = app.engine.store();
        // The store asks again when it puts it there. Asked now, nobody waits for what is refused anyway.
        let there = store.wheels().await?;
        may_upload(there.iter().map(|wheel| &wheel.name), &name).map_err(|why| conflict(&name, why))?;
        let Landed { file, size, sha256 } = landed;
        let file = sound(file, &name).await?;
        let new = NewWheel {
            name: name.clone(),
            size_bytes: size,
            sha256,
            at: app.clock.now(),
            tags,
            content_type,
        };
        let mut bytes = Taking::from(file);
        let put = store.put_wheel(new, &mut bytes).await?;
        let record = put.map_err(|why| conflict(&name, why))?;
        app.tell_story(WheelAction::Upload, &record, Some(replace), &caller, origin).await;
        Ok(shown(record, &app.settings.wheels.bucket))
    }
}

/// The file again, if it is a sound wheel of this name. Other requests go on meanwhile.
async fn sound(mut file: File, name: &WheelName) -> Result<File, Refusal> {
    let name = name.clone();
    let inspected = tokio::task::spawn_blocking(move || {
        let found = inspect(&mut file, &name, &Limits::default());
        found.map(|_| file)
    });
    let failed = |reason: String| {
        let refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the wheel could not be looked at");
        refusal.because(reason)
    };
    match inspected.await {
        Ok(Ok(file)) => Ok(file),
        Ok(Err(InspectError::Unsound(unsound))) => Err(refused(unsound.to_string())),
        Ok(Err(unreadable @ InspectError::Unreadable(_))) => Err(failed(unreadable.to_string())),
        Err(broken) => Err(failed(broken.to_string())),
    }
}
