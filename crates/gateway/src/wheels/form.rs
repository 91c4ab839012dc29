//! The form of an upload: a file and two texts, read part by part. Limits come first: of the whole, of the parts, of what stands before
//! a part, of each text. Only the file may be long, and it goes to where it lands as it comes.

use std::time::Duration;

use axum::body::Body;
use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request};
use axum::http::{HeaderMap, StatusCode, header};
use pyoco_core::notice::Notice;
use pyoco_wheels::WheelName;
use serde_json::{Value, json};

use super::landing::{Landed, Landing};
use super::refused;
use super::trickle::{Held, Trickle};
use crate::body::{Intake, Trouble};
use crate::error::Refusal;
use crate::settings::WheelSettings;
use crate::validation::Inputs;

const MOST_PARTS: usize = 16;
const PART_HEADER_BYTES: usize = 8 << 10;
/// The longest part that is not the file.
const TEXT_BYTES: usize = 64 << 10;
/// Room for the form around the file.
const FORM_BYTES: u64 = (MOST_PARTS * (PART_HEADER_BYTES + TEXT_BYTES)) as u64;
/// Whoever sends less in a second is not waited for.
const SLOWEST: u32 = 64 << 10;
/// What is said of a file where a text belongs.
const NO_TEXT: &str = "Input should be a valid string";

/// What the parts of a form say.
#[derive(Default)]
pub(super) struct Form {
    wheel: Option<WheelPart>,
    replace: Option<TextPart>,
    tags: Option<TextPart>,
}

enum WheelPart {
    File(Box<Uploaded>),
    Text(String),
}

enum TextPart {
    File,
    Text(String),
}

/// The file of a form.
pub(super) struct Uploaded {
    pub(super) name: WheelName,
    pub(super) content_type: String,
    /// Nothing when it was too large; then it was not read to its end, nor was what came behind it.
    pub(super) landed: Option<Landed>,
}

/// A form whose parts are of the right kinds.
pub(super) struct Read {
    pub(super) wheel: Uploaded,
    pub(super) replace: bool,
    pub(super) tags: String,
}

impl Form {
    pub(super) async fn read(
        request: Request,
        settings: &WheelSettings,
        patience: Duration,
    ) -> Result<Self, Refusal> {
        if !is_form(request.headers()) {
            // There is no such form; what it would have to have is missing.
            return Ok(Self::default());
        }
        let limit = match settings.max_bytes {
            0 => u64::MAX,
            most => most.saturating_add(FORM_BYTES),
        };
        if announced(request.headers()).is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let (parts, body) = request.into_parts();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let intake = Intake::new(body, limit, patience).paced(SLOWEST);
        let (trouble, trickle) = (intake.trouble(), Trickle::new(intake));
        let held = trickle.held();
        let mut request = Request::from_parts(parts, Body::from_stream(trickle));
        // The limit is ours.
        DefaultBodyLimit::disable().apply(&mut request);
        let form = match Multipart::from_request(request, &()).await {
            Ok(form) => form,
            Err(_) => return Err(malformed("Missing boundary in multipart.")),
        };
        let mut read = Self::default();
        match read.parts(form, settings, &held).await {
            Ok(()) => Ok(read),
            Err(Problem::Refused(refusal)) => Err(refusal),
            Err(Problem::Form(error)) => Err(match trouble.get() {
                Some(Trouble::TooLarge) => too_large(),
                Some(trouble @ (Trouble::TooSlow | Trouble::Broken)) => trouble.refusal(),
                None if held.is_too_much() => malformed("the header of a part is too long"),
                None => malformed("Invalid multipart data.").because(error.body_text()),
            }),
        }
    }

    async fn parts(
        &mut self,
        mut form: Multipart,
        settings: &WheelSettings,
        held: &Held,
    ) -> Result<(), Problem> {
        let mut count = 0;
        while let Some(mut field) = form.next_field().await? {
            held.given_back();
            count += 1;
            if count > MOST_PARTS {
                return Err(malformed("too many parts").into());
            }
            if header_bytes(field.headers()) > PART_HEADER_BYTES {
                return Err(malformed("the header of a part is too long").into());
            }
            let is_file = field.file_name().is_some();
            let slot = match field.name().unwrap_or_default() {
                "wheel" if self.wheel.is_some() => return Err(twice().into()),
                "wheel" if is_file => {
                    let wheel = upload(&mut field, settings, held).await?;
                    let is_whole = wheel.landed.is_some();
                    self.wheel = Some(WheelPart::File(Box::new(wheel)));
                    if is_whole {
                        continue;
                    }
                    return Ok(());
                }
                "wheel" => {
                    self.wheel = Some(WheelPart::Text(text(&mut field, held).await?));
                    continue;
                }
                "replace" => &mut self.replace,
                "tags" => &mut self.tags,
                _ => {
                    // Read over, as far as any part that is no file.
                    over(&mut field, held).await?;
                    continue;
                }
            };
            if slot.is_some() {
                return Err(twice().into());
            }
            *slot = Some(if is_file {
                over(&mut field, held).await?;
                TextPart::File
            } else {
                TextPart::Text(text(&mut field, held).await?)
            });
        }
        Ok(())
    }

    /// The parts, each of its kind.
    pub(super) fn checked(self) -> Result<Read, Refusal> {
        let mut inputs = Inputs::default();
        let place = |name: &'static str| ["body".into(), name.into()];
        let wheel = match self.wheel {
            Some(WheelPart::File(wheel)) => Some(*wheel),
            Some(WheelPart::Text(text)) => {
                let rule = "Value error, Expected UploadFile, received: <class 'str'>";
                inputs.wrong("value_error", place("wheel"), rule, json!(text), Some(json!({"error": {}})));
                None
            }
            None => {
                inputs.missing(place("wheel"), Value::Null);
                None
            }
        };
        let mut texts = [("replace", self.replace), ("tags", self.tags)].map(|(name, part)| match part {
            Some(TextPart::Text(text)) => text,
            Some(TextPart::File) => {
                inputs.wrong("string_type", place(name), NO_TEXT, Value::Null, None);
                String::new()
            }
            None => String::new(),
        });
        let [replace, tags] = &mut texts;
        // A field that was left empty was not filled in.
        let replace =
            if replace.is_empty() { Some(true) } else { inputs.flag(place("replace"), &json!(replace)) };
        match (wheel, replace) {
            (Some(wheel), Some(replace)) if inputs.problems().is_empty() => {
                Ok(Read { wheel, replace, tags: std::mem::take(tags) })
            }
            (_, _) => Err(inputs.refusal(Notice::InvalidRequest)),
        }
    }
}

/// Why a form was not read to its end.
enum Problem {
    Refused(Refusal),
    Form(MultipartError),
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<MultipartError> for Problem {
    fn from(error: MultipartError) -> Self {
        Self::Form(error)
    }
}

/// Takes the file in. One whose name is wrong is refused before anything of it is read.
async fn upload(field: &mut Field<'_>, settings: &WheelSettings, held: &Held) -> Result<Uploaded, Problem> {
    let name = WheelName::parse(field.file_name().unwrap_or_default());
    let name = name.map_err(|error| refused(error.to_string()))?;
    let content_type = field.content_type().unwrap_or("application/octet-stream").to_owned();
    let (mut landing, mut size) = (Landing::open(&settings.folder), 0_u64);
    while let Some(piece) = field.chunk().await? {
        held.given_back();
        size = size.saturating_add(piece.len() as u64);
        if settings.max_bytes > 0 && size > settings.max_bytes {
            return Ok(Uploaded { name, content_type, landed: None });
        }
        landing.write(piece).await?;
    }
    Ok(Uploaded { name, content_type, landed: Some(landing.end().await?) })
}

async fn text(field: &mut Field<'_>, held: &Held) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.chunk().await? {
        held.given_back();
        if bytes.len() + piece.len() > TEXT_BYTES {
            return Err(too_long().into());
        }
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes).map_err(|_| malformed("a field of the form is not UTF-8").into())
}

async fn over(field: &mut Field<'_>, held: &Held) -> Result<(), Problem> {
    let mut count = 0;
    while let Some(piece) = field.chunk().await? {
        held.given_back();
        count += piece.len();
        if count > TEXT_BYTES {
            return Err(too_long().into());
        }
    }
    Ok(())
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.trim_start().to_ascii_lowercase().starts_with("multipart/form-data")
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

pub(super) fn too_large() -> Refusal {
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "wheel too large").noticed(Notice::InvalidRequest)
}

fn malformed(detail: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, detail).noticed(Notice::InvalidRequest)
}

fn twice() -> Refusal {
    malformed("a part is given twice")
}

fn too_long() -> Refusal {
    malformed("a field of the form is too long")
}
